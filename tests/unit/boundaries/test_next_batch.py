"""Decisions of a lane between two batches."""

from dataclasses import replace
from itertools import pairwise

import pytest

from pipeline.boundaries.lane_time import activity_read, ends_read, writer_of
from pipeline.boundaries.next_batch import (
    CUT_MOST,
    TRUSTED_LEAST,
    Batch,
    LastBatch,
    Limits,
    PassOn,
    Sample,
    Wait,
)
from pipeline.boundaries.release import (
    CLOCK_INTERVAL_MAX_MS,
    CLOCK_INTERVAL_MIN_MS,
    CLOCK_PART,
    SPENT_CLOCK_PART,
    STATE_INTERVAL_MS,
    STATELESS_INTERVAL_MS,
    Move,
    planned,
)
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis, TopicName
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.shape import Shape, Stateless
from tests.unit.boundaries.situations import (
    JOIN,
    SHAPES,
    SLIDING,
    STATEFUL,
    TEN,
    VISITS,
    Situation,
    ends_of,
    in_force,
    promising,
    situation,
)
from tests.unit.boundaries.support import CARS, SPEED, START_MS, at, marker, positions

# --- how far a batch reads ------------------------------------------------------------------------


def test_a_batch_reads_up_to_the_ends() -> None:
    """Of all partitions, if they are within the limit."""
    found = situation(marker(positions(CARS, 2, 5)), CARS, ends=ends_of((CARS, (4, 9))))
    assert found.decision == Batch(positions(CARS, 4, 9), None)


def test_a_lane_without_an_answer_of_the_brokers_waits() -> None:
    """There is nothing to read, and event time does not move either."""
    assert situation(marker(positions(CARS, 2, 5)), CARS).decision == Wait()


def test_a_lane_at_the_ends_waits_for_news() -> None:
    """Without records, and without event time, no batch would do anything."""
    found = situation(marker(positions(CARS, 4, 9)), CARS, ends=ends_of((CARS, (4, 9))))
    assert found.decision == Wait()


def test_a_batch_within_a_limit_reads_a_share_of_each_partition() -> None:
    """By what is unread there, and at least one offset: no partition waits for the others."""
    found = situation(
        marker({**positions(CARS, 0, 0), **positions(SPEED, 7)}),
        CARS,
        SPEED,
        ends=ends_of((CARS, (3_000, 1)), (SPEED, (1_007,))),
    )
    found = replace(found, limits=Limits(100))
    expected = {**positions(CARS, 74, 1), **positions(SPEED, 31)}
    assert found.decision == Batch(expected, None)


def test_with_a_full_state_only_what_is_behind_is_read() -> None:
    """It lets event time move, and the state become smaller; the limit holds for all else."""
    ends = ends_of((CARS, (4, 9)))

    def read(*progress: int | None, is_full: bool = True) -> tuple[bool, Positions | None]:
        known = {at(CARS, p): Millis(ms) for p, ms in enumerate(progress) if ms is not None}
        start = replace(marker(positions(CARS, 2, 5)), progress=known)
        limits = Limits(1_000, state_is_full=is_full)
        time, decision = replace(situation(start, CARS, ends=ends), limits=limits).decided
        return time.is_full, decision.end if isinstance(decision, Batch) else None

    assert read(50, 20) == read(50, None) == (True, positions(CARS, 2, 9))
    assert read(50, 50)[1] in (None, positions(CARS, 2, 5))
    assert read(None, None) == (True, None)
    assert read(50, 50, is_full=False) == (False, positions(CARS, 4, 9))


def test_a_batch_that_is_much_larger_than_the_last_ones_needs_a_sample() -> None:
    """Its records may be larger, too: a start at the end of a topic has sampled none."""
    found = situation(marker(positions(CARS, 0, 0)), CARS, ends=ends_of((CARS, (60_000, 60_000))))
    limits = Limits(400_000)
    assert replace(found, limits=limits).decision == Sample()
    sampled = replace(found, limits=limits.sampled(10_000))
    assert sampled.decision == Batch(positions(CARS, 5_000, 5_000), None)
    unanswered = replace(found, limits=limits.sampled(None))
    assert unanswered.decision == Batch(positions(CARS, 2_500, 2_500), None)
    later = limits.sampled(None)
    for _ in range(CUT_MOST):
        later = later.after(5_000)
    assert replace(found, limits=later).decision == Sample()


