"""Streams whose tentative results forks read."""

import pytest

from pipeline.planner.describe import state_differences
from pipeline.planner.digest import fragment_digest, state_digest
from pipeline.planner.explain import explain
from pipeline.planner.plan import DerivedStream, Plan
from tests.unit.planner.passes.test_share_box_settings import STREAMS, fragment, planned

BOUND = "availability: 3s"
COUNTS = "  counts: {aggregate: s, by: [car, road], window: 1s, compute: {n: count(*)}}\n"
SUMS = "  sums: {aggregate: counts, by: [road], window: 1m, compute: {n: sum(n)}}\n"
BIG = "  big: {filter: counts, where: n > 1}\n  small: {filter: counts, where: n < 1}\n"
MOST = "  most: {aggregate: big, by: [road], window: 1m, compute: {n: sum(n)}}\n"
LESS = "  less: {aggregate: small, by: [road], window: 1m, compute: {n: sum(n)}}\n"
FIRST = "  first: {deduplicate: s, by: [car, road], within: 1m}\n"
CARS = "  cars: {aggregate: first, by: [road], window: 1m, compute: {n: count(*)}}\n"
OF_X = "  n: {aggregate: x, by: [car], window: 1m, compute: {n: count(*)}}\n"
SECOND = STREAMS.replace("}}", "}, u: {topic: u, schema: sighting.avsc, event_time: seen_at}}")
OUTPUTS = "outputs: {big: {topic: big}, small: {topic: small}, most: {topic: most}}"
ONCE = "  once: {deduplicate: counts, by: [car], within: 1m}\n"


def marked(of: Plan) -> dict[str, bool]:
    """Which derived streams are read, by fragment and input."""
    return {
        f"{one.name} of {stream.name}": stream.tentative
        for one in of.fragments
        for stream in one.inputs
        if isinstance(stream, DerivedStream)
    }


def notes(of: Plan) -> list[str]:
    """Those of this pass."""
    return [note for note in of.notes if "tentative results for" in note]


@pytest.mark.parametrize(("head", "expected"), [(BOUND, True), ("", False)])
def test_forks_read_results_of_windows(head: str, expected: bool) -> None:  # noqa: FBT001
    """Under a bound of both."""
    plan = planned(COUNTS + SUMS, head)
    assert marked(plan) == {"sums of counts": expected}
    assert fragment(plan, "counts").output.tentative is expected
    assert not fragment(plan, "sums").output.tentative
    assert notes(plan) == []


def test_a_reader_without_a_bound_reads_stable_results() -> None:
    """Nobody reads the tentative ones then."""
    bounded = COUNTS.replace("compute", "availability: 3s, compute")
    plan = planned(bounded + SUMS)
    assert marked(plan) == {"sums of counts": False}
    assert not fragment(plan, "counts").output.tentative


@pytest.mark.parametrize(
    "boxes",
    [
        "  x: {deduplicate: s, by: [car], within: 1m}\n",
        "  x: {as_of: {left: s, right: u, on: [car], within: 1m}, select: [car, left.road]}\n",
        "  x: {top: s, by: [car, road], window: 1m, highest: speed, rows: 2}\n",
    ],
)
def test_forks_read_what_event_time_releases(boxes: str) -> None:
    """Results in the order of event time: a boundary separates them."""
    plan = planned(f"{boxes}{OF_X}", BOUND, streams=SECOND)
    assert marked(plan) == {"n of x": True}
    assert notes(plan) == []


def test_boxes_without_state_pass_tentative_results_on() -> None:
    """And have a topic for theirs; what is made of one record has its id."""
    plan = planned(COUNTS + BIG + MOST, f"{BOUND}\n{OUTPUTS}")
    assert marked(plan) == {
        "big of counts": True,
        "small of counts": True,
        "most of big": True,
    }
    big = fragment(plan, "big")
    assert (big.may_be_tentative, big.tentative_topic) == (True, "big.tentative")
    assert big.identified
    assert (big.output.tentative, fragment(plan, "small").output.tentative) == (True, False)
    assert "only if computed of tentative results of counts" in explain(plan)
    assert notes(plan) == []


def test_without_a_tentative_input_they_have_none() -> None:
    """What they publish is right."""
    plan = planned("  moving: {filter: s, where: speed > 0}\n", BOUND)
    assert not fragment(plan, "moving").may_be_tentative
    suspended = "availability: {bound: 3s, policy: suspend}"
    plan = planned(COUNTS + BIG + MOST, f"{suspended}\n{OUTPUTS}")
    assert not fragment(plan, "big").may_be_tentative


@pytest.mark.parametrize(
    ("boxes", "kind"),
    [
        (
            "  x: {join: {left: s, right: u, on: [car], how: left, within: 1m}, select: [car]}\n",
            "join",
        ),
        ("  x: {union: [counts, more]}\n", "union"),
    ],
)
def test_the_plan_says_where_a_chain_ends(boxes: str, kind: str) -> None:
    """At results that do not come in the order of event time: they are tentative all the same."""
    more = COUNTS.replace("counts", "more") if kind == "union" else ""
    counts = COUNTS if kind == "union" else ""
    outputs = "outputs: {x: {topic: x}, n: {topic: n}}"
    plan = planned(f"{counts}{more}{boxes}{OF_X}", f"{BOUND}\n{outputs}", streams=SECOND)
    assert fragment(plan, "x").may_be_tentative
    assert not fragment(plan, "x").output.tentative
    (note,) = notes(plan)
    assert "n has no tentative results for what is missing before x" in note
    assert f"results of {kind} x do not come in the order of event time" in note


def test_no_chain_begins_behind_what_is_never_tentative() -> None:
    """Its readers wait for what is missing there."""
    boxes = "  x: {filter: s, where: speed > 0}\n" + OF_X
    (note,) = notes(planned(boxes, f"{BOUND}\noutputs: {{x: {{topic: x}}, n: {{topic: n}}}}"))
    assert "filter x is never tentative, and waits for all of its input" in note


def test_filters_between_windows_end_no_chain() -> None:
    """They are a part of the fragments behind them."""
    plan = planned(COUNTS + BIG + MOST + LESS, BOUND)
    assert notes(plan) == []
    assert marked(plan) == {"most of counts": True, "less of counts": True}


def test_for_windows_nothing_of_the_state_changes() -> None:
    """Rows of a box that keeps them have other ids."""
    for boxes, name, is_same in ((COUNTS + SUMS, "sums", True), (COUNTS + ONCE, "once", False)):
        old = fragment(planned(boxes, ""), name)
        new = fragment(planned(boxes, BOUND), name)
        assert fragment_digest(old) != fragment_digest(new)
        assert (state_digest(old) == state_digest(new)) is is_same
        found = [one for one in state_differences(old, new) if "tentative results" in one]
        assert (found == []) is is_same
