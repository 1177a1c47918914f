"""The comparison of a repeated batch, and the error that names boxes."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.ids import BoxName
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.repairs import REPAIRS_MAX, Difference
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.query.lowered import Call, Lowered
from pipeline.spark.run.follower_outcome import difference, unlike, user_code
from pipeline.user_code.function import Function
from tests.unit.spark.batch.test_repeated import AT, LOWERED, ONE, TWO, WRITTEN, marker
from tests.unit.spark.batch.test_results import results

PLACE = "fragment tolls.speed"
INSPECTOR: Any = None
"""Nothing is refused or late."""


def facts(of: CommitMarker) -> BatchFacts:
    """What the execution of a batch without refused records says."""
    return BatchFacts(
        batch=of.batch,
        end=of.end,
        late_ms=of.late_ms,
        eviction_ms=of.eviction_ms,
        records=2,
        bad=0,
        unknown=(),
        late=0,
        largest={},
        skipped=0,
    )


def calling(lowered: Lowered, name: str, *, before: bool) -> Lowered:
    """The plan with a box that calls user code, before or behind its state."""
    call = Call(BoxName(name), Function("f.py:rated", "", (), 1_000))
    if not before:
        return replace(lowered, after=(*lowered.after, call))
    first, *others = lowered.paths
    return replace(lowered, paths=(replace(first, steps=(*first.steps, call)), *others))


def test_an_equal_outcome_has_no_difference() -> None:
    """Results may come in another order."""
    own = marker(WRITTEN.checksum)
    assert difference(AT, own, facts(own), results(TWO, ONE), INSPECTOR, LOWERED) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [({"end": {}}, "ends elsewhere"), ({"records": 3}, "records read: 3, not 2")],
)
def test_other_decisions_do_not_come_from_the_state(change: dict[str, Any], why: str) -> None:
    """Whatever the results are then."""
    own = marker(WRITTEN.checksum)
    other = replace(facts(own), **change)
    found = difference(AT, own, other, results(ONE), INSPECTOR, LOWERED)
    assert found is not None
    assert why in found.why
    assert not found.is_of_results


def test_other_results_alone_may_come_from_the_state() -> None:
    """Their number, or their checksum."""
    own = marker(WRITTEN.checksum)
    for again in (results(ONE), results(ONE, ONE)):
        found = difference(AT, own, facts(own), again, INSPECTOR, LOWERED)
        assert found is not None
        assert found.is_of_results


def test_boxes_are_named_once_repairs_do_not_help() -> None:
    """All that call user code, before and behind the state; the first difference names none."""
    called = calling(calling(LOWERED, "cleaned", before=True), "rated", before=False)
    assert user_code(called) == ("cleaned", "rated")
    assert user_code(LOWERED) == ()
    own, found = marker(None), Difference("results: 1, not 2")
    first = unlike(own, found, called, 0, PLACE)
    assert "deterministic" not in str(first)
    last = unlike(own, found, called, REPAIRS_MAX, PLACE)
    assert last.place == PLACE
    assert "also after 3 repairs in a row: results: 1, not 2" in last.message
    assert "box cleaned or rated is not deterministic" in last.message
    without = unlike(own, found, LOWERED, REPAIRS_MAX, PLACE)
    assert "not deterministic" not in str(without)
    assert "no box of it calls user code" in without.hint
