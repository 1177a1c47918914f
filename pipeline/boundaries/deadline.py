"""Since when event time is wanted that would release results, and what holds it back. Pure.

With an availability bound X, available input is processed within X beyond the normal latency
although other input is missing: delay, process and correct (Balazinska et al., SIGMOD 2005). An
event time is *wanted* from the moment on at which the fastest partition has passed it. What has
been wanted for 0.9 X, less the time that a batch takes, is due.

While a lane is behind its inputs nothing is due: X says nothing about the past.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from pipeline.boundaries import release as releases
from pipeline.boundaries.derived import WriterSeen
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.external import InputTime, StreamBoundary, is_idle, least_active
from pipeline.boundaries.lane_time import (
    LaneTime,
    finished_in,
    input_times,
    observed_ms,
    partitions_seen,
)
from pipeline.boundaries.profile import DerivedInput, ExternalInput
from pipeline.ids import Millis, Offset, SteadyMillis, StreamName
from pipeline.markers.positions import InputPartition

RESOLUTION: Final = 50
"""Event times that are first wanted within this part of the bound count as wanted from the first
of these moments on: so the number of moments that are kept has a limit."""
LEVEL_LEAST_MS: Final = 10_000
"""A lane is level if it has read what its topics had so long ago, or before the bound if that is
longer: batches of some seconds make no lane behind."""
_LONG_AGO: Final = SteadyMillis(0)
_OUTER: Final = 2
"""Moments that are kept of those older than the bound: the first and the last."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The event time that a lane would have if no partition were missing.

    Args:
        event_ms: the event time.
        alone: the event time that each external partition alone would lead to; None: it has had no
            record. Those that are idle or step aside are left out.
        derived: the newest boundary of the partitions of derived inputs whose writers hold results
            back; None: there is none.
    """

    event_ms: Millis
    alone: Mapping[InputPartition, Millis | None]
    derived: Mapping[InputPartition, Millis | None] = field(default_factory=dict)

    def missing(self, event_ms: Millis) -> frozenset[InputPartition]:
        """The external partitions that have not passed an event time."""
        return frozenset(at for at, ms in self.alone.items() if ms is None or ms < event_ms)

    def behind(self, event_ms: Millis) -> frozenset[InputPartition]:
        """The partitions of derived inputs whose stable boundary has not passed an event time."""
        return frozenset(at for at, ms in self.derived.items() if ms is None or ms < event_ms)


@dataclass(frozen=True, slots=True)
class Since:
    """An event time, and since when it is wanted (steady time)."""

    event_ms: Millis
    since_ms: SteadyMillis


Awaited = Mapping[StreamName, Sequence[Since]]
"""Boundaries that the writers of derived inputs hold back, in order, and since when each is wanted
there: the waits of both overlap."""
NOTHING: Final[Awaited] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Watch:
    """What was observed of a lane whose results have an availability bound.

    Args:
        bound_ms: the bound.
        moments: event times that are wanted, in order, and would release results that are not
            released when last looked at.
        level_ms: since when the lane has read what its topics had some time before, see
            `LEVEL_LEAST_MS`; None: it is behind.
        before: the ends that it has to have read to be level.
        wanted: what was wanted when last looked at; None: nothing.
        as_of_ms: what came before was read (steady time): whether more is missing is not known yet.
    """

    bound_ms: int
    moments: tuple[Since, ...] = ()
    level_ms: SteadyMillis | None = None
    before: Ends | None = None
    wanted: Wanted | None = None
    as_of_ms: SteadyMillis = _LONG_AGO

    def ago(self, ms: int) -> int:
        """So long before the time up to which all is known (steady time)."""
        return self.as_of_ms - ms


@dataclass(frozen=True, slots=True)
class Held:
    """Results that are held back.

    Args:
        since_ms: since when the first of them is wanted (steady time).
        for_ms: for how long they are known to be held back.
        counts_ms: how much of that counts, because the lane was level; None: it is behind.
        event_ms: the event time that would release them.
        causes: the external partitions that have not passed it, and those of derived inputs whose
            writers hold results back.
    """

    since_ms: SteadyMillis
    for_ms: int
    counts_ms: int | None
    event_ms: Millis
    causes: frozenset[InputPartition]


def wanted(
    time: LaneTime,
    ends: Ends | None,
    now_ms: SteadyMillis,
    awaited: Mapping[StreamName, Millis] = MappingProxyType({}),
) -> Wanted | None:
    """The event time of a lane if each of its active external partitions were as far as the first.

    Derived inputs hold it back as they do, unless their writers say what they hold back.

    Args:
        time: of the lane.
        ends: the latest answer of the brokers, fresh or not.
        now_ms: steady time.
        awaited: the boundaries of derived inputs that their writers hold back.
    """
    if time.unloaded:
        return None
    fresh = ends if ends is not None and ends.fresh(now_ms) else None
    behind = _partitions(time, fresh)
    found = dict(input_times(time, ends, now_ms))
    newest_ms = {
        stream: _newest_ms(time.writers[stream])
        for stream in awaited
        if stream in time.writers and not found[stream].idle
    }
    for stream, own_ms in newest_ms.items():
        at_ms = awaited[stream] if own_ms is None else max(own_ms, awaited[stream])
        found[stream] = replace(found[stream], boundary=StreamBoundary(at_ms))
    derived = [found[one.stream] for one in time.profile.inputs if isinstance(one, DerivedInput)]
    seen_ms = _furthest([ms for ms in behind.values() if ms is not None], derived)
    if seen_ms is None:
        return None
    late_ms = {one.stream: one.lateness_ms for one in time.profile.inputs}
    for stream in {at.input for at in behind}:
        moved = StreamBoundary(Millis(seen_ms - late_ms[stream] - 1))
        found[stream] = InputTime(moved, lateness_ms=late_ms[stream])
    target = least_active(tuple(found.values()))
    if target is None:
        return None
    alone = {
        at: None if ms is None else Millis(ms - late_ms[at.input] - 1) for at, ms in behind.items()
    }
    return Wanted(target.at_ms, alone, _by_partition(time, newest_ms))


def look(
    watch: Watch,
    time: LaneTime,
    ends: Ends | None,
    now_ms: SteadyMillis,
    awaited: Awaited = NOTHING,
) -> Watch:
    """Observe a lane; to be called several times within the bound.

    Args:
        watch: what was observed before.
        time: of the lane.
        ends: the latest answer of the brokers.
        now_ms: steady time.
        awaited: what the writers of its derived inputs hold back.
    """
    watch = replace(
        _with_level(watch, time, ends, now_ms), as_of_ms=_as_of(watch, time, ends, now_ms)
    )
    moments = tuple(one for one in watch.moments if _releases(time, one.event_ms))
    newest: Mapping[StreamName, Millis] = {}
    for newest, since_ms in _by_moment(awaited):
        then = wanted(time, ends, now_ms, newest)
        if then is not None and _releases(time, then.event_ms):
            at_ms = max(since_ms, moments[-1].since_ms) if moments else since_ms
            moments = _added(moments, Since(then.event_ms, at_ms), watch.bound_ms)
    found = wanted(time, ends, now_ms, newest)
    if found is None:
        return replace(watch, moments=moments, wanted=None)
    if _releases(time, found.event_ms):
        moments = _added(moments, Since(found.event_ms, now_ms), watch.bound_ms)
    return replace(watch, moments=moments, wanted=found)


def held(watch: Watch, of: AbstractSet[StreamName] | None = None) -> Held | None:
    """The results of a lane that were held back when it was last looked at.

    What every partition has passed is not held back: it is about to be released.

    Args:
        watch: what was observed.
        of: only causes in these inputs count; None: in all.
    """
    if watch.wanted is None:
        return None
    level_ms = watch.level_ms
    for one in watch.moments:
        causes = watch.wanted.missing(one.event_ms) | watch.wanted.behind(one.event_ms)
        if of is not None:
            causes = frozenset(at for at in causes if at.input in of)
        if causes:
            for_ms = max(0, watch.as_of_ms - one.since_ms)
            counts_ms = None
            if level_ms is not None:
                counts_ms = max(0, min(for_ms, watch.as_of_ms - level_ms))
            return Held(one.since_ms, for_ms, counts_ms, one.event_ms, causes)
    return None


def wanted_before(watch: Watch, at_ms: int) -> Millis | None:
    """The largest event time that was wanted at a steady time; None: none that is not in force."""
    found = (one.event_ms for one in watch.moments if one.since_ms <= at_ms)
    return max(found, default=None)


def _by_moment(awaited: Awaited) -> Iterator[tuple[Mapping[StreamName, Millis], SteadyMillis]]:
    """What was held back of each input at each of the moments, in order."""
    for at_ms in sorted({one.since_ms for those in awaited.values() for one in those}):
        before = (
            (stream, [one.event_ms for one in those if one.since_ms <= at_ms])
            for stream, those in awaited.items()
        )
        yield {stream: max(found) for stream, found in before if found}, at_ms


def _newest_ms(seen: WriterSeen) -> Millis | None:
    """The newest boundary that was read: what it promises is not missing, but about to be read."""
    return seen.pending[-1].boundary_ms if seen.pending else seen.covered_ms


def _by_partition(
    time: LaneTime, newest_ms: Mapping[StreamName, Millis | None]
) -> dict[InputPartition, Millis | None]:
    """What was read of some inputs, for each of their partitions."""
    return {
        InputPartition(one.stream, one.topic, partition): newest_ms[one.stream]
        for one in time.profile.inputs
        if one.stream in newest_ms
        for partition in finished_in(time.positions, one)
    }


def _furthest(progress: Sequence[Millis], derived: Sequence[InputTime]) -> Millis | None:
    """The largest event time that has come: of partitions, and by boundaries of derived inputs."""
    bounds = (
        Millis(one.boundary.at_ms + one.lateness_ms + 1)
        for one in derived
        if one.boundary is not None and not one.idle
    )
    return max((*progress, *bounds), default=None)


def _partitions(time: LaneTime, ends: Ends | None) -> dict[InputPartition, Millis | None]:
    """Progress of the external partitions that are neither idle nor step aside."""
    return {
        at: seen.progress_ms
        for one in time.profile.inputs
        if isinstance(one, ExternalInput)
        for at, seen in partitions_seen(time, one, ends).items()
        if not is_idle(one, seen, observed_ms(one, ends))
    }


def _releases(time: LaneTime, event_ms: Millis) -> bool:
    """Whether event time would move, and so let something out."""
    shape, release = time.profile.shape, time.release
    return releases.next_move(shape, release, StreamBoundary(event_ms)) is not None


def _read_of_inputs(time: LaneTime) -> Iterator[tuple[InputPartition, Offset]]:
    """The positions in the inputs' own topics, of partitions that do not step aside."""
    topics = {one.stream: one.topic for one in time.profile.inputs}
    for at, offset in time.positions.items():
        if topics.get(at.input) == at.topic and at not in time.steered.without:
            yield at, offset


