"""Event time of one lane: from what is read and finished to its movements."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from pipeline.boundaries.derived import PendingBoundary, WriterSeen, with_boundary
from pipeline.boundaries.ends import ENDS_FRESH_MS, Answer, Ends, ends_of
from pipeline.boundaries.held import HeldBack
from pipeline.boundaries.lane_time import (
    LaneTime,
    Writers,
    activity_read,
    batch_finished,
    begin,
    boundary_read,
    ends_read,
    promised,
    writer_of,
)
from pipeline.boundaries.next_batch import LastBatch, Limits, Sample, Wait, next_batch
from pipeline.boundaries.open_transactions import OPEN_LONG_MS, held_open
from pipeline.boundaries.profile import DerivedInput, LaneProfile
from pipeline.boundaries.promise import watermark_for
from pipeline.boundaries.release import took_effect
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis, StreamName, TopicId, TopicName
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition
from pipeline.network.boxes.shape import Joined
from pipeline.network.model import Silence
from tests.unit.boundaries.support import (
    CARS,
    SPEED,
    START_MS,
    STRICT_CARS,
    VOLUME,
    at,
    lane,
    marker,
    positions,
)

JOIN = Joined(60_000)


class Observed:
    """The event time of a lane that reads nothing itself, with a clock and the last ends."""

    def __init__(
        self, profile: LaneProfile, start: CommitMarker, writers: Writers | None = None
    ) -> None:
        """Begin at time 0."""
        self.now = START_MS
        self.ends: Ends | None = None
        self.time: LaneTime = begin(profile, start, writers or {}, self.now)

    def wait(self, milliseconds: int) -> None:
        """Let time pass."""
        self.now = SteadyMillis(self.now + milliseconds)

    def answer(
        self, open_: Mapping[InputPartition, int] | None = None, **ends: tuple[int, ...]
    ) -> None:
        """Feed the ends of topics; `cars` is the external one.

        `open_`: the number of records of open transactions behind these.
        """
        names = {
            "cars": CARS.topic,
            "table": TABLE.topic,
            "speed": SPEED.topic,
            "volume": VOLUME.topic,
        }
        found = {
            names[name]: {p: Offset(o) for p, o in enumerate(offsets)}
            for name, offsets in ends.items()
        }
        more = {(at.topic, at.partition): count for at, count in (open_ or {}).items()}
        written = {
            topic: {p: Offset(o + more.get((topic, p), 0)) for p, o in offsets.items()}
            for topic, offsets in found.items()
        }
        before, self.ends = self.ends, ends_of(self.ends, self.now, Answer(found, written))
        self.time = ends_read(self.time, before, self.ends)

    def finish(self, found: CommitMarker) -> None:
        """Feed a finished batch."""
        self.time = batch_finished(self.time, found, 0, self.now)

    def promise(self, stream: DerivedInput, at_ms: int, *offsets: int, epoch: int = 1) -> None:
        """Feed a boundary of a derived input's writer."""
        boundary = PendingBoundary(Millis(at_ms), {p: Offset(o) for p, o in enumerate(offsets)})
        self.time = boundary_read(self.time, writer_of(stream), Epoch(epoch), boundary)

    def idle(self, stream: DerivedInput, *, epoch: int = 1) -> None:
        """Feed a report of idleness of a derived input's writer."""
        writer, at_ms = writer_of(stream), self.now
        self.time = activity_read(self.time, writer, Epoch(epoch), idle=True, at_ms=at_ms)

    def move(self) -> int | None:
        """The event time of the next batch or marker, which takes effect at once; None: it stays.

        What such a batch reads is not finished before `finish`.
        """
        last, limits = LastBatch(self.time.positions), Limits(100)
        self.time, found = next_batch(self.time, last, self.ends, limits, self.now)
        if isinstance(found, Wait | Sample) or found.event_ms is None:
            return None
        shape, to_ms = self.time.profile.shape, found.event_ms
        effect = marker({}, boundary_ms=to_ms, eviction_ms=watermark_for(shape, to_ms))
        self.time = replace(self.time, release=took_effect(shape, self.time.release, effect, 0))
        return to_ms

    def watch(
        self,
        milliseconds: int,
        open_: Mapping[InputPartition, int] | None = None,
        **ends: tuple[int, ...],
    ) -> list[int]:
        """Feed the ends every half second; all event times that the lane moves to meanwhile."""
        moves: list[int] = []
        for _ in range(0, milliseconds, 500):
            self.wait(500)
            self.answer(open_, **ends)
            value = self.move()
            if value is not None:
                moves.append(value)
        return moves


