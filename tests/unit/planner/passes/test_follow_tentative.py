"""Streams whose tentative results forks read."""

import pytest

from pipeline.planner.describe import state_differences
from pipeline.planner.digest import fragment_digest, state_digest
from pipeline.planner.plan import DerivedStream, Plan
from tests.unit.planner.passes.test_share_box_settings import fragment, planned

BOUND = "availability: 3s"
COUNTS = "  counts: {aggregate: s, by: [car, road], window: 1s, compute: {n: count(*)}}\n"
SUMS = "  sums: {aggregate: counts, by: [road], window: 1m, compute: {n: sum(n)}}\n"
BIG = "  big: {filter: counts, where: n > 1}\n  small: {filter: counts, where: n < 1}\n"
MOST = "  most: {aggregate: big, by: [road], window: 1m, compute: {n: sum(n)}}\n"
LESS = "  less: {aggregate: small, by: [road], window: 1m, compute: {n: sum(n)}}\n"
FIRST = "  first: {deduplicate: s, by: [car, road], within: 1m}\n"
CARS = "  cars: {aggregate: first, by: [road], window: 1m, compute: {n: count(*)}}\n"
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


def test_the_plan_says_where_a_chain_ends() -> None:
    """At results that do not come in the order of event time. Filters between end no chain."""
    (note,) = notes(planned(FIRST + CARS, BOUND))
    assert "cars has no tentative results for what is missing before first" in note
    assert "forks read tentative results of windows, and first is deduplicate" in note
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