def _as_of(watch: Watch, time: LaneTime, ends: Ends | None, now_ms: SteadyMillis) -> SteadyMillis:
    """The time before which everything was read: a batch that runs may bring what is missing."""
    by_topic = {} if ends is None else ends.by_topic
    unread = any(
        offset < by_topic.get(at.topic, {}).get(at.partition, offset)
        for at, offset in _read_of_inputs(time)
    )
    if not unread:
        return now_ms
    return max(watch.as_of_ms, time.read_until_ms or watch.as_of_ms)


def _with_level(watch: Watch, time: LaneTime, ends: Ends | None, now_ms: SteadyMillis) -> Watch:
    """Compare what was read with what the topics had; unreachable partitions do not count.

    A lane whose state is full, since event time waits, reads little: that does not make it behind.
    Afterwards it is, until it has read what it left unread.
    """
    if ends is None:
        return watch
    if time.is_full and watch.level_ms is not None:
        return replace(watch, before=None)
    before = watch.before
    if before is None:
        return replace(watch, before=ends, level_ms=None)
    is_read = all(
        offset >= before.by_topic.get(at.topic, {}).get(at.partition, offset)
        for at, offset in _read_of_inputs(time)
        if at.partition in ends.by_topic.get(at.topic, {})
    )
    if is_read:
        level_ms = now_ms if watch.level_ms is None else watch.level_ms
        return replace(watch, level_ms=level_ms, before=ends)
    if now_ms - before.read_at_ms > max(watch.bound_ms, LEVEL_LEAST_MS):
        return replace(watch, level_ms=None)
    return watch


def _added(moments: tuple[Since, ...], one: Since, bound_ms: int) -> tuple[Since, ...]:
    """Add a moment; of those older than the bound the first and the last are kept."""
    if moments and one.event_ms <= moments[-1].event_ms:
        return moments
    apart_ms = max(1, bound_ms // RESOLUTION)
    if len(moments) > 1 and one.since_ms - moments[-1].since_ms < apart_ms:
        return (*moments[:-1], Since(one.event_ms, moments[-1].since_ms))
    old = [at for at in moments if at.since_ms <= one.since_ms - bound_ms]
    kept = moments if len(old) <= _OUTER else (old[0], old[-1], *moments[len(old) :])
    return (*kept, one)
