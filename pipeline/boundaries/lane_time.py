"""Event time of one lane: state of its inputs, and the target that its event time may move to.

`LaneTime` is an immutable value; what is read from servers, finished batches and time compute a new
one. The target is the least boundary over the active inputs; while one of them has none, event
time does not move. Idle inputs are ignored; when all are idle, event time continues from the
largest boundary.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pipeline.boundaries import release as releases
from pipeline.boundaries.derived import (
    PendingBoundary,
    WriterSeen,
    covers,
    settled,
    with_activity,
    with_boundary,
)
from pipeline.boundaries.ends import Ends, Place
from pipeline.boundaries.external import (
    InputTime,
    PartitionSeen,
    StreamBoundary,
    external_time,
    least_active,
)
from pipeline.boundaries.held import HELD_LEAST_MS, HeldBack, Since, held_back
from pipeline.boundaries.profile import DerivedInput, ExternalInput, LaneInput, LaneProfile
from pipeline.boundaries.promise import is_spent
from pipeline.boundaries.release import Release
from pipeline.boundaries.tentative_input import TentativeInput
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis, StreamName, TopicId
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.model import Load

Writer = tuple[TopicId, str]
"""A writer of a derived topic: Kafka's id of the topic, and the writer's name."""
Writers = Mapping[Writer, WriterSeen]
"""Boundaries read so far, by writer, for lanes that start later."""


@dataclass(frozen=True, slots=True)
class Steered:
    """How the event time of a fork moves, which does not wait for all of its inputs.

    Args:
        without: external partitions that step aside, as if they were idle.
        most_ms: the limit of event time; None: there is none.
        tentative: derived inputs of which tentative records are offered.
    """

    without: frozenset[InputPartition] = frozenset()
    most_ms: Millis | None = None
    tentative: tuple[TentativeInput, ...] = ()

    def limited(self, target: StreamBoundary | None) -> StreamBoundary | None:
        """A target within the limit."""
        if target is None or self.most_ms is None or target.at_ms <= self.most_ms:
            return target
        return replace(target, at_ms=self.most_ms)


STABLE: Final = Steered()


@dataclass(frozen=True, slots=True)
class LaneTime:
    """Event-time state of a lane; everything that decides how its event time moves.

    Args:
        profile: the lane's inputs and shape.
        positions: next offsets after the finished batches.
        progress: largest event time in finished batches, per external partition.
        started_ms: when this process began to observe the lane (steady time).
        quiet: start of the present silence (steady time), per external partition; `started_ms`
            where missing.
        reached: the highest boundary of each external input so far.
        reached_at: when `reached` last rose, or its input was last silent, in this process (steady
            time), per external input.
        read_at: when a batch with records of an external input last finished, in this process
            (steady time).
        idle_base: `reached` at the input's last record; an idle stream continues from it.
        writers: boundaries and activity of the writer of each derived input.
        release: event time in force, and the present step.
        unloaded: inputs with `load: first` that are not loaded yet, and the ends up to which they
            are read: all that was written when the lane started, finished by then or not; None: no
            answer yet.
        held: the input that holds event time back; None: none.
        idle: whether all inputs were idle at the latest check.
        target_ms: the target of event time at the latest check; None: there was none.
        is_spent: whether the lane can emit nothing more without a new record.
        is_full: whether the state has reached its limit, so that little is read.
        steps_ms: how far event time is behind its inputs because it is released in steps; None: it
            is not, or not by much.
        steered: how a fork is steered; a stable lane waits for everything.
        silent: partitions whose ends are answered, but no records, and since when (steady time):
            they are not read.
        taken: derived inputs of which a fork reads tentative records.
        read_until_ms: when the last finished batch was planned, which read what was there then
            (steady time); None: not by this process.
    """

    profile: LaneProfile
    positions: Positions
    progress: Mapping[InputPartition, Millis]
    started_ms: SteadyMillis
    release: Release
    quiet: Mapping[InputPartition, SteadyMillis] = field(default_factory=dict)
    reached: Mapping[StreamName, Millis] = field(default_factory=dict)
    reached_at: Mapping[StreamName, SteadyMillis] = field(default_factory=dict)
    read_at: Mapping[StreamName, SteadyMillis] = field(default_factory=dict)
    idle_base: Mapping[StreamName, Millis] = field(default_factory=dict)
    writers: Mapping[StreamName, WriterSeen] = field(default_factory=dict)
    unloaded: Mapping[StreamName, Mapping[int, Offset] | None] = field(default_factory=dict)
    held: HeldBack | None = None
    idle: bool = False
    target_ms: Millis | None = None
    is_spent: bool = False
    is_full: bool = False
    steps_ms: int | None = None
    steered: Steered = STABLE
    silent: Mapping[Place, SteadyMillis] = field(default_factory=dict)
    taken: Mapping[StreamName, TentativeInput] = field(default_factory=dict)
    read_until_ms: SteadyMillis | None = None


def begin(
    profile: LaneProfile, marker: CommitMarker, writers: Writers, now_ms: SteadyMillis
) -> LaneTime:
    """Initial event-time state of a lane that continues from a marker.

    An input's boundary was at least the event time in force, so an idle stream continues from
    there; the duration of its silence is observed anew.
    """
    release = releases.begin(profile.shape, marker)
    in_force = release.in_force_ms
    external = [i.stream for i in profile.inputs if isinstance(i, ExternalInput)]
    known = {} if in_force is None else dict.fromkeys(external, in_force)
    time = LaneTime(
        profile=profile,
        positions=marker.end,
        progress=marker.progress,
        started_ms=now_ms,
        release=release,
        reached=known,
        reached_at=dict.fromkeys(known, now_ms),
        idle_base=known,
        writers={
            i.stream: writers.get(writer_of(i), WriterSeen())
            for i in profile.inputs
            if isinstance(i, DerivedInput)
        },
        unloaded={i.stream: None for i in _external(profile) if i.load is Load.FIRST},
        is_spent=is_spent(profile.shape, marker),
    )
    return _settle(time)


def batch_finished(
    time: LaneTime, marker: CommitMarker, rows_out: int, now_ms: SteadyMillis
) -> LaneTime:
    """Add the positions, progress and watermark of a finished batch."""
    moved = {p for p, end in marker.end.items() if end > time.positions.get(p, 0)}
    offsets = sum(marker.end[p] - time.positions.get(p, marker.end[p]) for p in moved)
    release = releases.took_effect(time.profile.shape, time.release, marker, rows_out, offsets)
    read_at = {**time.read_at, **dict.fromkeys({at.input for at in moved}, now_ms)}
    time = replace(
        time,
        positions=marker.end,
        progress=marker.progress,
        release=release,
        read_at=read_at,
        is_spent=is_spent(time.profile.shape, marker),
    )
    return _settle(_reset_quiet(time, moved, now_ms))


def writer_of(lane_input: DerivedInput) -> Writer:
    """The writer whose boundaries an input uses."""
    return lane_input.topic_id, lane_input.writer


def boundary_read(
    time: LaneTime, writer: Writer, epoch: Epoch, boundary: PendingBoundary
) -> LaneTime:
    """Add a boundary of a derived input's writer; boundaries of other writers are ignored."""
    return _settle(_with_writer(time, writer, lambda seen: with_boundary(seen, epoch, boundary)))