def test_before_the_first_sample_a_few_records_are_read_whatever_their_size() -> None:
    """Of an empty topic nothing can be sampled; its first records may be of a megabyte each."""
    limits = Limits(400_000).before_samples()
    few = situation(marker(positions(CARS, 0, 0)), CARS, ends=ends_of((CARS, (20, 25))))
    assert replace(few, limits=limits).decision == Batch(positions(CARS, 20, 25), None)
    more = situation(marker(positions(CARS, 0, 0)), CARS, ends=ends_of((CARS, (20, 26))))
    assert replace(more, limits=limits.after(1)).decision == Sample()
    assert limits.sampled(400_000) == Limits(400_000).sampled(400_000)


def test_what_was_sampled_is_read_although_small_partitions_add_to_it() -> None:
    """Else it would be sampled again and again."""
    ends = ends_of((CARS, (1_000_000_000, 1)), (SPEED, (1,)))
    start = marker({**positions(CARS, 0, 0), **positions(SPEED, 0)})
    found = situation(start, CARS, SPEED, ends=ends)
    found = replace(found, limits=Limits(400_000).sampled(400_000))
    assert found.decision == Batch({**positions(CARS, 399_999, 1), **positions(SPEED, 1)}, None)


def test_many_partitions_are_read_whatever_the_limit() -> None:
    """Each gets one offset at least, so a sample would change nothing."""
    many = [Offset(0)] * 6_000
    found = situation(marker(positions(CARS, *many)), CARS, ends=ends_of((CARS, (7,) * 6_000)))
    sampled = replace(found, limits=Limits(400_000).sampled(10))
    assert sampled.decision == Batch(positions(CARS, *[1] * 6_000), None)


def test_a_sample_is_remembered_while_batches_are_large() -> None:
    """Twice the last batch is as it was; after small ones, what comes next is sampled again."""
    limits = Limits(400_000).sampled(100_000)
    assert limits.after(100_000).trusted == 200_000
    small = limits
    for _ in range(5):
        small = small.after(10)
    assert small.trusted == TRUSTED_LEAST


def test_what_a_limit_cuts_again_and_again_is_sampled_again() -> None:
    """A sample of a few large records limits no batch of small ones for the rest of the run."""
    ends = ends_of((CARS, (60_000, 60_000, 60_000)))
    found = situation(marker(positions(CARS, 0, 0, 0)), CARS, ends=ends)
    limits = Limits(400_000).sampled(5)
    for _ in range(CUT_MOST):
        decision = replace(found, limits=limits).decision
        assert decision == Batch(positions(CARS, 1, 1, 1), None)
        limits = limits.after(3)
    assert replace(found, limits=limits).decision == Sample()
    assert isinstance(replace(found, limits=limits.sampled(None)).decision, Batch)
    assert isinstance(replace(found, limits=limits.after(2)).decision, Batch)


def test_a_partition_without_an_answer_is_not_read_on() -> None:
    """Nor one that the lane is not assigned: a restart adds it."""
    start = marker({**positions(CARS, 2, 5), **positions(SPEED, 1)})
    found = situation(start, CARS, SPEED, ends=ends_of((CARS, (4,))))
    assert found.decision == Batch({**start.end, at(CARS, 0): Offset(4)}, None)
    found = situation(marker(positions(CARS, 2)), CARS, ends=ends_of((CARS, (4, 9))))
    assert found.decision == Batch(positions(CARS, 4), None)


