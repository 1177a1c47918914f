"""One fragment in a test: its query, its sink and its event time, over topics in memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from brokers.kafka.group_mirror import GroupMirror
from brokers.kafka_interface import Isolation
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.records import KafkaRecord
from pipeline.boundaries import lane_time
from pipeline.boundaries.derived import IDLE_OBSERVED_MS, PendingBoundary
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import LaneTime
from pipeline.boundaries.profile import DerivedInput, ExternalInput, profile
from pipeline.boundaries.promise import is_spent, watermark_for
from pipeline.boundaries.release import next_move, planned
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError
from pipeline.ids import (
    Epoch,
    Incarnation,
    Millis,
    NetworkLife,
    NetworkVersion,
    Offset,
    RunNumber,
    SchemaHandle,
    SteadyMillis,
    TopicId,
    TopicName,
)
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.events import BatchFinished, LaneEvent
from pipeline.lanes.source_ids import first_sources, planned_sources
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition, MarkedSource, Positions
from pipeline.names import boundaries_topic
from pipeline.network.boxes.shape import Stateless
from pipeline.planner.digest import fragment_digest, state_digest
from pipeline.planner.plan import Fragment
from pipeline.spark.batch.ports import BatchEngine, BatchInspector, BatchRows
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.topic_identity import topics_of, watch_topics
from pipeline.spark.write.sink import Sink
from pipeline.spark.write.sink_context import SinkContext
from pipeline.spark.write.transactions import InTransactions

INCARNATION: Final = Incarnation("test")
_EPOCH: Final = Epoch(1)
_NOW: Final = Millis(0)
_TURNS_MAX: Final = 1_000
"""More turns at one moment would be an endless loop."""

Write = Callable[[BatchRows, int, BatchEngine, BatchInspector], None]
"""Called with the rows of each batch."""


class RunningQuery(Protocol):
    """Interface of `MemoryQuery` in `pipeline/spark/run/from_memory.py`."""

    def add(self, records: Sequence[KafkaRecord], ends: Positions) -> None:
        """Pass records to the query; `ends` are the positions behind them."""

    def move(self, watermark_ms: Millis, ends: Positions) -> None:
        """Move the watermark; `ends` are the present positions."""

    def drain(self) -> None:
        """Wait until everything passed in is computed and written."""

    def close(self) -> None:
        """End it."""


class StartQuery(Protocol):
    """Starts the query of a fragment; `write` is called for each of its batches."""

    def __call__(self, lowered: Lowered, write: Write) -> RunningQuery:
        """The running query."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A clock for deadlines that never pass: slow work is bounded elsewhere."""

    def now_ms(self) -> Millis:
        """A constant time."""
        return _NOW

    def monotonic_s(self) -> float:
        """A constant."""
        return 0.0

    def sleep(self, seconds: float) -> None:
        """Returns at once."""
        del seconds