def activity_read(
    time: LaneTime, writer: Writer, epoch: Epoch, *, idle: bool, at_ms: SteadyMillis
) -> LaneTime:
    """Add an activity report of a derived input's writer, read at steady time `at_ms`."""
    return _with_writer(
        time, writer, lambda seen: with_activity(seen, epoch, idle=idle, at_ms=at_ms)
    )


def _with_writer(
    time: LaneTime, writer: Writer, change: Callable[[WriterSeen], WriterSeen]
) -> LaneTime:
    known = dict(time.writers)
    for lane_input in time.profile.inputs:
        if isinstance(lane_input, DerivedInput) and writer == writer_of(lane_input):
            known[lane_input.stream] = change(known[lane_input.stream])
    return replace(time, writers=known)


def ends_read(time: LaneTime, before: Ends | None, ends: Ends) -> LaneTime:
    """Add the present ends of the topics; `before` is the previous answer.

    A partition is active when its end is beyond the finished positions or has moved since the
    previous answer, or when a transaction is open in it. After a gap in the observation every
    partition counts as active: records that its producers kept back meanwhile may still come.
    """
    active: set[InputPartition] = set()
    for external in _external(time.profile):
        now_ends = ends.by_topic.get(external.topic)
        if now_ends is None:
            continue
        topic, now_ms = external.topic, ends.read_at_ms
        for partition, end in now_ends.items():
            key = InputPartition(external.stream, external.topic, partition)
            unread = end > time.positions.get(key, 0) or (topic, partition) in ends.open
            then = None if before is None else before.lately(topic, partition, now_ms)
            if unread or then != end:
                active.add(key)
    return _settle(_reset_quiet(_loading(time, ends), active, ends.read_at_ms))