def test_an_older_answer_never_moves_a_batch_back() -> None:
    """The positions may be beyond it."""
    found = situation(marker(positions(CARS, 6, 5)), CARS, ends=ends_of((CARS, (4, 7))))
    assert found.decision == Batch(positions(CARS, 6, 7), None)


def test_redriven_records_are_read_with_the_others() -> None:
    """Their topic is another one of the same input."""
    redrive = InputPartition(CARS.stream, TopicName("tolls.speed.redrive"), 0)
    start = marker({**positions(CARS, 2), redrive: Offset(3)})
    ends = ends_of((CARS, (2,)))
    ends = replace(ends, by_topic={**ends.by_topic, redrive.topic: {0: Offset(8)}})
    found = situation(start, CARS, ends=ends)
    assert found.decision == Batch({**start.end, redrive: Offset(8)}, None)


def test_batches_are_at_least_a_pace_apart() -> None:
    """The first one of a process begins at once."""
    paced = Limits(100, pace_ms=200)
    found = situation(marker(positions(CARS, 2, 5)), CARS, ends=ends_of((CARS, (4, 9))))
    first = replace(found, limits=paced)
    assert isinstance(first.decision, Batch)
    again = replace(first, last=LastBatch(found.last.end, SteadyMillis(START_MS - 50)))
    assert again.decision == Wait(SteadyMillis(START_MS + 150))
    assert again.later(SteadyMillis(START_MS + 149)).decision == again.decision
    assert isinstance(again.later(SteadyMillis(START_MS + 150)).decision, Batch)


# --- event time in a batch ------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_brings_the_event_time_that_is_due_into_force(shape: Shape) -> None:
    """By records of finished batches: those that it reads have unknown event times."""
    start = replace(in_force(shape, positions(CARS, 2), 89), progress={at(CARS, 0): Millis(5_100)})
    found = situation(start, CARS, shape=shape, ends=ends_of((CARS, (4,))))
    decision = found.decision
    assert isinstance(decision, Batch)
    assert decision.end == positions(CARS, 4)
    assert decision.event_ms is not None
    assert 89 < decision.event_ms <= 5_100 - 5_001


@pytest.mark.parametrize("shape", SHAPES)
def test_a_boundary_counts_in_the_batch_that_covers_its_positions_and_not_before(
    shape: Shape,
) -> None:
    """After them no record at or below it comes; so the batch closes what they complete."""
    start = in_force(shape, positions(SPEED, 0, 0), 9)
    found = situation(start, SPEED, shape=shape, ends=ends_of((SPEED, (3, 4))))
    found = promising(promising(found, 19, 2, 2), 29, 3, 5)
    assert found.decision == Batch(positions(SPEED, 3, 4), Millis(18 if shape is SLIDING else 19))
    near = replace(found, limits=Limits(3))
    assert near.decision == Batch(positions(SPEED, 1, 1), None)


@pytest.mark.parametrize("shape", STATEFUL)
def test_event_time_alone_is_worth_a_batch_of_a_lane_with_state(shape: Shape) -> None:
    """It closes what is complete."""
    start = in_force(shape, positions(SPEED, 3), 9)
    found = promising(situation(start, SPEED, shape=shape, ends=ends_of((SPEED, (3,)))), 19, 3)
    decision = found.decision
    assert decision == Batch(positions(SPEED, 3), Millis(18 if shape is SLIDING else 19))
    assert found.decided[0].release.moved_at_ms == START_MS


def test_windows_that_none_ends_need_no_batch() -> None:
    """Event time between two ends closes nothing."""
    start = in_force(TEN, positions(SPEED, 3), 9)
    found = promising(situation(start, SPEED, shape=TEN, ends=ends_of((SPEED, (3,)))), 18, 3)
    assert found.decision == Wait()


def test_a_jump_is_cut_into_steps_that_follow_each_other_at_once() -> None:
    """The interval is for what is due, not for what is behind."""
    start = in_force(JOIN, positions(SPEED, 3), 9)
    found = promising(situation(start, SPEED, shape=JOIN), 10**9, 3)
    time, decision = found.decided
    assert decision == Batch(positions(SPEED, 3), Millis(9 + 64 * 60_000))
    found = replace(found, time=time).finished(in_force(JOIN, found.last.end, 9 + 64 * 60_000))
    assert found.decision == Batch(positions(SPEED, 3), Millis(9 + (64 + 1_024) * 60_000))


