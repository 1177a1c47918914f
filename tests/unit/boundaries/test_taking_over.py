"""Take-over of an input's tentative records by a fork."""

from dataclasses import replace

import pytest

from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.lane_time import Steered
from pipeline.boundaries.next_batch import Batch, Limits, Sample, Wait
from pipeline.boundaries.tentative_input import TentativeInput
from pipeline.ids import BatchId, Millis, Offset, TopicName
from pipeline.markers.positions import InputPartition
from tests.unit.boundaries.situations import (
    TEN,
    Situation,
    ends_of,
    in_force,
    promising,
    situation,
)
from tests.unit.boundaries.support import SPEED, STRICT_CARS, at, marker, positions

TENTATIVE = TopicName("tolls.speed.tentative")


def tentative(*offsets: int) -> dict[InputPartition, Offset]:
    """Positions in the tentative topic."""
    return {
        InputPartition(SPEED.stream, TENTATIVE, number): Offset(offset)
        for number, offset in enumerate(offsets)
    }


def offer(cut_ms: int, complete_ms: int, *ends: int, begin: tuple[int, ...] = (5, 6)) -> Steered:
    """Of tentative records that begin at 5 and 6."""
    there = {number: Offset(end) for number, end in enumerate(ends)}
    found = TentativeInput(
        stream=SPEED.stream,
        stable=SPEED.topic,
        topic=TENTATIVE,
        generation="2.1",
        cut_ms=Millis(cut_ms),
        begin={number: Offset(offset) for number, offset in enumerate(begin)},
        complete=PendingBoundary(Millis(complete_ms), there),
    )
    return Steered(tentative=(found,))


def fork(*, ends: tuple[int, int] = (3, 4), covered_ms: int = 19) -> Situation:
    """A fork of windows that has read stable records up to 3 and 4, and their boundary."""
    end = {**positions(SPEED, 3, 4), **tentative(0, 0)}
    found = situation(in_force(TEN, end, 9), SPEED, shape=TEN, ends=ends_of((SPEED, ends)))
    found = promising(found, covered_ms, 3, 4)
    time = replace(found.time, release=replace(found.time.release, in_force_ms=Millis(covered_ms)))
    return replace(found, time=time)


def steered(found: Situation, steered_by: Steered) -> Situation:
    """The same, steered."""
    return replace(found, time=replace(found.time, steered=steered_by))


def test_a_fork_reads_tentative_records_from_the_cut_on() -> None:
    """And no more stable ones; event time follows the boundaries of the generation."""
    found = steered(fork(ends=(7, 8)), offer(19, 29, 8, 9))
    expected = {**positions(SPEED, 3, 4), **tentative(8, 9)}
    assert found.decision == Batch(expected, Millis(29), tentative(5, 6))


def test_it_goes_on_to_the_next_boundary() -> None:
    """Where it is, not where it began."""
    found = steered(fork(), offer(19, 29, 8, 9))
    time, decision = found.decided
    assert isinstance(decision, Batch)
    done = replace(in_force(TEN, decision.end, 29), batch=BatchId(2), end=decision.end)
    found = replace(found, time=time, last=replace(found.last, end=decision.end)).finished(done)
    assert found.decision == Wait()
    found = steered(found, offer(19, 39, 12, 9))
    expected = {**positions(SPEED, 3, 4), **tentative(12, 9)}
    assert found.decision == Batch(expected, Millis(39))


def test_what_does_not_answer_is_not_read() -> None:
    """As of stable inputs; event time waits for it."""
    found = steered(fork(), offer(19, 29, 8, 9))
    silent = {(TENTATIVE, 1): found.now}
    found = replace(found, time=replace(found.time, silent=silent))
    expected = {**positions(SPEED, 3, 4), **tentative(8, 6)}
    assert found.decision == Batch(expected, None, tentative(5, 6))


def test_much_is_sampled_where_it_begins() -> None:
    """Not at what was before in the tentative topic, which may be gone."""
    found = steered(fork(), offer(19, 29, 90_000, 9))
    found = replace(found, limits=Limits(100_000))
    assert found.decision == Sample(tentative(5, 6))


def test_with_a_full_state_it_reads_what_lets_event_time_move() -> None:
    """Its only input is not behind another one, so nothing is read."""
    found = steered(fork(), offer(19, 29, 8, 9))
    found = replace(found, limits=Limits(100, state_is_full=True))
    time, decision = found.decided
    assert (time.is_full, decision) == (True, Wait())


@pytest.mark.parametrize("why", ["another cut", "a later record", "in a batch", "partitions"])
def test_what_does_not_fit_is_not_taken_over(why: str) -> None:
    """Else records would count twice, or not at all."""
    found, offered = fork(), offer(19, 29, 8, 9)
    match why:
        case "another cut":
            found = fork(covered_ms=29)
        case "a later record":
            progress = {at(SPEED, 1): Millis(20)}
            found = replace(found, time=replace(found.time, progress=progress))
        case "in a batch":
            end = {**found.last.end, **positions(SPEED, 3, 5)}
            found = replace(found, last=replace(found.last, end=end))
        case _:
            offered = offer(19, 29, 8, begin=(5,))
    assert found.decided[0].taken == {}
    assert steered(found, offered).decided[0].taken == {}
    assert steered(fork(), offer(19, 29, 8, 9)).decided[0].taken.keys() == {SPEED.stream}


def test_a_stable_boundary_moves_event_time_no_more() -> None:
    """What it covers is in the tentative records, with other values."""
    found = steered(fork(), offer(19, 29, 8, 9))
    found = replace(found, time=found.decided[0])
    later = promising(found, 99, 3, 4)
    assert later.time.writers == found.time.writers


def test_without_state_external_records_are_read_no_more() -> None:
    """What is made of them is stable, and would be published again."""
    end = {**positions(SPEED, 3, 4), **tentative(0, 0), **positions(STRICT_CARS, 5)}
    first = marker(end, boundary_ms=19)
    found = situation(first, SPEED, STRICT_CARS, ends=ends_of((SPEED, (7, 8)), (STRICT_CARS, (9,))))
    found = promising(found, 19, 3, 4)
    assert found.decision == Batch(
        {**end, **positions(SPEED, 7, 8), at(STRICT_CARS, 0): Offset(9)}, None
    )
    decision = steered(found, offer(19, 29, 8, 9)).decision
    assert decision == Batch({**end, **tentative(8, 9)}, None, tentative(5, 6))