def observe(
    time: LaneTime, ends: Ends | None, now_ms: SteadyMillis
) -> tuple[LaneTime, StreamBoundary | None]:
    """Compute the target of the lane's event time, and what holds it back; None: no target."""
    found = input_times(time, ends, now_ms)
    reached, reached_at = dict(time.reached), dict(time.reached_at)
    for lane_input in _external(time.profile):
        stream, boundary = lane_input.stream, found[lane_input.stream].boundary
        if boundary is not None and boundary.at_ms > reached.get(stream, boundary.at_ms - 1):
            reached[stream], reached_at[stream] = boundary.at_ms, now_ms
    idle = all(one.idle for one in found.values())
    silent = _silent(time, found, ends, now_ms)
    reached_at |= dict.fromkeys(silent.keys() & reached_at.keys(), now_ms)
    still = {one: at for one, at in reached_at.items() if time.read_at.get(one, at - 1) > at}
    since = Since(silent, still, _untimed(time))
    held = held_back(time.held, found, since, time.writers.keys(), now_ms)
    target = time.steered.limited(least_active(tuple(found.values())))
    time = replace(
        time,
        reached=reached,
        reached_at=reached_at,
        held=held,
        idle=idle,
        target_ms=None if target is None else target.at_ms,
        steps_ms=None,
    )
    if target is None:
        return _loading_from(time, ends, now_ms), None
    rest_ms = releases.rest_ms(time.profile.shape, time.release, target)
    if rest_ms is not None and rest_ms >= HELD_LEAST_MS:
        time = replace(time, steps_ms=rest_ms)
    return time, target


def target_after(
    time: LaneTime, read_to: Positions, ends: Ends | None, now_ms: SteadyMillis
) -> StreamBoundary | None:
    """The target within a batch that reads up to `read_to`.

    Boundaries of derived inputs that these positions cover are in effect in the batch: no record
    before them is still to come. The event times of an external input's records are unknown until
    they have been read.
    """
    writers = {
        i.stream: settled(time.writers[i.stream], finished_in(read_to, i))
        for i in time.profile.inputs
        if isinstance(i, DerivedInput)
    }
    found = input_times(replace(time, writers=writers), ends, now_ms)
    return time.steered.limited(least_active(tuple(found.values())))


def _loading_from(time: LaneTime, ends: Ends | None, now_ms: SteadyMillis) -> LaneTime:
    """Set where event time would begin if it did not wait for inputs to be loaded.

    Much may be read until then: the first step is measured from there.
    """
    known = (time.release.in_force_ms, time.release.begins_ms)
    if not time.unloaded or any(at_ms is not None for at_ms in known):
        return time
    least = least_active(tuple(input_times(replace(time, unloaded={}), ends, now_ms).values()))
    if least is None:
        return time
    begins_ms = max(least.at_ms, Millis(0))  # Spark's watermark begins at 0, too
    return replace(time, release=replace(time.release, begins_ms=begins_ms))


