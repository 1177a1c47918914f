"""A sink whose surroundings are twins, for its tests."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from brokers.kafka.admin import Isolation
from brokers.kafka.transactions import Headers
from brokers.records import TopicDescription
from pipeline.agent.events import Event
from pipeline.clock import Deadline, SystemClock
from pipeline.errors import (
    MedusaError,
    RetryError,
)
from pipeline.ids import (
    BatchId,
    Epoch,
    FragmentId,
    FragmentName,
    Incarnation,
    Millis,
    NetworkId,
    NetworkName,
    NetworkVersion,
    Offset,
    ParticipantId,
    RunNumber,
    SchemaId,
    StreamName,
    TopicId,
    TopicName,
    stable_lane,
)
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.sources import named_sources
from pipeline.lanes.start.facts import Wanted
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.positions import InputPartition, Positions
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.batch.results import Record
from pipeline.spark.query.failed_results import ROW_COLUMNS
from pipeline.spark.query.hidden import Reason
from pipeline.spark.query.reasons import Why
from pipeline.spark.write.sink import Sink
from pipeline.spark.write.sink_context import SinkContext
from tests.unit.planner.networks import OWNER, external, filtered, network

AT = InputPartition(StreamName("sightings"), TopicName("sightings-topic"), 0)
NOW = Millis(1_700_000_000_000)


@dataclass
class Log:
    """A transactional writer that keeps what was done, in order."""

    done: list[tuple[str, str]] = field(default_factory=list)
    values: dict[str, list[bytes | None]] = field(default_factory=dict)
    headers: dict[str, list[dict[str, bytes | None]]] = field(default_factory=dict)
    partitions: dict[str, list[int]] = field(default_factory=dict)
    fails: dict[str, Exception] = field(default_factory=dict)

    def _do(self, what: str, topic: str = "") -> None:
        self.done.append((what, topic))
        if what in self.fails:
            raise self.fails[what]

    def begin(self) -> None:
        """As the protocol says."""
        self._do("begin")

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
        """Keep the value."""
        del key, timestamp_ms, partition
        self.headers.setdefault(topic, []).append(dict(headers))
        self.values.setdefault(topic, []).append(value)
        self._do("send", topic)

    def look_at(self, topic: TopicName) -> None:
        """Note it."""
        self._do("look at", topic)

    def send_many(self, topic: TopicName, records: Iterable[Record], headers: Headers = ()) -> int:
        """Keep the values, and where they go."""
        sent = list(records)
        self.headers.setdefault(topic, []).extend(dict(headers) for _ in sent)
        values = [value for _, value, _, _ in sent]
        self.partitions.setdefault(topic, []).extend(partition for *_, partition in sent)
        self.values.setdefault(topic, []).extend(values)
        self._do("send", topic)
        return len(values)

    def commit(self, deadline: Deadline) -> None:
        """As the protocol says."""
        deadline.check()
        self._do("commit")

    def abort(self, deadline: Deadline) -> None:
        """As the protocol says."""
        deadline.check()
        self._do("abort")


@dataclass
class Plain:
    """A producer without transactions that keeps what was sent, and notes when."""

    log: Log
    fails: bool = False
    undelivered: int = 0

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: Millis | None = None,
        partition: int = -1,
    ) -> None:
        """Keep the value."""
        assert key is not None
        assert topic == f"{key.decode().removeprefix('local.')}.boundaries"
        assert (timestamp_ms is None, partition) == (False, 0)
        if self.fails:
            raise RetryError("not now")
        self.log.done.append(("boundary", topic))
        self.log.values.setdefault(topic, []).append(value)


@dataclass
class Mirror:
    """Keeps where a group was sent."""

    positions: list[Mapping[TopicName, Mapping[int, Offset]]] = field(default_factory=list)

    def follow(self, positions: Mapping[TopicName, Mapping[int, Offset]]) -> None:
        """Keep them."""
        self.positions.append(positions)


@dataclass
class AtOnce:
    """Runs jobs at once; what one raised is raised by the next call."""

    failed: Exception | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Run it."""
        self.wait()
        try:
            job()
        except MedusaError as error:
            self.failed = error

    def wait(self) -> None:
        """Raise what went wrong."""
        if self.failed is not None:
            raise self.failed


