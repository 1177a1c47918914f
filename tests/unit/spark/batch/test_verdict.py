"""Verdicts on batches, as facts in and decisions out."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Incarnation, Millis, NetworkVersion, Offset
from pipeline.lanes.dead_letter_limits import TooManyDeadLettersError
from pipeline.lanes.dead_letter_reasons import LATENESS, Reason
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.gap import Gap
from pipeline.markers.refused import Refused
from pipeline.network.model import Limit
from pipeline.planner.plan import Fragment
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.batch.results import Results
from pipeline.spark.batch.verdict import Executed, Inspection, Judge, Verdict
from pipeline.spark.query.hidden import NO_RESULT
from tests.unit.spark.support import fragment
from tests.unit.spark.write.sink_twins import AT, NOW, facts, first, rejected, stateless

Row = tuple[bytes, int, str | None]
FILTER, WINDOWS, JOINED = stateless(), fragment("tolls"), fragment("toll_notifications")
FAILED = "evaluation_failed:tolls:select.toll:1 / 0"
TIMES = st.integers(NOW - 3, NOW + 3)
RESULT = st.tuples(st.binary(max_size=2), TIMES, st.none())
RECORDS = st.lists(RESULT | st.tuples(st.just(b"-"), TIMES, st.just(NO_RESULT)))
GROUPS = st.lists(RESULT | st.tuples(st.just(b"{}"), TIMES, st.just(FAILED)))
REFUSED = st.lists(st.sampled_from((Reason.UNDECODABLE, Reason.LATE, Reason.PARTLY_LATE)))


def results(rows: Sequence[Row]) -> Results:
    """Rows of (value, time, reason)."""
    values, times, reasons = (list(c) for c in zip(*rows, strict=True)) if rows else ([], [], [])
    return Results(
        pa.table(
            {
                "key": pa.array([None] * len(rows), pa.binary()),
                "value": pa.array(values, pa.binary()),
                "timestamp_ms": pa.array(times, pa.int64()),
                "partition": pa.array([0] * len(rows), pa.int32()),
                "reason": pa.array(reasons, pa.string()),
            }
        )
    )


def refused(*reasons: Reason) -> list[Rejected]:
    """A record for each reason."""
    return [replace(rejected(why), offset=Offset(n)) for n, why in enumerate(reasons)]


def judge(of: Fragment) -> Judge:
    """The judge of a fragment without functions."""
    return Judge(of, NetworkVersion(1), {})


def executed(
    rows: Sequence[Row] = (), found: Sequence[Rejected] = (), event_ms: Millis | None = None
) -> Executed:
    """A batch whose metrics agree with what was found in it."""
    late = sum(one.why.reason.value in LATENESS for one in found)
    of_batch = facts(0, 5, bad=len(found) - late, late=late)
    return Executed(of_batch, event_ms, results(rows), found, {})


def promising(of: Fragment, boundary_ms: Millis | None) -> CommitMarker:
    """A marker with a promise."""
    return replace(first(of), boundary_ms=boundary_ms)


def written(verdict: Verdict) -> list[tuple[bytes, int]]:
    """Values and times of its results, in order."""
    return [(value, at_ms) for _, value, at_ms, _ in verdict.results.records(1)]


@given(RECORDS, REFUSED)
def test_results_of_a_filter_keep_their_order(rows: list[Row], reasons: list[Reason]) -> None:
    """Nothing else is written, and all is counted."""
    bad = [one for one in reasons if one is Reason.UNDECODABLE]
    found = judge(FILTER).judge(first(FILTER), executed(rows, refused(*bad)))
    assert written(found) == [(value, at_ms) for value, at_ms, why in rows if why is None]
    assert found.written.records == len(written(found))
    assert found.written.dead_letters == len(found.letters) == len(bad)
    assert found.written.late == 0


@given(GROUPS, REFUSED)
def test_results_of_windows_are_in_order_of_event_time(
    rows: list[Row], reasons: list[Reason]
) -> None:
    """Failed results and refused records are dead letters, and the late ones are counted."""
    found = judge(WINDOWS).judge(first(WINDOWS), executed(rows, refused(*reasons)))
    times = [at_ms for _, at_ms in written(found)]
    assert times == sorted(times)
    good = [(value, at_ms) for value, at_ms, why in rows if why is None]
    assert sorted(written(found)) == sorted(good)
    assert found.written.records == len(good)
    assert found.written.dead_letters == len(found.letters) == len(reasons) + len(rows) - len(good)
    assert found.written.late == sum(one.value in LATENESS for one in reasons)
    assert found.names_records is bool(reasons)


@given(REFUSED, st.randoms(use_true_random=False))
def test_the_order_in_which_records_are_found_decides_nothing(
    reasons: list[Reason], rng: Random
) -> None:
    """A second inspection may find them in another one."""
    found = refused(*reasons)
    again = rng.sample(found, len(found))
    one, other = (
        judge(WINDOWS).judge(first(WINDOWS), executed((), order)) for order in (found, again)
    )
    assert one.written == other.written


@given(RECORDS, st.none() | TIMES)
def test_a_result_of_a_filter_is_marked_exactly_up_to_the_promise(
    rows: list[Row], promised_ms: int | None
) -> None:
    """Of results above it none is, and without a promise none."""
    last = promising(FILTER, None if promised_ms is None else Millis(promised_ms))
    found = judge(FILTER).judge(last, executed(rows))
    below = [
        at_ms for _, at_ms in written(found) if promised_ms is not None and at_ms <= promised_ms
    ]
    marked = [at_ms for _, at_ms in written(found) if at_ms <= (found.late_ms or 0)]
    assert marked == below


@given(GROUPS, TIMES)
def test_no_result_of_windows_is_marked(rows: list[Row], promised_ms: int) -> None:
    """It would hide that the promise was broken."""
    found = judge(WINDOWS).judge(promising(WINDOWS, Millis(promised_ms)), executed(rows))
    assert found.late_ms is None


@given(st.none() | TIMES, st.none() | TIMES, st.sampled_from((FILTER, WINDOWS)))
def test_a_promise_never_decreases(
    promised_ms: int | None, event_ms: int | None, of: Fragment
) -> None:
    """Whatever event time came into force."""
    last = promising(of, None if promised_ms is None else Millis(promised_ms))
    at_ms = None if event_ms is None else Millis(event_ms)
    batch = executed((), (), at_ms)
    batch = replace(batch, facts=replace(batch.facts, eviction_ms=at_ms))
    found = judge(of).judge(last, batch)
    if promised_ms is not None:
        assert found.boundary_ms is not None
        assert found.boundary_ms >= promised_ms


@given(REFUSED, REFUSED)
def test_limits_count_over_batches(one: list[Reason], two: list[Reason]) -> None:
    """Those of two batches are those of one with the records of both; late ones never count."""
    limited = replace(WINDOWS, limits=(Limit(WINDOWS.inputs[0].name, 10**6),))
    of, start = judge(limited), first(limited)
    then = of.judge(start, executed((), refused(*one))).written.refused
    apart = of.judge(replace(start, refused=then), executed((), refused(*two))).written.refused
    assert apart == of.judge(start, executed((), refused(*one, *two))).written.refused
    bad = sum(why is Reason.UNDECODABLE for why in (*one, *two))
    assert apart == ({limited.inputs[0].name: Refused(None, {0: bad})} if bad else {})


@pytest.mark.parametrize(
    ("of", "changes", "late_ms"),
    [
        (FILTER, {"bad": 1}, None),
        (WINDOWS, {"bad": 1, "late_ms": NOW}, NOW),
        (WINDOWS, {"late": 2, "late_ms": NOW}, NOW),
        (JOINED, {"bad": 1, "late_ms": NOW}, None),
        (JOINED, {"late": 1, "late_ms": NOW}, NOW),
    ],
)
def test_a_batch_with_refused_or_late_records_is_inspected(
    of: Fragment, changes: dict[str, int], late_ms: Millis | None
) -> None:
    """Its records only; of groups always with the late ones, also if none was dropped."""
    found = judge(of).inspected(first(of), facts(0, 5, **changes))
    assert found == Inspection({AT: Offset(0)}, {AT: Offset(5)}, late_ms)
    assert judge(of).inspected(first(of), facts(0, 5, late_ms=NOW)) is None


def test_a_late_record_that_only_one_side_finds_is_no_verdict() -> None:
    """Of the query, which drops rows, and of the inspection, which names records."""
    batch = executed((), refused(Reason.LATE))
    with pytest.raises(BrokenInvariantError, match="finds no late record") as caught:
        judge(WINDOWS).judge(first(WINDOWS), replace(batch, rejected=()))
    assert caught.value.place == f"fragment {WINDOWS.names.id}"
    only_bad = replace(batch.facts, late=0, bad=1)
    with pytest.raises(BrokenInvariantError, match="no row of its batch was dropped"):
        judge(WINDOWS).judge(first(WINDOWS), replace(batch, facts=only_bad))


def test_records_refused_by_a_rebuild_are_added_to_its_marker() -> None:
    """To the counts of dead letters, and to those with a limit; without any it stays."""
    limited = replace(FILTER, limits=(Limit("sightings", 2),))
    start = first(limited)
    assert judge(limited).judge_rebuilt(start, ()) == (start, ())
    marker, letters = judge(limited).judge_rebuilt(start, refused(*[Reason.UNDECODABLE] * 2))
    assert marker.totals == replace(start.totals, dead_letters=2)
    assert marker.refused == {"sightings": Refused(None, {0: 2})}
    assert [letter.context.offset for letter in letters] == [0, 1]
    with pytest.raises(TooManyDeadLettersError):
        judge(limited).judge_rebuilt(marker, refused(Reason.UNDECODABLE))


def gap(until_ms: int) -> Gap:
    """A gap with results up to a time."""
    return Gap(Incarnation("two"), (), None, Millis(1), Millis(until_ms), Millis(1))


@given(GROUPS, TIMES)
def test_results_that_a_gap_touches_are_withheld(rows: list[Row], until_ms: int) -> None:
    """So are those that cannot be computed; nothing of them is counted."""
    after_gap = replace(first(WINDOWS), gap=gap(until_ms))
    found = judge(WINDOWS).judge(after_gap, executed(rows))
    beyond = [row for row in rows if row[1] > until_ms]
    alone = judge(WINDOWS).judge(first(WINDOWS), executed(beyond))
    assert sorted(written(found)) == sorted(written(alone))
    assert (found.letters, found.written) == (alone.letters, alone.written)


def test_pairs_of_later_rows_are_not_withheld() -> None:
    """They are right whatever is missing."""
    after_gap = replace(first(JOINED), gap=gap(NOW + 9))
    assert not JOINED.shape.waits
    assert len(written(judge(JOINED).judge(after_gap, executed([(b"x", NOW, None)])))) == 1
