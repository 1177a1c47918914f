"""A sink over Kafka in memory, and test doubles of its other collaborators."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from brokers.kafka.group_mirror import GroupMirror
from brokers.kafka_interface import GroupWriter, Isolation, KeyedValue
from brokers.memory_kafka.writers import MemoryProducer, MemoryTransactions
from brokers.records import Ends, Headers, KafkaRecord, TopicDescription
from pipeline.agent.events import Event
from pipeline.clock import Deadline
from pipeline.errors import (
    MedusaError,
    RetryError,
)
from pipeline.ids import (
    BatchId,
    Epoch,
    FragmentId,
    FragmentName,
    GroupName,
    Incarnation,
    Millis,
    NetworkId,
    NetworkName,
    NetworkVersion,
    Offset,
    ParticipantId,
    RunNumber,
    SchemaHandle,
    SchemaId,
    StreamName,
    TopicId,
    TopicName,
    TransactionalId,
    stable_lane,
)
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.source_ids import named_sources
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition, Positions
from pipeline.names import boundaries_topic
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.query.failed_results import ROW_COLUMNS
from pipeline.spark.query.reasons import Why
from pipeline.spark.run.topic_identity import topics_of
from pipeline.spark.write.sink import Sink
from pipeline.spark.write.sink_context import SinkContext
from pipeline.spark.write.transactions import InTransactions
from pipeline.system_clock import SystemClock
from tests.unit.kafka import Leaderless, create, grow, records
from tests.unit.planner.networks import OWNER, external, filtered, network

AT = InputPartition(StreamName("sightings"), TopicName("sightings-topic"), 0)
NOW = Millis(1_700_000_000_000)


class SinkKafka(Leaderless):
    """Kafka in memory; records the offsets of groups."""

    def __init__(self) -> None:
        super().__init__()
        self.followed: list[Ends] = []

    def partition_ends(
        self, topic: TopicName, partitions: int, isolation: Isolation
    ) -> Mapping[int, Offset]:
        """Transaction markers may be invisible yet."""
        assert isolation is Isolation.UNCOMMITTED
        return super().partition_ends(topic, partitions, isolation)

    def group_writer(self, group: GroupName) -> GroupWriter:
        """A writer that records the positions."""
        return _Recorded(super().group_writer(group), self.followed)


@dataclass(frozen=True)
class _Recorded:
    writer: GroupWriter
    followed: list[Ends]

    def commit(self, offsets: Ends, done: Callable[[MedusaError | None], None]) -> None:
        """Record the positions."""
        self.followed.append(offsets)
        self.writer.commit(offsets, done)

    def poll(self) -> None:
        """Nothing is pending."""

    def close(self) -> None:
        """There is no connection."""


class Log:
    """Kafka, and the calls of a sink, in order; `fails`: the error of a call."""

    def __init__(self, fails: dict[str, Exception] | None = None) -> None:
        self.kafka = SinkKafka()
        self.done: list[tuple[str, str]] = []
        self.fails = fails or {}
        self._begins: Ends = {}

    def create(self, planned: Fragment) -> None:
        """The topics of a fragment."""
        output = boundaries_topic(planned.output.topic)
        create(self.kafka, *topics_of(planned), output)

    def note(self, what: str, topic: str = "") -> None:
        """Record it, and fail if the test requires it."""
        self.done.append((what, topic))
        if what in self.fails:
            raise self.fails[what]

    def clear(self) -> None:
        """Remove the recorded calls."""
        self.done.clear()
        self._begins = self.kafka.end_offsets(self.kafka.topic_names())

    @property
    def records(self) -> dict[str, list[KafkaRecord]]:
        """The committed records of each topic that has some."""
        found: dict[str, list[KafkaRecord]] = {}
        for topic in self.kafka.topic_names():
            begins = self._begins.get(topic, {})
            for record in records(self.kafka, topic):
                if record.offset >= begins.get(record.partition, 0):
                    found.setdefault(topic, []).append(record)
        return found

    @property
    def values(self) -> dict[str, list[bytes | None]]:
        """Their values."""
        return {topic: [one.value for one in there] for topic, there in self.records.items()}

    @property
    def headers(self) -> dict[str, list[dict[str, bytes | None]]]:
        """Their headers."""
        return {
            topic: [dict(one.headers) for one in there] for topic, there in self.records.items()
        }


class Writer(MemoryTransactions):
    """A transactional writer; its calls are recorded."""

    def __init__(self, log: Log, transactional_id: TransactionalId) -> None:
        super().__init__(log.kafka, transactional_id)
        self._log = log

    def begin(self) -> None:
        """Record it."""
        self._log.note("begin")
        super().begin()

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int,
        headers: Headers = (),
        partition: int = -1,
    ) -> None:
        """Record it."""
        super().send(
            topic, key, value, timestamp_ms=timestamp_ms, headers=headers, partition=partition
        )
        self._log.note("send", topic)

    def send_many(
        self, topic: TopicName, records: Iterable[KeyedValue], headers: Headers = ()
    ) -> int:
        """Record it once."""
        count = super().send_many(topic, records, headers)
        self._log.note("send", topic)
        return count

    def refresh_partitions(self, topic: TopicName) -> None:
        """Record it."""
        self._log.note("look at", topic)

    def commit(self, deadline: Deadline) -> None:
        """Record it, and fail before anything is visible."""
        deadline.check()
        self._log.note("commit")
        super().commit(deadline)

    def abort(self, deadline: Deadline) -> None:
        """Record it."""
        deadline.check()
        self._log.note("abort")
        super().abort(deadline)


class Plain(MemoryProducer):
    """A producer of boundaries; its calls are recorded."""

    def __init__(self, log: Log, *, fails: bool = False) -> None:
        super().__init__(log.kafka)
        self._log = log
        self.fails = fails
        self.lost = 0

    @property
    def undelivered(self) -> int:
        """With those that the test declares lost."""
        return super().undelivered + self.lost

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        headers: Headers = (),
        timestamp_ms: Millis | None = None,
        partition: int = -1,
    ) -> None:
        """Write a boundary."""
        assert key is not None
        assert topic == f"{key.decode()}.boundaries"
        assert (timestamp_ms is None, partition) == (False, 0)
        if self.fails:
            raise RetryError("not now")
        self._log.done.append(("boundary", topic))
        super().send(
            topic, key, value, headers=headers, timestamp_ms=timestamp_ms, partition=partition
        )


@dataclass
class ImmediateJobs:
    """Runs jobs at once; an error of one is raised by the next call."""

    failed: Exception | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Run it."""
        self.wait()
        try:
            job()
        except MedusaError as error:
            self.failed = error

    def follow(self, job: Callable[[], None]) -> None:
        """Run it, unless the last one has failed."""
        if self.failed is None:
            self.start(job)

    def wait(self) -> None:
        """Raise the error of the last job."""
        if self.failed is not None:
            raise self.failed