def input_times(
    time: LaneTime, ends: Ends | None, now_ms: SteadyMillis
) -> Mapping[StreamName, InputTime]:
    """Boundary and idleness of each input; `ends`: the latest answer, fresh or not."""
    fresh = ends if ends is not None and ends.fresh(now_ms) else None
    return {
        lane_input.stream: _derived_time(time, lane_input, fresh, now_ms)
        if isinstance(lane_input, DerivedInput)
        else _external_time(time, lane_input, fresh)
        for lane_input in time.profile.inputs
    }


def promised(time: LaneTime) -> Mapping[StreamName, Millis]:
    """The boundaries of derived inputs that are in effect."""
    known = ((stream, seen.covered_ms) for stream, seen in time.writers.items())
    return {stream: covered for stream, covered in known if covered is not None}


def _silent(
    time: LaneTime, found: Mapping[StreamName, InputTime], ends: Ends | None, now_ms: SteadyMillis
) -> dict[StreamName, SteadyMillis]:
    """Silent external inputs, all of whose records are finished, with the start of the silence."""
    if ends is None or not ends.fresh(now_ms):
        return {}
    silent: dict[StreamName, SteadyMillis] = {}
    for one in _external(time.profile):
        topic_ends = ends.by_topic.get(one.topic)
        if topic_ends is None or found[one.stream].boundary is None:
            continue
        quiet = [
            time.quiet.get(InputPartition(one.stream, one.topic, partition), time.started_ms)
            for partition in topic_ends
        ]
        since_ms = max(quiet, default=now_ms)
        if _is_finished(time, one, topic_ends) and now_ms - since_ms >= HELD_LEAST_MS:
            silent[one.stream] = since_ms
    return silent


def _untimed(time: LaneTime) -> dict[StreamName, SteadyMillis]:
    """External inputs whose records have given no event time, with the start of the lane."""
    timed = {at.input for at in time.progress}
    untimed = {one.stream for one in _external(time.profile)} - timed
    return dict.fromkeys(untimed & time.read_at.keys(), time.started_ms)


def _is_finished(time: LaneTime, lane_input: LaneInput, topic_ends: Mapping[int, Offset]) -> bool:
    """Whether all records of an input are; False while the end of a partition is not known."""
    finished = finished_in(time.positions, lane_input)
    return finished.keys() <= topic_ends.keys() and covers(finished, topic_ends)


def _derived_time(
    time: LaneTime, lane_input: DerivedInput, ends: Ends | None, now_ms: SteadyMillis
) -> InputTime:
    """A derived input is idle if its writer reports so, and all that it has written is finished.

    The end of the topic must be newer than the report: its last records precede it.
    """
    seen, late_ms = time.writers[lane_input.stream], lane_input.lateness_ms
    boundary = None if seen.covered_ms is None else StreamBoundary(seen.covered_ms)
    topic_ends = None if ends is None else ends.by_topic.get(lane_input.topic)
    since_ms = seen.idle_since_ms
    if ends is None or topic_ends is None or since_ms is None or not seen.is_idle(now_ms):
        return InputTime(boundary, lateness_ms=late_ms)
    if ends.read_at_ms < since_ms:
        return InputTime(boundary, lateness_ms=late_ms)
    open_in = any(topic == lane_input.topic for topic, _ in ends.open)
    finished = _is_finished(time, lane_input, topic_ends)
    return InputTime(boundary, idle=finished and not open_in, lateness_ms=late_ms)


def _external_time(time: LaneTime, lane_input: ExternalInput, ends: Ends | None) -> InputTime:
    seen = partitions_seen(time, lane_input, ends)
    if not seen and time.steered.without:
        return InputTime(None, idle=True, lateness_ms=lane_input.lateness_ms)
    if lane_input.stream in time.unloaded:
        return InputTime(None, lateness_ms=lane_input.lateness_ms)
    observed, floor_ms = observed_ms(lane_input, ends), time.idle_base.get(lane_input.stream)
    return external_time(lane_input, tuple(seen.values()), observed, floor_ms)