def test_event_time_moves_to_the_least_boundary_of_the_inputs() -> None:
    """An external and a derived input: the slower one determines it."""
    start = marker({**positions(CARS, 0, 0), **positions(SPEED, 0, 0)})
    seen = Observed(lane(CARS, SPEED), start)
    seen.promise(SPEED, 70_000, 0, 0)
    assert seen.move() is None
    progress = {at(CARS, 0): 90_000, at(CARS, 1): 80_000}
    seen.finish(marker(start.end, batch=0, progress=progress))
    assert seen.move() == 70_000
    seen.wait(1_000)
    seen.promise(SPEED, 999_000, 0, 0)
    assert seen.move() == 80_000 - 5_000 - 1


def test_a_boundary_waits_for_the_finished_positions() -> None:
    """Records of an unfinished batch do not count: they may be read again in other batches."""
    seen = Observed(lane(SPEED, VOLUME), marker({**positions(SPEED, 0, 0), **positions(VOLUME, 0)}))
    seen.promise(SPEED, 70_000, 3, 4)
    seen.promise(VOLUME, 80_000, 0)
    assert seen.move() is None
    seen.finish(marker({**positions(SPEED, 3, 3), **positions(VOLUME, 0)}, batch=0))
    assert seen.move() is None
    seen.finish(marker({**positions(SPEED, 3, 4), **positions(VOLUME, 0)}, batch=1))
    assert seen.move() == 70_000


def test_a_boundary_of_another_writer_is_ignored() -> None:
    """Only the fragment that writes the stream can promise for it."""
    seen = Observed(lane(SPEED), marker(positions(SPEED, 0)))
    seen.promise(replace(SPEED, writer="eve.tolls.speed"), 70_000, 0)
    assert seen.move() is None


def test_boundaries_read_before_the_lane_started_count() -> None:
    """The node keeps them for lanes that start later, so an idle upstream need not repeat them."""
    writers = {
        writer_of(SPEED): with_boundary(
            WriterSeen(), Epoch(1), PendingBoundary(Millis(70_000), {0: Offset(2)})
        )
    }
    assert Observed(lane(SPEED), marker(positions(SPEED, 2)), writers).move() == 70_000
    assert Observed(lane(SPEED), marker(positions(SPEED, 1)), writers).move() is None


def test_other_topics_of_an_input_are_not_its_partitions() -> None:
    """Redriven records are in a separate topic; they are not the stream."""
    redrive = InputPartition(CARS.stream, TopicName("tolls.speed.redrive"), 7)
    start = marker({**positions(CARS, 5), redrive: Offset(3)}, progress={at(CARS, 0): 90_000})
    assert Observed(lane(CARS), start).move() == 84_999


def test_an_idle_stream_moves_with_the_clock_after_idle_after() -> None:
    """Not earlier; then event time rises as fast as time passes, once a second."""
    start = marker(positions(CARS, 5, 5), progress={at(CARS, 0): 90_000, at(CARS, 1): 95_000})
    seen = Observed(lane(CARS), start)
    assert seen.move() == 84_999
    assert seen.watch(9_500, cars=(5, 5)) == []
    moves = seen.watch(5_000, cars=(5, 5))
    assert moves[0] == 95_000 - 5_000 - 1 + 10_000
    assert {after - before for before, after in pairwise(moves)} == {1_000}


def test_an_unreachable_broker_stops_the_clock_and_resets_the_silence() -> None:
    """Missing is not idle: records that were delayed meanwhile may still arrive."""
    start = marker(positions(CARS, 5), progress={at(CARS, 0): 90_000})
    seen = Observed(lane(CARS), start)
    moves = seen.watch(12_000, cars=(5,))
    assert seen.watch(60_000) == []
    assert seen.watch(9_500, cars=(5,)) == []
    again = seen.watch(1_000, cars=(5,))
    assert again
    assert again[0] - moves[-1] <= 12_000


