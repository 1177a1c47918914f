"""`priority` in a document."""

from collections.abc import Callable

import pytest

from pipeline.network.model import Network
from pipeline.priority import Priority

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
    """What a box omits stays open."""
    found = load_text(
        f"priority: low\n{HEAD}"
        + FILTERS % (", priority: high", ", priority: normal", "")
        + "outputs: {b: {topic: b}, c: {topic: c, priority: high}}\n"
    )
    assert found.priority is Priority.LOW
    declared = [one.priority for one in found.box_settings]
    assert declared == [Priority.HIGH, Priority.NORMAL, None]
    assert [one.priority for one in found.outputs] == [None, Priority.HIGH]


def test_without_it_it_is_normal(load_text: Loads) -> None:
    """The default."""
    assert load_text(HEAD + FILTERS % ("", "", "")).priority is Priority.NORMAL


@pytest.mark.parametrize(
    ("priority", "problem"),
    [
        ("urgent", "priority of box c cannot be 'urgent' (there is: high, normal, low)"),
        ("1", "priority of box c cannot be '1' (there is: high, normal, low)"),
        ("[high]", "priority of box c must be one value, not a list"),
        ("", "priority of box c has no value"),
    ],
)
def test_mistakes_in_a_priority(priority: str, problem: str, problems_of: Problems) -> None:
    """Each is reported with its line, once."""
    found = problems_of(HEAD + FILTERS % ("", "", f", priority: {priority}"))
    assert len(found) == 1
    assert problem in found[0]
    assert "network.yaml:6, box c" in found[0]


def test_that_of_a_box_and_of_its_output_are_one(problems_of: Problems) -> None:
    """They are written once, also if they are equal; a branch has that of its route."""
    boxes = FILTERS % ("", "", ", priority: high")
    (found,) = problems_of(f"{HEAD}{boxes}outputs: {{c: {{topic: c, priority: high}}}}\n")
    assert "network.yaml:7, box c" in found
    assert "box c has a priority of its own: write it there or here" in found
    outputs = "outputs: {x: {topic: x, priority: high}}\n"
    (found,) = problems_of(HEAD + ROUTE % ", priority: low" + outputs)
    assert "box r has a priority of its own: write it there or here" in found