def partitions_seen(
    time: LaneTime, lane_input: ExternalInput, ends: Ends | None
) -> dict[InputPartition, PartitionSeen]:
    """The partitions of an external input that do not step aside; `ends`: a fresh answer."""
    topic_ends = None if ends is None else ends.by_topic.get(lane_input.topic)
    numbers = set(finished_in(time.positions, lane_input)) | set(topic_ends or ())
    keys = (InputPartition(lane_input.stream, lane_input.topic, one) for one in sorted(numbers))
    return {
        key: PartitionSeen(
            number=key.partition,
            position=time.positions.get(key, Offset(0)),
            end=None if topic_ends is None else topic_ends.get(key.partition),
            progress_ms=time.progress.get(key),
            quiet_since_ms=time.quiet.get(key, time.started_ms),
            open=ends is not None and (key.topic, key.partition) in ends.open,
        )
        for key in keys
        if key not in time.steered.without
    }


def observed_ms(lane_input: ExternalInput, ends: Ends | None) -> SteadyMillis | None:
    """When the ends of an input's topic were last asked for; None: they are not known."""
    return None if ends is None or lane_input.topic not in ends.by_topic else ends.read_at_ms


def has_grown(time: LaneTime | None, ends: Ends | None) -> bool:
    """Whether a topic has partitions that the lane does not read; a restart adds them."""
    if time is None or ends is None:
        return False
    return any(
        ends.by_topic.get(lane_input.topic, {}).keys()
        - finished_in(time.positions, lane_input).keys()
        for lane_input in time.profile.inputs
    )


def finished_in(positions: Positions, lane_input: LaneInput) -> dict[int, Offset]:
    """The positions in an input's own topic, by partition.

    A lane also reads redriven records under the same input; those are not the stream itself.
    """
    return {
        key.partition: offset
        for key, offset in positions.items()
        if key.input == lane_input.stream and key.topic == lane_input.topic
    }


def _external(profile: LaneProfile) -> tuple[ExternalInput, ...]:
    return tuple(i for i in profile.inputs if isinstance(i, ExternalInput))


def _reset_quiet(time: LaneTime, partitions: set[InputPartition], at_ms: SteadyMillis) -> LaneTime:
    """Restart the silence of active partitions, and set the idle base of their streams."""
    topics = {external.stream: external.topic for external in _external(time.profile)}
    own = {p for p in partitions if topics.get(p.input) == p.topic}
    if not own:
        return time
    streams = {p.input for p in own}
    return replace(
        time,
        quiet={**time.quiet, **dict.fromkeys(own, at_ms)},
        idle_base={**time.idle_base, **{s: v for s, v in time.reached.items() if s in streams}},
    )


def _loading(time: LaneTime, ends: Ends) -> LaneTime:
    """Set the ends up to which inputs with `load: first` have to be read."""
    unloaded = {
        i.stream: ends.all_written(i.topic) if known is None else known
        for i in _external(time.profile)
        if i.stream in time.unloaded
        for known in (time.unloaded[i.stream],)
    }
    return replace(time, unloaded=unloaded)


def _settle(time: LaneTime) -> LaneTime:
    """Put covered boundaries into effect and remove loaded inputs, by the finished positions."""
    unloaded = {
        i.stream: time.unloaded[i.stream]
        for i in _external(time.profile)
        if i.stream in time.unloaded and not _is_covered(time, i)
    }
    writers = {
        i.stream: settled(time.writers[i.stream], finished_in(time.positions, i))
        for i in time.profile.inputs
        if isinstance(i, DerivedInput)
    }
    return replace(time, writers=writers, unloaded=unloaded)


def _is_covered(time: LaneTime, external: ExternalInput) -> bool:
    until = time.unloaded[external.stream]
    return until is not None and covers(finished_in(time.positions, external), until)