def test_an_outdated_response_counts_as_none() -> None:
    """If the loop gets no responses any more, an idle stream is missing: it blocks event time."""
    start = marker(positions(CARS, 5, 5), progress={at(CARS, 0): 90_000, at(CARS, 1): 30_000})
    seen = Observed(lane(CARS), start)
    assert seen.watch(11_000, cars=(5, 9)) == [24_999]
    for pause_ms, progress, expected in ((0, 99_000, 93_999), (ENDS_FRESH_MS + 1, 199_000, None)):
        seen.wait(pause_ms)
        both = {at(CARS, 0): 90_000, at(CARS, 1): progress}
        seen.finish(marker(positions(CARS, 5, 9), progress=both))
        assert seen.move() == expected


def test_a_partition_with_unfinished_records_is_not_idle() -> None:
    """A slow lane must not treat its own backlog as silence."""
    start = marker(positions(CARS, 5), progress={at(CARS, 0): 90_000})
    seen = Observed(lane(CARS), start)
    assert seen.move() == 84_999
    assert seen.watch(60_000, cars=(6,)) == []


def test_a_new_partition_with_records_blocks_event_time_until_it_is_read() -> None:
    """The ends contain it before the lane has read it."""
    start = marker(positions(CARS, 5), progress={at(CARS, 0): 90_000})
    seen = Observed(lane(CARS), start)
    seen.answer(cars=(5, 2))
    assert seen.move() is None


def test_silence_that_means_missing_never_moves_event_time() -> None:
    """However long it lasts."""
    start = marker(positions(STRICT_CARS, 5), progress={at(STRICT_CARS, 0): 90_000})
    seen = Observed(lane(STRICT_CARS), start)
    assert seen.move() == 84_999
    assert seen.watch(120_000, cars=(5,)) == []


def test_a_restart_in_a_long_silence_continues_from_the_event_time_in_force() -> None:
    """Other inputs must not wait until the silence has lasted as long again."""
    start = marker(
        positions(CARS, 5),
        progress={at(CARS, 0): 90_000},
        eviction_ms=5_000_000,
    )
    seen = Observed(lane(CARS, shape=JOIN), start)
    seen.promise(SPEED, 9_000_000, 0)
    moves = seen.watch(12_000, cars=(5,))
    assert moves[0] == 5_000_000 + 10_000


def test_event_time_never_falls_when_an_idle_stream_becomes_active() -> None:
    """A record far behind is late; event time stays until its inputs have reached it again."""
    start = marker(positions(CARS, 5), progress={at(CARS, 0): 90_000})
    seen = Observed(lane(CARS), start)
    moves = seen.watch(30_000, cars=(5,))
    seen.finish(marker(positions(CARS, 6), batch=1, progress={at(CARS, 0): 91_000}))
    assert seen.move() is None
    assert seen.watch(9_000, cars=(6,)) == []
    later = seen.watch(3_000, cars=(6,))
    assert min(later) > max(moves)
    # It was at most at the time of the clock, and continues from there.
    assert later[0] <= 84_999 + 30_000 + 10_000 + 1_000


def test_a_gap_in_the_observation_resets_the_silence() -> None:
    """Records that producers delayed during the gap may still arrive."""
    seen = Observed(lane(CARS), marker(positions(CARS, 5), progress={at(CARS, 0): 90_000}))
    seen.move()
    seen.watch(5_000, cars=(5,))
    seen.wait(ENDS_FRESH_MS + 1)
    seen.answer(cars=(5,))
    assert seen.move() is None
    assert seen.watch(9_500, cars=(5,)) == []
    assert seen.watch(1_000, cars=(5,))


def test_a_boundary_of_a_deleted_topic_is_ignored() -> None:
    """Its positions refer to other records, also where name and writer are the same."""
    old = replace(SPEED, topic_id=TopicId("speed-0"))
    promised = PendingBoundary(Millis(70_000), {0: Offset(0)})
    writers = {writer_of(old): with_boundary(WriterSeen(), Epoch(9), promised)}
    seen = Observed(lane(SPEED), marker(positions(SPEED, 0)), writers)
    seen.promise(old, 80_000, 0, epoch=9)
    assert seen.move() is None
    seen.promise(SPEED, 499, 0, epoch=1)
    assert seen.move() == 499


def test_a_boundary_without_a_new_partition_does_not_count() -> None:
    """The lane waits until the writer names it, and continues at the same event time."""
    seen = Observed(lane(SPEED), marker(positions(SPEED, 5, 5, 0)))
    seen.promise(SPEED, 70_000, 5, 5)
    assert seen.move() is None
    seen.promise(SPEED, 70_000, 5, 5, 3)
    assert seen.move() is None
    seen.finish(marker(positions(SPEED, 5, 5, 3), batch=0))
    assert seen.move() == 70_000


