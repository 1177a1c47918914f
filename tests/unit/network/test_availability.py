"""`availability` in a document."""

from collections.abc import Callable

import pytest

from pipeline.availability import Availability, Policy
from pipeline.network.model import Network

STREAMS = "streams: {s: {topic: t, schema: sighting.avsc, event_time: seen_at}}\n"
HEAD = f"network: n\n{STREAMS}boxes:\n"
FILTERS = """\
  a: {filter: s, where: speed > 0%s}
  b: {filter: a, where: speed > 1%s}
  c: {filter: b, where: speed > 2%s}
"""
ROUTE = "  r: {route: s, to: {x: speed > 0}, otherwise: y%s}\n"
Loads = Callable[..., Network]
Problems = Callable[..., list[str]]


def test_the_network_boxes_and_outputs_declare_it(load_text: Loads) -> None:
    """A bound alone has the policy `process`."""
    found = load_text(
        f"availability: 3s\n{HEAD}"
        + FILTERS % (", availability: 1d", ", availability: {bound: 500ms, policy: delay}", "")
        + "outputs: {b: {topic: b}, c: {topic: c, availability: {bound: 2s, policy: suspend}}}\n"
    )
    assert found.availability == Availability(3_000, Policy.PROCESS)
    declared = [one.availability for one in found.box_settings]
    assert declared == [Availability(86_400_000), Availability(500, Policy.DELAY), None]
    assert [one.availability for one in found.outputs] == [
        None,
        Availability(2_000, Policy.SUSPEND),
    ]


def test_without_it_there_is_no_bound(load_text: Loads) -> None:
    """The default."""
    assert load_text(HEAD + FILTERS % ("", "", "")).availability is None


@pytest.mark.parametrize("written", ["", ", silence: idle", ", silence: missing"])
def test_whether_silence_is_declared_is_known(written: str, load_text: Loads) -> None:
    """Also if it is declared with its default."""
    head = HEAD.replace("event_time: seen_at", f"event_time: seen_at{written}")
    (stream,) = load_text(head + FILTERS % ("", "", "")).streams
    assert stream.silence_declared is bool(written)


BETWEEN = "must be a duration from 1ms to 1d, not"
CHOICES = "(there is: process, delay, suspend)"


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("0s", f"availability of box c {BETWEEN} '0s'"),
        ("-3s", f"availability of box c {BETWEEN} '-3s'"),
        ("2d", f"availability of box c {BETWEEN} '2d'"),
        ("soon", f"availability of box c {BETWEEN} 'soon'"),
        ("[3s]", "availability of box c must be one value, not a list"),
        ("", "availability of box c has no value"),
        ("{policy: delay}", "availability of box c needs bound"),
        ("{bound: 0s}", f"bound of availability of box c {BETWEEN} '0s'"),
        (
            "{bound: 3s, policy: wait}",
            f"policy of availability of box c cannot be 'wait' {CHOICES}",
        ),
        ("{bound: 3s, after: 1s}", "availability of box c has no key after"),
    ],
)
def test_mistakes_in_a_bound(written: str, problem: str, problems_of: Problems) -> None:
    """Each is reported with its line, once."""
    found = problems_of(HEAD + FILTERS % ("", "", f", availability: {written}"))
    assert len(found) == 1
    assert problem in found[0]
    assert "network.yaml:6, box c" in found[0]


def test_that_of_a_box_and_of_its_output_are_one(problems_of: Problems) -> None:
    """They are written once, also if they are equal; a branch has that of its route."""
    boxes = FILTERS % ("", "", ", availability: 3s")
    (found,) = problems_of(f"{HEAD}{boxes}outputs: {{c: {{topic: c, availability: 3s}}}}\n")
    assert "network.yaml:7, box c" in found
    assert "box c has an availability of its own" in found
    outputs = "outputs: {x: {topic: x, availability: 3s}}\n"
    (found,) = problems_of(HEAD + ROUTE % ", availability: 1s" + outputs)
    assert "box r has" in found
