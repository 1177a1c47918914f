"""`reliability` in a document."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.network.model import Network
from pipeline.reliability import (
    AMNESIA,
    UPSTREAM_BACKUP,
    Mode,
    Recovery,
    Reliability,
    with_active_standbys,
    with_passive_standbys,
)

STREAMS = "streams: {s: {topic: t, schema: sighting.avsc, event_time: seen_at}}\n"
HEAD = f"network: n\n{STREAMS}boxes:\n"
ONE, TWO = with_active_standbys(1), with_active_standbys(2)
FILTERS = """\
  a: {filter: s, where: speed > 0%s}
  b: {filter: a, where: speed > 1%s}
  c: {filter: b, where: speed > 2%s}
"""
ROUTE = "  r: {route: s, to: {x: speed > 0}, otherwise: y%s}\n"
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "network.md"
Loads = Callable[..., Network]
Problems = Callable[..., list[str]]


def test_the_network_boxes_and_outputs_declare_it(load_text: Loads) -> None:
    """What a box omits stays open."""
    two = ", reliability: {mode: active_standby, secondaries: 2}"
    found = load_text(
        f"network: n\nreliability: active_standby\n{STREAMS}boxes:\n"
        + FILTERS % (two, ", reliability: upstream_backup", "")
        + "outputs: {b: {topic: b}, c: {topic: c, reliability: {mode: active_standby}}}\n"
    )
    assert found.reliability == ONE
    assert [one.reliability for one in found.box_settings] == [TWO, UPSTREAM_BACKUP, None]
    assert [one.reliability for one in found.outputs] == [None, ONE]


def test_without_it_the_state_is_built_from_the_log(load_text: Loads) -> None:
    """The default."""
    found = load_text(HEAD + "  a: {filter: s, where: speed > 0}\n")
    assert found.reliability == UPSTREAM_BACKUP


@pytest.mark.parametrize(
    ("reliability", "expected"),
    [
        ("active_standby", ONE),
        ("{mode: active_standby}", ONE),
        ("{mode: active_standby, secondaries: 1}", ONE),
        ("{secondaries: 5, mode: active_standby}", with_active_standbys(5)),
        ("amnesia", AMNESIA),
        ("{mode: amnesia}", AMNESIA),
        ("upstream_backup", UPSTREAM_BACKUP),
        ("{mode: upstream_backup}", UPSTREAM_BACKUP),
        ("passive_standby", with_passive_standbys(1, 10_000)),
        ("{mode: passive_standby, secondaries: 2}", with_passive_standbys(2, 10_000)),
        ("{mode: passive_standby, checkpoint_every: 1s}", with_passive_standbys(1, 1_000)),
        ("{mode: passive_standby, checkpoint_every: 1d}", with_passive_standbys(1, 86_400_000)),
        (
            "{mode: upstream_backup, recovery: rollback}",
            Reliability(Mode.UPSTREAM_BACKUP, recovery=Recovery.ROLLBACK),
        ),
        (
            "{mode: active_standby, recovery: precise}",
            Reliability(Mode.ACTIVE_STANDBY, 1, recovery=Recovery.PRECISE),
        ),
    ],
)
def test_the_short_form_is_that_with_the_defaults(
    reliability: str, expected: Reliability, load_text: Loads
) -> None:
    """The bounds of both numbers are included."""
    found = load_text(f"reliability: {reliability}\n{HEAD}{FILTERS % ('', '', '')}")
    assert found.reliability == expected


@pytest.mark.parametrize(
    ("reliability", "problem"),
    [
        ("active", "reliability of box c cannot be 'active' (there is: active_standby, amnesia"),
        ("{mode: standby}", "mode of reliability of box c cannot be 'standby' (there is: "),
        (
            "{mode: amnesia, secondaries: 1}",
            (
                "reliability of box c: amnesia has no secondaries\n"
                "    hint: leave them out: any node that its placement allows may take it over; or "
                "write mode: active_standby"
            ),
        ),
        (
            "{mode: amnesia, checkpoint_every: 10s}",
            "reliability of box c: amnesia copies no checkpoint",
        ),
        (
            "{mode: active_standby, checkpoint_every: 10s}",
            (
                "reliability of box c: active_standby copies no checkpoint\n"
                "    hint: leave it out, or write mode: passive_standby"
            ),
        ),
        (
            "{mode: upstream_backup, checkpoint_every: 10s}",
            "reliability of box c: upstream_backup copies no checkpoint",
        ),
        ("{mode: passive_standby, checkpoint_every: 900ms}", "must be a duration from 1s to 1d"),
        ("{mode: passive_standby, checkpoint_every: 2d}", "must be a duration from 1s to 1d"),
        ("{mode: passive_standby, checkpoint_every: often}", "must be a duration from 1s to 1d"),
        (
            "{mode: upstream_backup, secondaries: 2}",
            (
                "reliability of box c: upstream_backup has no secondaries\n"
                "    hint: leave them out: any node that its placement allows may take it over; or "
                "write mode: active_standby"
            ),
        ),
        ("{secondaries: 2}", "reliability of box c needs mode"),
        ("{recovery: rollback}", "reliability of box c needs mode"),
        (
            "{mode: upstream_backup, recovery: rolback}",
            ("recovery of reliability of box c cannot be 'rolback' (there is: rollback, precise)"),
        ),
        ("rollback", "reliability of box c cannot be 'rollback' (there is: "),
        ("{}", "reliability of box c needs mode"),
        ("{mode: active_standby, secondaries: 0}", "must be a whole number from 1 to 5, not '0'"),
        ("{mode: active_standby, secondaries: 6}", "must be a whole number from 1 to 5, not '6'"),
        ("{mode: active_standby, of: 2}", "reliability of box c has no key of (there is: "),
        ("{mode: upstream_backup, of: 2}", "reliability of box c has no key of (there is: "),
        ("[active_standby]", "reliability of box c must be one value, not a list"),
        ("{mode: [active_standby]}", "mode of reliability of box c must be one value, not a list"),
        ("", "reliability of box c has no value"),
    ],
)
def test_mistakes_in_a_reliability(reliability: str, problem: str, problems_of: Problems) -> None:
    """Each is reported with its line, once."""
    found = problems_of(HEAD + FILTERS % ("", "", f", reliability: {reliability}"))
    assert len(found) == 1
    assert problem in found[0]
    assert "network.yaml:6, box c" in found[0]


def test_that_of_a_box_and_of_its_output_are_one(problems_of: Problems) -> None:
    """They are written once, also if they are equal."""
    boxes = FILTERS % ("", "", ", reliability: active_standby")
    found = problems_of(f"{HEAD}{boxes}outputs: {{c: {{topic: c, reliability: active_standby}}}}\n")
    assert len(found) == 1
    assert "network.yaml:7, box c" in found[0]
    assert "box c has a reliability of its own: write it there or here" in found[0]


def test_the_output_of_a_branch_declares_it_if_the_route_does_not(
    load_text: Loads, problems_of: Problems
) -> None:
    """Branches of a route may differ, unless the route has one for all of them."""
    outputs = "outputs: {x: {topic: x, reliability: active_standby}}\n"
    found = load_text(HEAD + ROUTE % "" + outputs)
    assert [one.reliability for one in found.outputs] == [ONE]
    assert [(one.of, one.reliability) for one in found.box_settings] == [("r", None)]
    mistakes = problems_of(HEAD + ROUTE % ", reliability: upstream_backup" + outputs)
    assert len(mistakes) == 1
    assert "box r has a reliability of its own: write it there or here" in mistakes[0]


def test_the_mistakes_of_the_reference_page_are_reported_so(problems_of: Problems) -> None:
    """All of them in one pass."""
    text = f"""\