class StaticSchemas:
    """A registry for a sink: every schema is registered from the start."""

    def existing(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """None: no schema is looked up."""
        del handles
        return ()

    def look_up(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """None: no schema is looked up."""
        del handles
        return ()


class AtOnce:
    """Runs the jobs of a sink at once; a node runs them in the background."""

    def start(self, job: Callable[[], None]) -> None:
        """Run it."""
        job()

    def follow(self, job: Callable[[], None]) -> None:
        """Run it."""
        job()

    def wait(self) -> None:
        """Returns at once."""


class Unplanned:
    """Plans of a sink whose batches are not planned: a batch has the records that are there."""

    def executed(self, before: CommitMarker, facts: BatchFacts) -> Millis | None:
        """No event time comes into force but by the watermark."""
        del before, facts
        return None


class Lane:
    """Runs one fragment as far as its topics and event time allow."""

    def __init__(
        self, fragment: Fragment, lowered: Lowered, kafka: MemoryKafka, start: StartQuery
    ) -> None:
        """Start its query.

        Args:
            fragment: its fragment.
            lowered: the fragment in Spark's terms.
            kafka: all topics.
            start: starts the query.
        """
        self.fragment = fragment
        self._kafka = kafka
        self._ids = {
            topic: TopicId(one.topic_id)
            for topic, one in kafka.describe(topics_of(fragment)).items()
        }
        self._assigned = tuple(
            InputPartition(source.input, assigned.topic, partition)
            for source in lowered.sources
            for assigned in source.topics
            for partition in range(assigned.partitions)
        )
        self._position = {(at.topic, at.partition): Offset(0) for at in self._assigned}
        self._boundaries: dict[TopicName, Offset] = {}
        self._ends: Ends | None = None
        context = self._context(lowered)
        self._sink = Sink(context, InTransactions(context))
        self._sink.start(_first(fragment, sources_of(fragment, self._ids), self._ends_of_read()))
        how = profile(fragment, self._ids, NetworkLife(""))
        self._time = lane_time.begin(how, self._sink.marker, {}, SteadyMillis(0))
        self._query = start(lowered, self._sink.write)

    def set_ends(self, ends: Ends) -> None:
        """Set the end offsets of external topics."""
        self._time = lane_time.ends_read(self._time, self._ends, ends)
        self._ends = ends

    @property
    def is_idle(self) -> bool:
        """Whether all its inputs are idle, and its state has nothing left to emit."""
        return self._time.idle and is_spent(self._time.profile.shape, self._sink.marker)

    def set_activity(self, writer: str, topic_id: TopicId, *, idle: bool) -> None:
        """Set whether the writer of an input is idle, as if it had been so for long enough."""
        since_ms = SteadyMillis(self._now_ms - IDLE_OBSERVED_MS)
        for at_ms in (since_ms, self._now_ms):
            self._time = lane_time.activity_read(
                self._time, (topic_id, writer), _EPOCH, idle=idle, at_ms=at_ms
            )

    def run(self, advanced_ms: Millis | None) -> None:
        """Read and compute all available records, and advance event time as far as the rules allow.

        Args:
            advanced_ms: the test's advance: no later external record is at or below it.

        Raises:
            MedusaError: what makes a lane fail.
        """
        self._read_boundaries()
        for _ in range(_TURNS_MAX):
            if not self._read() and not self._move(advanced_ms):
                return
        raise BrokenInvariantError(
            "event time moves without end", place=f"fragment {self.fragment.name}"
        )

    @property
    def rests(self) -> bool:
        """Whether its state is final: no later record or time can change it."""
        marker = self._sink.marker
        return all(marker.needed[at] >= end for at, end in marker.end.items())

    @property
    def newest_ms(self) -> Millis | None:
        """The largest event time of its records."""
        return max(self._sink.marker.progress.values(), default=None)

    def close(self) -> None:
        """End its query."""
        self._query.close()

    def _read(self) -> bool:
        """Pass all unread records to the query; returns whether there were any."""
        unread: list[KafkaRecord] = []
        for at, offset in self._position.items():
            records, self._position[at] = self._kafka.read(*at, offset, Isolation.COMMITTED)
            unread += records
        if not unread:
            return False
        self._query.add(unread, self._ends_of_read())
        self._query.drain()
        return True

    def _move(self, advanced_ms: Millis | None) -> bool:
        """Move event time, if it may move; returns whether it may.

        At once: intervals between movements save batches under load.
        """
        time = with_advance(self._time, advanced_ms)
        self._time, target = lane_time.observe(time, self._ends, self._now_ms)
        shape, release = self._time.profile.shape, self._time.release
        move = None if target is None else next_move(shape, release, target)
        if move is None:
            return False
        self._time = replace(self._time, release=planned(release, move, self._now_ms))
        if isinstance(shape, Stateless):
            self._sink.pass_on(move.to_ms)
        else:
            self._query.move(watermark_for(shape, move.to_ms), self._ends_of_read())
            self._query.drain()
        return True

    def _read_boundaries(self) -> None:
        for derived in self._time.profile.inputs:
            if not isinstance(derived, DerivedInput):
                continue
            topic = boundaries_topic(derived.topic)
            since = self._boundaries.get(topic, Offset(0))
            read = self._kafka.read(topic, 0, since, Isolation.COMMITTED)
            records, self._boundaries[topic] = read
            for record in records:
                assert record.value is not None  # noqa: S101 - a sink wrote it
                written = codec.decode_boundary(record.value, f"topic {topic}")
                boundary = PendingBoundary(written.boundary_ms, written.positions)
                writer = written.topic_id, written.writer
                self._time = lane_time.boundary_read(self._time, writer, written.epoch, boundary)

    def _on_event(self, event: LaneEvent) -> None:
        if isinstance(event, BatchFinished):
            marker, now_ms = event.marker, self._now_ms
            self._time = lane_time.batch_finished(self._time, marker, event.rows_out, now_ms)

    @property
    def _now_ms(self) -> SteadyMillis:
        return SteadyMillis(0) if self._ends is None else self._ends.read_at_ms

    def _context(self, lowered: Lowered) -> SinkContext:
        fragment, kafka = self.fragment, self._kafka
        writer = kafka.transactions(fragment.names.stable.transactional_id)
        writer.start(Deadline.after(Stopped(), 0.0, "starting"))
        return SinkContext(
            lane=fragment.names.stable.lane,
            run=RunNumber(1),
            fragment=fragment,
            version=NetworkVersion(1),
            epoch=_EPOCH,
            writer=writer,
            admin=kafka,
            output_id=self._ids[fragment.output.topic],
            output_partitions=lowered.encoding.partitions,
            boundaries=kafka.producer(0.0),
            mirror=GroupMirror(kafka.group_writer(fragment.names.group), Stopped()),
            schemas=StaticSchemas(),
            topics=watch_topics(kafka, fragment, self._ids),
            commits=AtOnce(),
            plans=Unplanned(),
            functions=lowered.functions,
            promised=lambda stream: lane_time.promised(self._time).get(stream),
            clock=Stopped(),
            report=self._on_event,
        )

    def _ends_of_read(self) -> dict[InputPartition, Offset]:
        return {at: self._position[at.topic, at.partition] for at in self._assigned}


def with_advance(time: LaneTime, advanced_ms: Millis | None) -> LaneTime:
    """Event time as if every external partition had a record new enough to pass `advanced_ms`."""
    if advanced_ms is None:
        return time
    progress = dict(time.progress)
    for external in time.profile.inputs:
        if isinstance(external, ExternalInput):
            newest = Millis(advanced_ms + external.lateness_ms + 1)
            for partition in lane_time.finished_in(time.positions, external):
                at = InputPartition(external.stream, external.topic, partition)
                progress[at] = max(newest, progress.get(at, newest))
    return replace(time, progress=progress)


def sources_of(
    fragment: Fragment, topic_ids: Mapping[TopicName, TopicId]
) -> tuple[MarkedSource, ...]:
    """The sources of a fragment that has never run, with the ids of its topics."""
    return first_sources(planned_sources(fragment, topic_ids))


def _first(
    fragment: Fragment, sources: tuple[MarkedSource, ...], positions: Positions
) -> CommitMarker:
    wanted = StartRequest(
        epoch=_EPOCH,
        state=state_digest(fragment),
        stateful=fragment.stateful_box is not None,
        on_change=None,
        place=f"fragment {fragment.name}",
        sources=sources,
        plan=fragment_digest(fragment),
    )
    return first_marker(wanted, INCARNATION, positions, _NOW)