@pytest.mark.parametrize("shape", STATEFUL)
def test_a_first_event_time_before_1970_is_not_executed(shape: Shape) -> None:
    """Spark takes a watermark of 0 as none: the batch would not begin."""
    found = situation(marker(positions(SPEED, 3)), SPEED, shape=shape)
    assert promising(found, 0, 3).decision == Wait()


def test_a_movement_that_is_not_due_waits_while_nothing_is_to_be_read() -> None:
    """A batch with records is executed without it."""
    start = in_force(JOIN, positions(SPEED, 3), 9)
    found = promising(situation(start, SPEED, shape=JOIN), 19, 3)
    moved = planned(found.time.release, Move(Millis(9), cut=False), SteadyMillis(START_MS - 100))
    found = replace(found, time=replace(found.time, release=moved))
    due_ms = SteadyMillis(START_MS - 100 + STATE_INTERVAL_MS)
    assert found.decision == Wait(due_ms)
    assert found.later(due_ms).decision == Batch(positions(SPEED, 3), Millis(19))
    reading = replace(found, ends=ends_of((SPEED, (5,))))
    assert reading.decision == Batch(positions(SPEED, 5), None)
    assert reading.decided[0].release == moved


# --- lanes without state --------------------------------------------------------------------------


def passing() -> Situation:
    """A stateless lane that has read everything, with more event time than it has passed on."""
    start = in_force(Stateless(), positions(SPEED, 3), 9)
    return promising(situation(start, SPEED, ends=ends_of((SPEED, (3,)))), 19, 3)


def test_a_lane_without_state_passes_event_time_on_without_a_batch() -> None:
    """There is nothing that Spark would have to do."""
    time, decision = passing().decided
    assert decision == PassOn(Millis(19))
    assert time.release.moved_at_ms == START_MS


def test_a_lane_without_state_passes_event_time_on_with_a_batch_if_there_is_one() -> None:
    """At once: a marker is written anyway."""
    found = replace(passing(), ends=ends_of((SPEED, (5,))))
    moved = planned(found.time.release, Move(Millis(9), cut=False), START_MS)
    found = replace(found, time=replace(found.time, release=moved))
    assert found.decision == Batch(positions(SPEED, 5), Millis(19))


def test_boundaries_are_passed_on_in_an_interval() -> None:
    """Each one is a transaction."""
    found = passing()
    found = replace(found, time=found.decided[0])
    found = promising(found.finished(in_force(Stateless(), found.last.end, 19)), 29, 3)
    due_ms = SteadyMillis(START_MS + STATELESS_INTERVAL_MS)
    assert found.decision == Wait(due_ms)
    assert found.later(due_ms).decision == PassOn(Millis(29))


def test_nothing_is_passed_on_while_the_last_batch_is_being_written() -> None:
    """Spark plans while a stateless lane writes: its marker comes first, and is news."""
    found = passing()
    writing = replace(found, last=LastBatch(positions(SPEED, 5)), ends=ends_of((SPEED, (5,))))
    assert writing.decision == Wait()
    written = writing.finished(in_force(Stateless(), positions(SPEED, 5), 9))
    assert written.decision == PassOn(Millis(19))


# --- the clock ------------------------------------------------------------------------------------


SPENT_MS = Millis(1_000_000)
"""A promise beyond every result of the records that were read."""


def silent(shape: Shape, seconds: int, boundary_ms: Millis | None = None) -> Situation:
    """A lane whose stream is silent, watched once a second; what it decides takes effect.

    `boundary_ms`: its promise, which no batch raises.
    """
    start = replace(
        in_force(shape, positions(CARS, 5), 84_999),
        progress={at(CARS, 0): Millis(90_000)},
        boundary_ms=boundary_ms,
    )
    found = situation(start, CARS, shape=shape, ends=ends_of((CARS, (5,))))
    for _ in range(seconds):
        found = carried_out(watched(found, 1_000))
    return found


