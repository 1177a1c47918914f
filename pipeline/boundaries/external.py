"""Boundary of an external stream, computed from progress, ends and silence of its partitions.

A partition's progress is the largest event time in batches that the lane finished. An idle
partition is ignored. A partition holds the stream back if it is unreachable, has unfinished records
or an open transaction, or is silent in a stream where silence means missing records.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.boundaries.profile import ExternalInput
from pipeline.ids import Millis, Offset, SteadyMillis
from pipeline.network.model import Silence

NEVER_USED_MS = 10_000
"""Upper limit of the idle timeout for a partition that never contained a record: no producer of it
can be cut off. A partition of which the lane merely saw no record may have one: the lane began at
the end, retention removed the records, or none could be read."""


@dataclass(frozen=True, slots=True)
class StreamBoundary:
    """A promise: no more records of the stream with event time at or below `at_ms`.

    `by_clock`: it moves because time passes, not because records came.
    """

    at_ms: Millis
    by_clock: bool = False


@dataclass(frozen=True, slots=True)
class Slowest:
    """The partition that holds back the event time of a stream whose others are further.

    Args:
        partition: its number.
        furthest_ms: the boundary that the furthest active partition alone would have.
        silent_since_ms: start of its silence (steady time); None: it has records to be read.
    """

    partition: int
    furthest_ms: Millis
    silent_since_ms: SteadyMillis | None


@dataclass(frozen=True, slots=True)
class InputTime:
    """Boundary and idleness of one input, as the lane's event time uses them.

    Args:
        boundary: None while there is none.
        idle: whether the input is ignored while another input of the lane is active.
        lateness_ms: maximum lateness of its records; for a derived input, the least lateness of the
            records of its sources.
        slowest: of an external stream whose active partitions differ; None: they do not.
    """

    boundary: StreamBoundary | None
    idle: bool = False
    lateness_ms: int = 0
    slowest: Slowest | None = None


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """Observed state of one partition.

    Args:
        number: of the partition.
        position: next offset after the lane's finished batches.
        end: last stable offset in the latest answer; None if there was no answer.
        progress_ms: the largest event time in finished batches; None before any record.
        quiet_since_ms: start of the present silence, as this process observed it (steady time).
        open: whether an open transaction had written beyond `end` in the latest answer.
    """

    number: int
    position: Offset
    end: Offset | None
    progress_ms: Millis | None
    quiet_since_ms: SteadyMillis
    open: bool = False

    @property
    def is_read(self) -> bool:
        """Whether its end is known, and nothing before it or in a transaction is unread."""
        return self.end is not None and self.position >= self.end and not self.open


def is_idle(
    stream: ExternalInput, partition: PartitionSeen, observed_ms: SteadyMillis | None
) -> bool:
    """Whether a partition is idle, so that it does not hold its stream back.

    `observed_ms` is the time of the latest answer with the partition's end (steady time), None
    while the topic is unreachable. Silence is measured up to that observation, not up to the
    present: records since then are not yet visible.
    """
    timeout_ms = stream.idle_after_ms
    if partition.end == 0:
        timeout_ms = min(timeout_ms, NEVER_USED_MS)
    return (
        stream.silence is Silence.IDLE
        and observed_ms is not None
        and partition.is_read
        and observed_ms - partition.quiet_since_ms >= timeout_ms
    )


def external_time(
    stream: ExternalInput,
    partitions: tuple[PartitionSeen, ...],
    observed_ms: SteadyMillis | None,
    floor_ms: Millis | None,
) -> InputTime:
    """Compute the boundary of a stream for one lane; the stream is idle if all partitions are.

    Event time of an idle stream continues from its value at the last record, by the time observed
    since. `floor_ms` is that value: an idle stream may have moved far beyond its progress before,
    and must continue from there, neither back nor unchanged.
    """
    active = [p for p in partitions if not is_idle(stream, p, observed_ms)]
    if active:
        least, slowest = _least(stream, active), _slowest(stream, active)
        return InputTime(least, lateness_ms=stream.lateness_ms, slowest=slowest)
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
    """The target of a lane's event time; None while an active input has no boundary.

    It is the least boundary of the active inputs. When all are idle, it is the largest boundary,
    and moves with time. The lateness of an idle input is respected in any case: its records may be
    that far behind the input that decides.
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
    """Reduce a boundary so that records of idle inputs within their lateness are not late.

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


def _slowest(stream: ExternalInput, active: list[PartitionSeen]) -> Slowest | None:
    """The partition that determines `_least`, if another one alone would have a larger boundary."""
    known = [p.progress_ms for p in active if p.progress_ms is not None]
    if not known:
        return None
    slowest = min(active, key=lambda p: -1 if p.progress_ms is None else p.progress_ms)
    if slowest.progress_ms == max(known):
        return None
    since_ms = slowest.quiet_since_ms if slowest.is_read else None
    return Slowest(slowest.number, _behind(stream, max(known)), since_ms)


def _behind(stream: ExternalInput, progress: Millis) -> Millis:
    return Millis(progress - stream.lateness_ms - 1)