@dataclass
class Schemas:
    """A registry that has some ids."""

    there: tuple[SchemaId, ...] = (SchemaId(9),)
    missing: list[SchemaId] = field(default_factory=list)

    def existing(self, ids: tuple[SchemaId, ...]) -> tuple[SchemaId, ...]:
        """Those that are there."""
        return tuple(schema_id for schema_id in ids if schema_id in self.there)

    def look_up(self, ids: tuple[SchemaId, ...]) -> tuple[SchemaId, ...]:
        """The same; the others are recorded."""
        self.missing += [schema_id for schema_id in ids if schema_id not in self.there]
        return self.existing(ids)


@dataclass
class Topics:
    """Topics that are the same, or not; described as they are when it is asked."""

    log: Log
    wrong: Exception | None = None
    described: dict[str, TopicDescription] = field(default_factory=dict)
    answered: bool = False

    def last(self, topic: TopicName) -> TopicDescription | None:
        """What was described."""
        return self.described.get(topic)

    def describe(self, topic: str, topic_id: str, partitions: int = 1) -> None:
        """What the next descriptions say of a topic."""
        self.answered = True
        self.described[topic] = TopicDescription(TopicName(topic), topic_id, partitions)

    def ask(self) -> Callable[[], None]:
        """Note when the answer was waited for."""

        def judge() -> None:
            self.log.done.append(("same?", ""))
            if self.wrong is not None:
                raise self.wrong

        return judge


@dataclass
class Admin:
    """Every topic has one partition that ends at 42; some of them have no leader."""

    leaderless: tuple[str, ...] = ()
    topic_id: str = "id"

    def describe(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        """All of them have the id that they have now."""
        return {topic: TopicDescription(topic, self.topic_id, 1) for topic in topics}

    def end_offsets(
        self, topics: Iterable[TopicName], isolation: Isolation
    ) -> Mapping[TopicName, Mapping[int, Offset]]:
        """Where they end."""
        told = (topic for topic in topics if topic not in self.leaderless)
        return {topic: self.partition_ends(topic, 1, isolation) for topic in told}

    def partition_ends(
        self, topic: TopicName, partitions: int, isolation: Isolation
    ) -> Mapping[int, Offset]:
        """Where they end."""
        assert isolation is Isolation.UNCOMMITTED, "markers of transactions are still on the way"
        assert topic.startswith("local.net.")
        return dict.fromkeys(range(partitions), Offset(42))


@dataclass
class Batch:
    """Rows, facts and a second look of one batch."""

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
        told, held, answered = zip(*self.of_rows, strict=True) if self.of_rows else ((), (), ())
        of_rows = (
            pa.array(told, pa.string()), pa.array(held, pa.binary()),
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
        """What is wrong, and by which limit it was asked for."""
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
    mirror: Mirror | None = None,
    commits: AtOnce | None = None,
    **others: Any,
) -> Sink:
    """A sink right after its first marker."""
    planned = planned or stateless()
    context = SinkContext(
        fragment=planned,
        lane=stable_lane(
            FragmentId(
                NetworkId(ParticipantId("local"), NetworkName("net")), FragmentName(planned.name)
            )
        ),
        run=RunNumber(1),
        version=NetworkVersion(1),
        epoch=Epoch(3),
        writer=log,
        admin=others.get("admin", Admin()),
        output_id=TopicId("out-1"),
        output_partitions=1,
        boundaries=plain or Plain(log),
        mirror=mirror or Mirror(),
        schemas=others.get("schemas", Schemas()),
        topics=others.get("topics", Topics(log)),
        commits=commits or AtOnce(),
        functions=others.get("functions", {}),
        promised=others.get("promised", {}.get),
        clock=SystemClock(),
        tell=events.append,
    )
    sources = named_sources(planned)
    wanted = Wanted(
        Epoch(3), "digest", stateful=True, on_change=None, place="here", sources=sources
    )
    started, fails, log.fails = Sink(context), log.fails, {}
    started.start(first_marker(wanted, Incarnation("one"), {AT: Offset(0)}, NOW))
    for kept in (log.done, log.values, log.headers):
        kept.clear()
    log.fails = fails
    return started


def facts(batch: int, end: int, **more: Any) -> BatchFacts:
    """A batch that read up to `end` and met nothing special."""
    plain = BatchFacts(
        batch=BatchId(batch),
        end={AT: Offset(end)},
        late_ms=None,
        eviction_ms=None,
        advance_ms=None,
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