def watched(found: Situation, milliseconds: int) -> Situation:
    """The same after an answer of the brokers, by then the same one."""
    later = found.later(SteadyMillis(found.now + milliseconds))
    assert later.ends is not None
    return replace(later, time=ends_read(later.time, found.ends, later.ends))


def carried_out(found: Situation) -> Situation:
    """The same after what the lane does next, if anything."""
    time, decision = found.decided
    found = replace(found, time=time)
    if isinstance(decision, Wait | Sample) or decision.event_ms is None:
        return found
    effect = replace(
        in_force(found.shape, found.last.end, decision.event_ms),
        progress=found.time.progress,
        boundary_ms=SPENT_MS if found.time.is_spent else None,
    )
    return found.finished(effect)


@pytest.mark.parametrize("shape", [JOIN, TEN, VISITS, Stateless()])
@pytest.mark.parametrize("seconds", [30, 640])
@pytest.mark.parametrize("boundary_ms", [None, SPENT_MS])
def test_a_quiet_lane_rests_in_proportion_to_its_silence(
    shape: Shape, seconds: int, boundary_ms: Millis | None
) -> None:
    """So a day of silence costs no more batches than a few minutes of traffic.

    Longer if its state has nothing to release.
    """
    found = silent(shape, seconds, boundary_ms)
    spent = boundary_ms is not None and not isinstance(shape, Stateless)
    part = SPENT_CLOCK_PART if spent else CLOCK_PART
    moved_ms: list[int] = []
    while len(moved_ms) < 4:
        before_ms = found.time.release.moved_at_ms
        found = carried_out(watched(found, 500))
        at_ms = found.time.release.moved_at_ms
        if at_ms is not None and at_ms != before_ms:
            moved_ms.append(at_ms)
    for earlier, later in pairwise(moved_ms):
        rest_ms = min(CLOCK_INTERVAL_MAX_MS, (earlier - START_MS) // part)
        assert rest_ms <= later - earlier < rest_ms + 500


@pytest.mark.parametrize("seconds", [30, 200, 640])
def test_a_lane_in_a_silence_moves_when_it_said_that_it_would(seconds: int) -> None:
    """Although the silence grows while it waits."""
    found = silent(JOIN, seconds)
    while not isinstance(first := found.decision, Wait) or first.until_ms is None:
        found = carried_out(watched(found, 500))
    until_ms = first.until_ms
    while until_ms - found.now > 1_000:
        found = watched(found, 1_000)
        assert found.decision == first
    assert isinstance(watched(found, until_ms - found.now).decision, Batch)


def test_a_lane_of_idle_writers_rests_by_their_silence_not_by_its_own_age() -> None:
    """It may have run for days when they fall silent, and its last windows are still to close."""
    start = in_force(TEN, positions(SPEED, 3), 9)
    found = situation(start, SPEED, shape=TEN, ends=ends_of((SPEED, (3,))))
    found = found.later(SteadyMillis(START_MS + 24 * 3_600_000))
    moved = planned(found.time.release, Move(Millis(9), cut=False), found.now)
    found = promising(replace(found, time=replace(found.time, release=moved)), 19, 3)
    for _ in range(5):
        found = found.later(SteadyMillis(found.now + 1_000))
        time = activity_read(found.time, writer_of(SPEED), Epoch(1), idle=True, at_ms=found.now)
        found = replace(found, time=time)
    assert found.decided[0].idle
    assert found.decision == Batch(positions(SPEED, 3), Millis(19))
    just = planned(found.time.release, Move(Millis(9), cut=False), found.now)
    found = replace(found, time=replace(found.time, release=just))
    assert found.decision == Wait(SteadyMillis(found.now + CLOCK_INTERVAL_MIN_MS))