def test_an_open_transaction_blocks_event_time_like_unread_records() -> None:
    """However long; its silence begins at the end of the transaction."""
    start = marker(positions(CARS, 5, 5), progress={at(CARS, 0): 90_000, at(CARS, 1): 30_000})
    seen = Observed(lane(CARS), start)
    assert seen.move() == 24_999
    assert seen.watch(60_000, {at(CARS, 1): 1}, cars=(5, 5)) == []
    assert seen.watch(9_500, cars=(5, 5)) == []
    assert seen.watch(1_000, cars=(5, 5))


def test_a_long_open_transaction_is_reported_where_it_alone_blocks_a_lane() -> None:
    """Not one of many short ones, and not while the lane has not read up to it."""
    seen = Observed(lane(CARS), marker(positions(CARS, 5, 5), progress={at(CARS, 0): 90_000}))

    def named() -> list[tuple[str, int, int]]:
        held = held_open(seen.time, seen.ends, seen.now)
        return [(one.topic, one.partition, one.offset) for one in held]

    for end in range(5, 65):  # a transaction after the other
        seen.finish(marker(positions(CARS, 5, end), batch=end))
        seen.watch(500, {at(CARS, 1): 1}, cars=(5, end))
        assert named() == []
    seen.watch(OPEN_LONG_MS, {at(CARS, 1): 1}, cars=(5, 64))
    assert named() == [(CARS.topic, 1, 64)]
    seen.watch(OPEN_LONG_MS * 2, {at(CARS, 0): 1}, cars=(7, 64))
    assert named() == []


TABLE = replace(CARS, stream=StreamName("table"), topic=TopicName("table"))


def test_an_idle_input_does_not_block_the_others() -> None:
    """A table whose newest row is from yesterday does not count once it is idle."""
    start = marker(
        {**positions(CARS, 5), **positions(TABLE, 2)},
        progress={at(CARS, 0): 90_000_000, at(TABLE, 0): 1_000},
    )
    seen = Observed(lane(CARS, TABLE), start)
    assert seen.move() == 1_000 - 5_001
    moves = []
    for second in range(12):
        seen.wait(1_000)
        seen.answer(cars=(6 + second,), table=(2,))
        progress = {at(CARS, 0): 90_000_000 + second, at(TABLE, 0): 1_000}
        end = {**positions(CARS, 6 + second), **positions(TABLE, 2)}
        seen.finish(marker(end, batch=second, progress=progress))
        moves.append(seen.move())
    assert moves[:10] == [None] * 10
    assert moves[10:] == [90_000_000 - 5_001 + second for second in (10, 11)]


def test_when_all_inputs_are_idle_the_clock_continues_from_the_largest() -> None:
    """Not from the event time of the one that has been idle for longest."""
    start = marker(
        {**positions(CARS, 5), **positions(TABLE, 2)},
        progress={at(CARS, 0): 90_000, at(TABLE, 0): 1_000},
    )
    seen = Observed(lane(CARS, TABLE), start)
    moves = seen.watch(11_000, cars=(5,), table=(2,))
    assert moves[-1] >= 90_000 - 5_001 + 10_000
    assert seen.time.idle


def test_an_input_without_any_record_does_not_block_the_others() -> None:
    """As long as it is reachable."""
    end = {**positions(CARS, 5), **positions(TABLE, 0)}
    seen = Observed(lane(CARS, TABLE), marker(end, progress={at(CARS, 0): 90_000}))
    assert seen.watch(11_000, cars=(5,)) == []
    assert seen.watch(11_000, cars=(5,), table=(0,)) != []


def test_a_derived_input_does_not_block_while_its_writer_is_idle() -> None:
    """As long as the writer reports it, and all records that it has written are finished."""
    end = {**positions(CARS, 5), **positions(SPEED, 3)}
    strict = replace(CARS, silence=Silence.MISSING)
    seen = Observed(lane(strict, SPEED), marker(end, progress={at(CARS, 0): 90_000}))
    seen.promise(SPEED, 7_000, 3)
    assert seen.move() == 7_000
    for _ in range(4):
        seen.wait(1_000)
        seen.idle(SPEED)
        seen.answer(cars=(5,), speed=(4,))
        assert seen.move() is None
    seen.answer({at(SPEED, 0): 1}, cars=(5,), speed=(3,))
    assert seen.move() is None
    seen.answer(cars=(5,), speed=(3,))
    assert seen.move() == 90_000 - 5_001
    assert promised(seen.time) == {SPEED.stream: 7_000}
    seen.wait(6_000)
    seen.answer(cars=(5,), speed=(3,))
    progress = {at(CARS, 0): 99_000}
    seen.finish(marker(end, batch=1, progress=progress))
    assert seen.move() is None