@dataclass
class Plans:
    """Plans that bring an event time into force, or none; an error: the batch is another one."""

    event_ms: Millis | None = None
    wrong: Exception | None = None
    executed_batches: list[tuple[BatchId, BatchId]] = field(default_factory=list)

    def executed(self, before: CommitMarker, facts: BatchFacts) -> Millis | None:
        """The next planned event time, once."""
        self.executed_batches.append((before.batch, facts.batch))
        if self.wrong is not None:
            raise self.wrong
        event_ms, self.event_ms = self.event_ms, None
        return event_ms


@dataclass
class Schemas:
    """A registry that has some ids."""

    there: tuple[SchemaHandle, ...] = (SchemaId(9),)
    missing: list[SchemaHandle] = field(default_factory=list)

    def existing(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """The existing ones."""
        return tuple(handle for handle in handles if handle in self.there)

    def look_up(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """The same; the others are recorded."""
        self.missing += [handle for handle in handles if handle not in self.there]
        return self.existing(handles)


@dataclass
class Topics:
    """Topics that are the same, or not; described as at the time of the request."""

    log: Log
    wrong: Exception | None = None
    described: dict[str, TopicDescription] = field(default_factory=dict)
    answered: bool = False

    def last(self, topic: TopicName) -> TopicDescription | None:
        """The last description."""
        return self.described.get(topic)

    def describe(self, topic: str, topic_id: str, partitions: int = 1) -> None:
        """Change the next description of a topic, which has this many partitions."""
        self.answered = True
        if topic in self.log.kafka.topics:
            grow(self.log.kafka, topic, partitions)
        self.described[topic] = TopicDescription(TopicName(topic), topic_id, partitions, 1)

    def ask(self) -> Callable[[], None]:
        """Record when the response was waited for."""

        def judge() -> None:
            self.log.done.append(("same?", ""))
            if self.wrong is not None:
                raise self.wrong

        return judge


@dataclass
class Batch:
    """Rows, facts and inspection of one batch."""

    facts: BatchFacts
    rows: Sequence[tuple[bytes, int, str | None]] = ()
    wrong: list[Rejected] = field(default_factory=list)
    ids: Sequence[bytes] = ()
    places: Sequence[int] = ()
    of_rows: Sequence[tuple[str | None, bytes | None, bool]] = ()
    asked_late_ms: Millis | None = None
    asked: list[tuple[Positions, Positions]] = field(default_factory=list)

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        """The rows."""
        matches, held, answered = zip(*self.of_rows, strict=True) if self.of_rows else ((), (), ())
        of_rows = (
            pa.array(matches, pa.string()), pa.array(held, pa.binary()),
            pa.array(answered, pa.bool_()),
        )  # fmt: skip
        return pa.table(
            {
                "key": pa.array([None for _ in self.rows], pa.binary()),
                "value": pa.array([value for value, _, _ in self.rows], pa.binary()),
                "timestamp_ms": pa.array([time for _, time, _ in self.rows], pa.int64()),
                "partition": pa.array(self.places or [0 for _ in self.rows], pa.int32()),
                "reason": pa.array([reason for _, _, reason in self.rows], pa.string()),
                **({"id": pa.array(self.ids, pa.binary())} if self.ids else {}),
                **(dict(zip(ROW_COLUMNS, of_rows, strict=True)) if self.of_rows else {}),
            }
        )

    def batch_facts(self, batch: int, rows: pa.Table | None = None) -> BatchFacts:
        """The facts."""
        del rows
        assert batch == self.facts.batch
        return self.facts

    def rejected(self, start: Positions, end: Positions, late_ms: Millis | None) -> list[Rejected]:
        """The refused records, and the limit of the request."""
        assert start.keys() == end.keys()
        self.asked_late_ms = late_ms
        self.asked.append((start, end))
        return self.wrong

    def unknown_schemas(self, start: Positions, end: Positions) -> tuple[SchemaId, ...]:
        """One id."""
        assert start.keys() == end.keys()
        return (SchemaId(9),)


def stateless() -> Fragment:
    """A filter of an external stream."""
    sightings = external("sightings")
    planned = plan(network((sightings,), (filtered("moving", sightings, "`at` > 0"),)), OWNER)
    return planned.fragments[0]


def sink(
    log: Log,
    events: list[Event],
    planned: Fragment | None = None,
    plain: Plain | None = None,
    commits: ImmediateJobs | None = None,
    **others: Any,
) -> Sink:
    """A sink right after its first marker."""
    planned = planned or stateless()
    context = sink_context(log, events, planned, plain, commits, **others)
    by = others.get("by")
    started = Sink(context, InTransactions(context) if by is None else by)
    fails, log.fails = log.fails, {}
    started.start(first(planned))
    log.clear()
    log.fails = fails
    return started


def sink_context(
    log: Log,
    events: list[Event],
    planned: Fragment,
    plain: Plain | None = None,
    commits: ImmediateJobs | None = None,
    **others: Any,
) -> SinkContext:
    """The dependencies of a sink, which has fenced the last one."""
    log.create(planned)
    writer = others.get("writer") or Writer(log, planned.names.stable.transactional_id)
    writer.start(Deadline.after(SystemClock(), 10, "starting"))
    return SinkContext(
        fragment=planned,
        lane=stable_lane(
            FragmentId(
                NetworkId(ParticipantId("local"), NetworkName("net")), FragmentName(planned.name)
            )
        ),
        run=RunNumber(1),
        version=NetworkVersion(1),
        epoch=others.get("epoch", Epoch(3)),
        writer=writer,
        admin=log.kafka,
        output_id=TopicId("out-1"),
        output_partitions=others.get("partitions", 1),
        boundaries=plain or Plain(log),
        mirror=GroupMirror(log.kafka.group_writer(planned.names.group), SystemClock()),
        schemas=others.get("schemas", Schemas()),
        topics=others.get("topics", Topics(log)),
        commits=commits or ImmediateJobs(),
        plans=others.get("plans", Plans()),
        functions=others.get("functions", {}),
        promised=others.get("promised", {}.get),
        clock=SystemClock(),
        report=events.append,
    )


def first(planned: Fragment) -> CommitMarker:
    """The first marker of a lane of a fragment."""
    sources = named_sources(planned)
    request = StartRequest(
        Epoch(3), "digest", stateful=True, on_change=None, place="here", sources=sources
    )
    return first_marker(request, Incarnation("one"), {AT: Offset(0)}, NOW)


def facts(batch: int, end: int, **more: Any) -> BatchFacts:
    """A batch that read up to `end`, with default facts."""
    plain = BatchFacts(
        batch=BatchId(batch),
        end={AT: Offset(end)},
        late_ms=None,
        eviction_ms=None,
        records=1,
        bad=0,
        unknown=(),
        late=0,
        largest={},
    )
    return replace(plain, **more)


def rejected(
    reason: Reason,
    stream: str = "sightings",
    topic: TopicName = AT.topic,
    at_ms: Millis | None = None,
) -> Rejected:
    """A record at offset 5, with an event time if it has one."""
    return Rejected(
        input=StreamName(stream),
        port="",
        why=Why(reason, "told", box="where", event_time_ms=at_ms),
        topic=topic,
        partition=0,
        offset=Offset(5),
        timestamp_ms=NOW,
        key=b"k",
        value=b"broken",
        headers=(("h", b"v"),),
    )


def write(written: Sink, batch: Batch) -> None:
    """Write one batch."""
    written.write(batch, batch.facts.batch, batch, batch)
