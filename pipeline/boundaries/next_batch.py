"""Plan of a lane's next batch: how far it reads, and the event time in force in it.

Spark executes exactly the planned batch. A batch closes what its event time releases, also of
records that it reads itself; its records are late by the event time of the batch before.
"""

from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from pipeline.boundaries import lane_time, taking_over
from pipeline.boundaries import release as releases
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.external import StreamBoundary
from pipeline.boundaries.lane_time import LaneTime
from pipeline.boundaries.release import Move, Silence
from pipeline.ids import Millis, Offset, SteadyMillis
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.shape import Stateless

TRUSTED_LEAST: Final = 5_000
"""So many offsets are read at once without a sample of these, if others were sampled before."""
TRUSTED_FIRST: Final = 45
"""The same before the first sample: records of a megabyte, the largest unless Kafka is configured
otherwise, that a batch may hold."""
CUT_MOST: Final = 16
"""After so many batches in a row that the limit has cut, the next records are sampled again: they
may be smaller by now."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a lane's batches.

    Args:
        offsets: maximum number of offsets in a batch, by the sizes of records that were sampled.
        pace_ms: least time between the beginnings of two batches; 0: none.
        state_is_full: whether the state has reached its limit: then only what is behind the rest is
            read, which lets event time move and the state become smaller.
        trusted: a batch of more offsets needs a new sample: its records may be larger than those
            of the batches before.
        cut: the number of batches in a row that the limit has cut since the last sample.
        least: the minimum of `trusted`.
    """

    offsets: int
    pace_ms: int = 0
    state_is_full: bool = False
    trusted: int = TRUSTED_LEAST
    cut: int = 0
    least: int = TRUSTED_LEAST

    def before_samples(self) -> "Limits":
        """The same limits, while the size of no record is known."""
        return replace(self, trusted=TRUSTED_FIRST, least=TRUSTED_FIRST)

    def sampled(self, offsets: int | None) -> "Limits":
        """After the next records were sampled, of which so many fit; None: there was no answer.

        Then the next batches are as large as is trusted, and a later one is sampled again.
        """
        if offsets is None:
            return replace(self, offsets=min(self.offsets, self.trusted), cut=0)
        trusted = max(TRUSTED_LEAST, offsets)
        return replace(self, offsets=offsets, trusted=trusted, cut=0, least=TRUSTED_LEAST)

    def after(self, read: int) -> "Limits":
        """After a batch of so many offsets: one of twice as many needs no sample.

        A larger one does after a while, since records may have become larger. Partitions get whole
        shares of the limit, which are more than half of it together.
        """
        trusted = max(self.least, 2 * read, self.trusted // 2)
        return replace(self, trusted=trusted, cut=self.cut + 1 if 2 * read >= self.offsets else 0)

    def wants_sample(self, read: int, partitions: int) -> bool:
        """Whether the next records are sampled before a batch of so many offsets is planned.

        Each partition gets one offset at least, whatever a sample says: so a batch may be somewhat
        larger than what was sampled.
        """
        return min(read, self.offsets) > max(self.trusted, partitions) or (
            self.cut >= CUT_MOST and 2 * read >= self.offsets
        )


@dataclass(frozen=True, slots=True)
class LastBatch:
    """Where a lane's query is.

    Args:
        end: the position of every partition after the last planned batch, finished or not.
        at_ms: when it was planned (steady time); None: not by this process.
    """

    end: Positions
    at_ms: SteadyMillis | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Execute a batch.

    Args:
        end: where it ends, of every partition.
        event_ms: the event time that comes into force in it; None: that of the batch before.
        begin: where it begins, of partitions that do not go on at the end of the batch before.
    """

    end: Positions
    event_ms: Millis | None
    begin: Positions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PassOn:
    """Publish a boundary without a batch; for a lane without state, and nothing to read."""

    event_ms: Millis


@dataclass(frozen=True, slots=True)
class Wait:
    """Execute nothing until there is news, or until a steady time."""

    until_ms: SteadyMillis | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """Sample the sizes of the records that come next, and decide again.

    Args:
        begin: as of a `Batch`.
    """

    begin: Positions = field(default_factory=dict)


Decision: TypeAlias = Batch | PassOn | Wait | Sample


def next_batch(
    time: LaneTime,
    last: LastBatch,
    ends: Ends | None,
    limits: Limits,
    now_ms: SteadyMillis,
) -> tuple[LaneTime, Decision]:
    """Decide what a lane does next, between two batches.

    Args:
        time: the lane's event time, after its finished batches.
        last: where its query is.
        ends: the latest answer of the brokers; a partition that is missing is not read on.
        limits: of its batches.
        now_ms: steady time.

    Returns:
        The event time with what holds it back, and the decision.
    """
    time = taking_over.taken_over(time, last.end)
    ends = taking_over.seen(ends, time)
    time, _ = lane_time.observe(time, ends, now_ms)
    if last.at_ms is not None and now_ms < last.at_ms + limits.pace_ms:
        return time, Wait(SteadyMillis(last.at_ms + limits.pace_ms))
    begin = taking_over.begins(time, last.end)
    begun = {**last.end, **begin}
    start = _behind(time, begun) if limits.state_is_full else begun
    time = replace(time, is_full=limits.state_is_full)
    read = start if ends is None else _within(start, ends, limits.offsets)
    if limits.wants_sample(offsets_between(start, read), len(read)):
        return time, Sample(begin)
    end = {**begun, **read}
    move, until_ms = _move(time, end, ends, now_ms)
    if end == begun and move is None:
        return time, Wait(until_ms)
    if end != begun or move is None or not isinstance(time.profile.shape, Stateless):
        return _planned(time, move, now_ms), Batch(end, None if move is None else move.to_ms, begin)
    if time.positions != last.end:  # its last batch is still being written
        return time, Wait()
    return _planned(time, move, now_ms), PassOn(move.to_ms)


def offsets_between(start: Positions, end: Positions) -> int:
    """The number of offsets from some positions to later ones."""
    return sum(offset - start.get(at, offset) for at, offset in end.items())


def again(time: LaneTime, batch: Batch, now_ms: SteadyMillis) -> LaneTime:
    """The event time of a lane that executes a batch which was planned before it started."""
    move = None if batch.event_ms is None else Move(batch.event_ms, cut=False)
    return _planned(time, move, now_ms)


def _move(
    time: LaneTime, end: Positions, ends: Ends | None, now_ms: SteadyMillis
) -> tuple[Move | None, SteadyMillis | None]:
    """The movement of event time in a batch with this end; if it is not due yet, when it is."""
    shape, release = time.profile.shape, time.release
    target = lane_time.target_after(time, end, ends, now_ms)
    move = None if target is None else releases.next_move(shape, release, target)
    if target is None or move is None:
        return None, None
    if isinstance(shape, Stateless) and end != time.positions:
        return move, None  # a batch carries it
    due_ms = releases.due_ms(shape, release, move, _silence(time, target))
    return (move, None) if due_ms is None or now_ms >= due_ms else (None, due_ms)


def _behind(time: LaneTime, positions: Positions) -> Positions:
    """The positions of partitions whose event time is behind that of another one."""
    reached = {
        at: _reached(time, at)
        for at in positions
        if any((at.input, at.topic) == (one.stream, one.topic) for one in time.profile.inputs)
    }
    furthest = max((ms for ms in reached.values() if ms is not None), default=None)
    return {
        at: positions[at]
        for at, ms in reached.items()
        if furthest is not None and (ms is None or ms < furthest)
    }


def _reached(time: LaneTime, at: InputPartition) -> Millis | None:
    writer = time.writers.get(at.input)
    return time.progress.get(at) if writer is None else writer.covered_ms


def _silence(time: LaneTime, target: StreamBoundary) -> Silence | None:
    """The silence of all inputs when event time last moved, if only the clock moves it.

    Not the silence by now: then the time at which a movement is due would move on with the clock.
    """
    moved_at_ms = time.release.moved_at_ms
    if not target.by_clock or moved_at_ms is None:
        return None
    idle = (seen.idle_since_ms for seen in time.writers.values())
    since = (*time.quiet.values(), *(at_ms for at_ms in idle if at_ms is not None))
    silent_ms = max(0, moved_at_ms - max(since, default=time.started_ms))
    return Silence(silent_ms, time.is_spent)


def _planned(time: LaneTime, move: Move | None, now_ms: SteadyMillis) -> LaneTime:
    if move is None:
        return time
    return replace(time, release=releases.planned(time.release, move, now_ms))


def _within(start: Positions, ends: Ends, most: int) -> Positions:
    """The ends of a batch that reads at most `most` offsets; each partition gets its share."""
    unread = {
        at: there - offset
        for at, offset in start.items()
        if (there := ends.readable(at.topic, at.partition)) is not None and there > offset
    }
    total = sum(unread.values())
    if total == 0:
        return start
    if total > most:
        unread = {at: max(1, number * most // total) for at, number in unread.items()}
    return {at: Offset(offset + unread.get(at, 0)) for at, offset in start.items()}