def test_the_end_of_a_topic_before_its_writer_was_idle_does_not_count() -> None:
    """Its last records may be behind that end."""
    end = {**positions(CARS, 5), **positions(SPEED, 3)}
    seen = Observed(lane(CARS, SPEED), marker(end, progress={at(CARS, 0): 90_000}))
    seen.promise(SPEED, 7_000, 3)
    assert seen.move() == 7_000
    seen.answer(cars=(5,), speed=(3,))
    for _ in range(4):
        seen.wait(1_000)
        seen.idle(SPEED)
    assert seen.move() is None
    seen.answer(cars=(5,), speed=(3,))
    assert seen.move() == 90_000 - 5_001


def test_a_derived_input_without_a_promise_can_be_idle_too() -> None:
    """Its writer has read nothing, and its inputs are idle."""
    end = {**positions(CARS, 5), **positions(SPEED, 0)}
    seen = Observed(lane(CARS, SPEED), marker(end, progress={at(CARS, 0): 90_000}))
    for _ in range(5):
        seen.wait(1_000)
        seen.idle(SPEED)
        seen.answer(cars=(5,), speed=(0,))
    assert seen.move() == 90_000 - 5_001


def test_an_external_input_that_holds_event_time_back_is_reported() -> None:
    """With amount and start; not a window of a fragment, which is always behind."""
    end = {**positions(CARS, 5), **positions(TABLE, 2), **positions(SPEED, 0)}
    progress = {at(CARS, 0): 90_000, at(TABLE, 0): 1_000}
    seen = Observed(lane(CARS, TABLE, SPEED), marker(end, progress=progress))
    seen.move()
    assert seen.time.held == HeldBack(SPEED.stream, None, START_MS)
    seen.wait(500)
    seen.promise(SPEED, 99_000, 0)
    seen.move()
    assert seen.time.held == HeldBack(TABLE.stream, 99_000 - (1_000 - 5_001), seen.now)
    since_ms = seen.now
    seen.wait(500)
    seen.move()
    assert seen.time.held is not None
    assert seen.time.held.since_ms == since_ms
    seen.finish(marker(end, batch=1, progress={**progress, at(TABLE, 0): 89_000}))
    seen.move()
    assert seen.time.held is not None
    near = {at(CARS, 0): 99_000, at(TABLE, 0): 98_000}
    seen.finish(marker(end, batch=2, progress=near))
    seen.move()
    assert seen.time.held is None


def held_after(seen: Observed, seconds: int, every_ms: int = 2_000) -> HeldBack | None:
    """What is reported after records without event time were read, one after the other."""
    end = 5
    for number in range(seconds * 1_000 // every_ms):
        seen.wait(every_ms)
        end += 1
        seen.answer(cars=(end,))
        progress = {at(CARS, 0): 90_000}
        seen.finish(marker(positions(CARS, end), batch=number, progress=progress))
        seen.move()
    return seen.time.held


def test_records_that_bring_no_event_time_are_reported_after_a_start_too() -> None:
    """From when they begin to come."""
    start = marker(positions(CARS, 5), progress={at(CARS, 0): 90_000}, boundary_ms=84_999)
    seen = Observed(lane(CARS), start)
    assert held_after(seen, 28) is None
    found = held_after(seen, 4)
    assert found is not None
    assert (found.stream, found.by_ms, found.silent_since_ms) == (CARS.stream, 0, None)


def test_a_rare_record_is_not_reported_before_it_is_read() -> None:
    """The silence before it is no time in which records brought nothing."""
    start = marker(positions(CARS, 5), progress={at(CARS, 0): 90_000}, boundary_ms=84_999)
    seen = Observed(lane(CARS), start)
    for _ in range(120):
        seen.wait(500)
        seen.answer(cars=(5,))
        seen.move()
    seen.wait(500)
    seen.answer(cars=(6,))
    seen.move()
    assert seen.time.held is None
