"""Results of a batch that is executed again, compared with its marker."""

from dataclasses import replace

import pytest

from pipeline.ids import BoxName, Incarnation, Millis
from pipeline.markers.commit_marker import CommitMarker, Judged, Totals
from pipeline.markers.gap import Gap
from pipeline.spark.batch.repeated import other_results
from pipeline.spark.batch.results import Results
from pipeline.spark.query.lower import lower
from pipeline.spark.query.lowered import Call
from pipeline.user_code.function import Function
from tests.unit.spark.batch.test_results import results
from tests.unit.spark.support import fragment, lowering_context
from tests.unit.spark.write.sink_twins import first

AT = first(fragment("tolls"))
LOWERED = lower(fragment("tolls"), lowering_context(fragment("tolls")))
ONE, TWO = (None, b"one", 1, None), (None, b"two", 2, None)
WRITTEN = results(ONE, TWO, (None, b"{}", 3, "why"))


def marker(checksum: int | None) -> CommitMarker:
    """Of a batch with `WRITTEN`."""
    judged = Judged(2, 0, late=False, refused=0, failed=0, results=checksum)
    return replace(AT, totals=Totals(records_out=AT.totals.records_out + 2), judged=judged)


@pytest.mark.parametrize(
    ("again", "why"),
    [
        (results(TWO, ONE), ""),
        (results(ONE), "results: 1, not 2"),
        (results(ONE, TWO, TWO), "results: 3, not 2"),
        (results(ONE, ONE), "other values"),
        (results(ONE, (None, b"twO", 2, None)), "other values"),
    ],
)
def test_results_are_compared_by_number_and_contents(again: Results, why: str) -> None:
    """In any order."""
    found = other_results(AT, marker(WRITTEN.checksum), again, LOWERED)
    assert why in found
    assert bool(found) == bool(why)


def test_without_a_checksum_their_number_is_compared() -> None:
    """An earlier version has written the marker."""
    assert other_results(AT, marker(None), results(ONE, ONE), LOWERED) == ""
    assert other_results(AT, marker(None), results(ONE), LOWERED) == "results: 1, not 2"


def test_what_a_function_makes_of_results_is_not_compared() -> None:
    """It may depend on the time; the state does not."""
    called = replace(
        LOWERED, after=(Call(BoxName("rated"), Function("f.py:rated", "", (), 1_000)),)
    )
    assert other_results(AT, marker(WRITTEN.checksum), results(ONE, ONE), called) == ""
    assert other_results(AT, marker(WRITTEN.checksum), results(ONE), called) != ""


def test_results_that_a_gap_touches_are_not_compared() -> None:
    """The owner has computed them, and has not published them."""
    gap = Gap(Incarnation("two"), (), None, Millis(1), Millis(1), Millis(1))
    at, written = replace(AT, gap=gap), results(TWO)
    once = replace(marker(written.checksum), totals=Totals(records_out=AT.totals.records_out + 1))
    assert other_results(at, once, results(ONE, TWO), LOWERED) == ""
    assert other_results(AT, once, results(ONE, TWO), LOWERED) == "results: 2, not 1"