network: roads
reliability: active
{STREAMS.strip()}
boxes:
  moving: {{filter: s, where: TRUE, reliability: {{mode: upstream_backup, secondaries: 2}}}}
  tolls: {{filter: s, where: TRUE, reliability: {{mode: active_standby, secondaries: 9}}}}
  dispatch: {{filter: s, where: TRUE, reliability: upstream_backup}}
outputs:
  dispatch: {{topic: x, reliability: active_standby}}
"""
    shown = "\n".join(f"  {problem}" for problem in problems_of(text))
    assert f"error: 4 problems in the document\n{shown}\n```" in PAGE.read_text(encoding="utf-8")


STATES = """\
  counts: {aggregate: s, by: [road], window: 1m, compute: {n: count(*)}%s}
  busy: {filter: counts, where: n > 1%s}
  sums: {aggregate: busy, by: [road], window: 1m, compute: {n: sum(n)}%s}
"""
FORGETS = ", reliability: amnesia"


@pytest.mark.parametrize(
    ("boxes", "outputs"), [((FORGETS, "", ""), ""), (("", "", ""), "counts: {topic: c%s}")]
)
def test_a_box_that_others_with_state_read_leaves_nothing_out(
    boxes: tuple[str, str, str], outputs: str, problems_of: Problems
) -> None:
    """Through a box without state, too; written at the box or at its output."""
    text = f"{HEAD}{STATES % boxes}outputs: {{{outputs % FORGETS if outputs else ''}}}\n"
    found = problems_of(text)
    assert len(found) == 1
    assert f"network.yaml:{7 if outputs else 4}, box counts: " in found[0]
    assert "cannot have reliability: amnesia, since aggregate sums keeps state of" in found[0]


@pytest.mark.parametrize("boxes", [("", "", FORGETS), ("", FORGETS, "")])
def test_a_box_without_state_or_readers_with_state_may_have_it(
    boxes: tuple[str, str, str], load_text: Loads
) -> None:
    """That of the network is no mistake either."""
    found = load_text(f"reliability: amnesia\n{HEAD}{STATES % boxes}")
    assert AMNESIA in [one.reliability for one in found.box_settings]
    assert found.reliability == AMNESIA
