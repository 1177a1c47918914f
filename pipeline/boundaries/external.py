"""The boundary of a stream whose producers are not ours.

Each partition's progress is the largest event time in batches that the lane finished. A partition
that is idle steps aside; a partition that cannot be reached, or has records that are not finished,
or an open transaction, or is silent in a stream where silence means missing, does not: it holds the
stream back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.boundaries.profile import ExternalInput
from pipeline.ids import Millis, Offset, SteadyMillis
from pipeline.network.model import Silence

NEVER_USED_MS = 10_000
"""After how long a partition that has never held anything steps aside at the latest: no producer
has been cut off from it. Where a lane has only seen no record, one may have been: it began at the
end, retention has removed them, or none could be read."""


@dataclass(frozen=True, slots=True)
class StreamBoundary:
    """No more records of the stream come with event time at or below `at_ms`.

    `by_clock`: it moves because time passes, not because records came.
    """

    at_ms: Millis
    by_clock: bool = False


@dataclass(frozen=True, slots=True)
class InputTime:
    """How far one input lets a lane's event time move.

    Args:
        boundary: None while nothing can be said.
        idle: whether the input steps aside while another one of the lane is active.
        lateness_ms: by how much its records may be behind in event time; of a derived input, by how
            much at least the records of its sources may be.
    """

    boundary: StreamBoundary | None
    idle: bool = False
    lateness_ms: int = 0


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """What is known of one partition.

    Args:
        position: up to where the lane's finished batches have read.
        end: where the partition ended when that was last asked; None if it never answered.
        progress_ms: the largest event time in finished batches; None before any record.
        quiet_since_ms: since when, on our own observation, nothing has come (steady time).
        open: whether an open transaction had written behind `end` when that was last asked.
    """

    position: Offset
    end: Offset | None
    progress_ms: Millis | None
    quiet_since_ms: SteadyMillis
    open: bool = False


def is_idle(
    stream: ExternalInput, partition: PartitionSeen, observed_ms: SteadyMillis | None
) -> bool:
    """Whether a partition steps aside.

    `observed_ms` is when the partition's end was last asked for and told (steady time), None when
    the topic cannot be reached now. Silence is measured up to that observation, not up to the
    present: what came since is not known yet.
    """
    patience_ms = stream.idle_after_ms
    if partition.end == 0:
        patience_ms = min(patience_ms, NEVER_USED_MS)
    return (
        stream.silence is Silence.IDLE
        and observed_ms is not None
        and partition.end is not None
        and partition.position >= partition.end
        and not partition.open
        and observed_ms - partition.quiet_since_ms >= patience_ms
    )


def external_time(
    stream: ExternalInput,
    partitions: tuple[PartitionSeen, ...],
    observed_ms: SteadyMillis | None,
    floor_ms: Millis | None,
) -> InputTime:
    """The stream's boundary for one lane, and whether the stream is idle: all its partitions are.

    The event time of an idle stream goes on from where it was when the last record was seen, by
    the time observed since. `floor_ms` is how far it had come by then: an idle stream may have gone
    far beyond its progress before, and has to go on from there, neither back nor on the spot.
    """
    active = [p for p in partitions if not is_idle(stream, p, observed_ms)]
    if active:
        return InputTime(_least(stream, active), lateness_ms=stream.lateness_ms)
    if observed_ms is None or not partitions:
        return InputTime(None, lateness_ms=stream.lateness_ms)
    known = [p.progress_ms for p in partitions if p.progress_ms is not None]
    if not known:
        return InputTime(None, idle=True, lateness_ms=stream.lateness_ms)
    was_ms = _behind(stream, max(known))
    if floor_ms is not None:
        was_ms = max(was_ms, floor_ms)
    silent_ms = observed_ms - max(p.quiet_since_ms for p in partitions)
    moved = StreamBoundary(Millis(was_ms + max(0, silent_ms)), by_clock=True)
    return InputTime(moved, idle=True, lateness_ms=stream.lateness_ms)


def least_active(inputs: Sequence[InputTime]) -> StreamBoundary | None:
    """How far event time may move for a lane of these inputs; None while one has no boundary.

    It is the least boundary of the active inputs; one that is idle steps aside. When all are idle,
    time goes on from the largest. The lateness of an idle input counts in any case: its records
    may be so far behind the input that decides.
    """
    times = [(one.boundary, one.lateness_ms) for one in inputs if not one.idle]
    known = [(boundary, late_ms) for boundary, late_ms in times if boundary is not None]
    if len(known) < len(times):
        return None
    if times:
        boundary, late_ms = min(known, key=_at_ms)
        return _in_time(boundary, late_ms, inputs)
    known = [(one.boundary, one.lateness_ms) for one in inputs if one.boundary is not None]
    if not known:
        return None
    boundary, late_ms = max(known, key=_at_ms)
    return replace(_in_time(boundary, late_ms, inputs), by_clock=True)


def _in_time(
    boundary: StreamBoundary, lateness_ms: int, inputs: Sequence[InputTime]
) -> StreamBoundary:
    """As much of a boundary as leaves the records of idle inputs their lateness.

    Args:
        boundary: of the input that decides.
        lateness_ms: its lateness.
        inputs: all of them.
    """
    seen_ms = boundary.at_ms + lateness_ms
    at_ms = int(boundary.at_ms)
    for one in inputs:
        if one.idle:
            behind_ms = seen_ms - one.lateness_ms
            own_ms = behind_ms if one.boundary is None else one.boundary.at_ms
            at_ms = min(at_ms, max(behind_ms, own_ms))
    return replace(boundary, at_ms=Millis(at_ms))


def _at_ms(time: tuple[StreamBoundary, int]) -> Millis:
    return time[0].at_ms


def _least(stream: ExternalInput, active: list[PartitionSeen]) -> StreamBoundary | None:
    least: Millis | None = None
    for partition in active:
        if partition.progress_ms is None:
            return None
        behind = _behind(stream, partition.progress_ms)
        least = behind if least is None else min(least, behind)
    return None if least is None else StreamBoundary(least)


def _behind(stream: ExternalInput, progress: Millis) -> Millis:
    return Millis(progress - stream.lateness_ms - 1)
