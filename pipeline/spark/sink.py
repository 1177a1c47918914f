"""What happens to an executed batch: one transaction with everything that follows from it.

In this order: rows (the batch is executed by taking them), facts, dead letters, records, marker,
commit. Nothing is visible before the commit, everything after it. The boundary follows, outside of
the transaction: a promise may come late, and once its marker is committed no later owner breaks it.

A batch of a stateless lane is written while Spark computes the next one. Spark then counts it as
done before its marker is committed; should the marker never be, the next start finds a checkpoint
that is ahead, and begins at the marker: positions are all that such a lane has.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock

from brokers.kafka.admin import Isolation
from brokers.kafka.errors import NoSuchTopicError
from pipeline.boundaries.profile import Joined, LaneProfile, Sessions, Stateless, Windowed
from pipeline.boundaries.promise import promise
from pipeline.clock import Clock, Deadline
from pipeline.errors import (
    BrokenInvariantError,
    FencedError,
    MedusaError,
    RetryError,
    UnavailableError,
)
from pipeline.ids import BatchId, Epoch, Millis, NetworkVersion, SchemaHandle, TopicId
from pipeline.lanes import codec
from pipeline.lanes.batch import BatchFacts, Written, is_repeat, next_marker
from pipeline.lanes.dead_letters import LATENESS, headers
from pipeline.lanes.events import BatchFinished, FragmentId, LaneEvent
from pipeline.lanes.ids import RESULT_ID
from pipeline.lanes.limits import Refused, count
from pipeline.lanes.markers import CommitMarker
from pipeline.lanes.needed import BatchRead, NeededLog, after_batch, resume
from pipeline.lanes.positions import by_topic
from pipeline.lanes.signals import BoundaryRecord
from pipeline.names import boundaries_topic
from pipeline.planner.plan import DerivedStream, Fragment
from pipeline.spark.ports import (
    BatchEngine,
    BatchRows,
    Followed,
    Jobs,
    PartitionEnds,
    Records,
    Schemas,
    SecondLook,
    Topics,
    Transactions,
)
from pipeline.spark.rejected import Rejected, check_decided_alike, failed_result
from pipeline.spark.results import Results
from schemas import wire

COMMIT_DEADLINE_S = 60.0
MARKER_KEY = b"marker"


class UnknownSchemasError(MedusaError):
    """A batch met schemas that the query was not planned with; nothing was written.

    The lane plans again with them and runs the same batch once more.
    """

    code = "unknown-schemas"

    def __init__(self, handles: tuple[SchemaHandle, ...]) -> None:
        super().__init__(f"new schemas: {', '.join(wire.words(one) for one in handles)}")
        self.handles = handles


def check_schemas(unknown: tuple[SchemaHandle, ...], schemas: Schemas) -> None:
    """Look up schemas that a batch was not planned with.

    Those that the registry does not have change nothing: their records were left out as bad ones.

    Raises:
        UnknownSchemasError: with those that it has.
    """
    found = schemas.look_up(unknown)
    if found:
        raise UnknownSchemasError(found)


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What does not change while a lane lives.

    `output_id` is Kafka's id of the output topic at deploy, `output_partitions` the number of its
    partitions at the start of the lane; it may rise meanwhile.
    """

    fragment: Fragment
    id: FragmentId
    version: NetworkVersion
    epoch: Epoch
    profile: LaneProfile
    writer: Transactions
    admin: PartitionEnds
    output_id: TopicId
    output_partitions: int
    boundaries: Records
    mirror: Followed
    schemas: Schemas
    topics: Topics
    beside: Jobs
    clock: Clock
    tell: Callable[[LaneEvent], None]


@dataclass(frozen=True, slots=True)
class _Publication:
    """What decides whether the boundary has to be published: nothing else is told by it.

    Args:
        boundary_ms: what is promised.
        partitions: of the output; a reader waits for a boundary that names all that it reads.
        into: Kafka's id of the topic of boundaries; another one does not hold what the last held.
            Empty: not described yet.
        undelivered: deliveries that have failed so far.
    """

    boundary_ms: Millis
    partitions: int
    into: str
    undelivered: int


@dataclass(frozen=True, slots=True)
class _Judged:
    """A computed batch of which everything is decided: it only has to be written."""

    facts: BatchFacts
    results: Results
    rejected: list[Rejected]
    refused: Mapping[str, Refused]


class Sink:
    """Writes the batches of one lane. Not safe for two batches at once; Spark never does that."""

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._known: CommitMarker | None = None
        self._needed = NeededLog({})
        self._published: _Publication | None = None
        self._publishing = Lock()
        self._given_up: BatchId | None = None
        self._written_to = context.output_partitions
        self._log = logging.LoggerAdapter(
            logging.getLogger(__name__), {"fragment": f"{context.id.network}.{context.id.fragment}"}
        )

    @property
    def marker(self) -> CommitMarker:
        """The last marker that is known to be committed.

        Raises:
            BrokenInvariantError: `start` was not called.
        """
        if self._known is None:
            raise BrokenInvariantError("a sink writes before its lane has started")
        return self._known

    def write(
        self, rows: BatchRows, batch: int, engine: BatchEngine, inspector: SecondLook
    ) -> None:
        """Execute and write one batch.

        What goes wrong with a batch that is written beside the query is raised with the next one.

        Raises:
            UnknownSchemasError: plan again with them and run the batch again.
            FencedError: another epoch owns the fragment.
            RetryError, UnavailableError: nothing was written; run the batch again.
            RefusedError: a topic was deleted and made again, or a record is too large for one.
            BrokenInvariantError: a record of a derived stream was late.
            TooManyDeadLettersError: nothing was written, and running it again will not help.
        """
        clock = self._context.clock
        started_s = clock.monotonic_s()
        table = rows.toArrow()
        facts = engine.batch_facts(batch, table)
        self._context.beside.wait()
        if facts.unknown:
            self._check_schemas(facts, inspector)
        if is_repeat(self.marker, facts):
            self._log.info("batch %d was written before; executed for its state only", batch)
            self._finished(0, started_s)
            return
        results = Results(table)
        if isinstance(self._context.profile.shape, Stateless):
            results = results.computed()
        late_ms = self._late_limit(facts, results)
        rejected = self._rejected(facts, late_ms, inspector)
        sendable = self._sendable(results, late_ms)
        refused = self._refused(rejected, sendable)
        commit = partial(self._commit, _Judged(facts, sendable, rejected, refused), started_s)
        if isinstance(self._context.profile.shape, Stateless):
            self._context.beside.start(commit)
        else:
            commit()

    def _commit(self, judged: _Judged, started_s: float) -> None:
        """Write a batch in one transaction; it is the truth from its commit on.

        All of it was read by now: if its topics are still the same, it was read from them.
        """
        clock, writer = self._context.clock, self._context.writer
        deadline = Deadline.after(clock, COMMIT_DEADLINE_S, "writing a batch")
        still_the_same = self._context.topics.ask()
        writer.begin()
        try:
            sent, failed = self._send_results(judged.results)
            self._send_rejected(judged.rejected)
            written = Written(
                records=sent,
                dead_letters=len(judged.rejected) + failed,
                late=sum(1 for r in judged.rejected if r.why.reason.value in LATENESS),
                refused=judged.refused,
            )
            marker, needed = self._next(judged.facts, written)
            self._send_marker(marker)
            still_the_same()
            writer.commit(deadline)
        except FencedError:
            raise
        except MedusaError:
            writer.abort(Deadline.after(clock, COMMIT_DEADLINE_S, "aborting a batch"))
            raise
        self._known, self._needed = marker, needed
        self._mirror()
        self._finished(sent, started_s)
        self._publish_boundary()

    def _check_schemas(self, facts: BatchFacts, inspector: SecondLook) -> None:
        """Look up what the batch was not planned with; raises as `check_schemas` does.

        When a producer has changed its schema, the ids that the engine tells are there, and a
        second look would take longer than all the rest of the change. If that did not do for the
        batch, all of its ids are looked at, so that no batch is given up more than twice.
        """
        if self._given_up != facts.batch:
            self._given_up = facts.batch
            check_schemas(facts.unknown, self._context.schemas)
        check_schemas(inspector.unknown_schemas(self.marker.end, facts.end), self._context.schemas)

    def start(self, marker: CommitMarker) -> None:
        """Commit the marker that a lane starts from, under its own epoch."""
        clock = self._context.clock
        self._context.writer.begin()
        self._send_marker(marker)
        self._context.writer.commit(Deadline.after(clock, COMMIT_DEADLINE_S, "starting a lane"))
        self._known, self._needed = marker, resume(marker)
        self._mirror()
        self._publish_boundary()

    def publish_again(self) -> None:
        """Publish the boundary if what was published does not do any more. Safe from any thread.

        Call it now and then: the output may get more partitions, and the topic of boundaries may be
        deleted and created again, while there is no batch.
        """
        if self._known is None or not self._publishing.acquire(blocking=False):
            return  # a batch publishes just now
        try:
            self._publish()
        finally:
            self._publishing.release()

    def _next(self, facts: BatchFacts, written: Written) -> tuple[CommitMarker, NeededLog]:
        shape, last = self._context.profile.shape, self.marker
        read = BatchRead(last.end, facts.end, facts.largest, facts.eviction_ms)
        log, needed = after_batch(shape, self._needed, read)
        promised = promise(
            shape,
            eviction_ms=facts.eviction_ms,
            advance_ms=facts.advance_ms,
            previous_ms=last.boundary_ms,
        )
        marker = next_marker(
            last,
            facts,
            written,
            epoch=self._context.epoch,
            needed=needed,
            boundary_ms=promised,
            now_ms=self._context.clock.now_ms(),
        )
        return marker, log

    def _late_limit(self, facts: BatchFacts, results: Results) -> Millis | None:
        """At or below which event time records of this batch are late; None when none is.

        A stateful query drops them itself. A stateless one keeps the promise that the lane has
        made about its output: what lies at or below it must not follow.
        """
        if facts.late:
            return facts.late_ms
        promised = self.marker.boundary_ms
        if isinstance(self._context.profile.shape, Stateless) and promised is not None:
            earliest_ms = results.earliest_ms
            return promised if earliest_ms is not None and earliest_ms <= promised else None
        return None

    def _sendable(self, results: Results, late_ms: Millis | None) -> Results:
        """Without late rows, and windows in the order of event time.

        A stateful query has left late rows out itself; a stateless one keeps its input's order.
        """
        match self._context.profile.shape:
            case Stateless():
                return results if late_ms is None else results.after(late_ms)
            case Windowed() | Sessions():
                return results.by_time()
            case Joined():
                return results

    def _rejected(
        self, facts: BatchFacts, late_ms: Millis | None, inspector: SecondLook
    ) -> list[Rejected]:
        if not facts.bad and late_ms is None:
            return []
        rejected = inspector.rejected(self.marker.end, facts.end, late_ms)
        check_decided_alike(facts.failed, rejected)
        derived = {i.name for i in self._context.fragment.inputs if isinstance(i, DerivedStream)}
        for record in rejected:
            if record.why.reason.value in LATENESS and record.input in derived:
                raise BrokenInvariantError(
                    f"a record of the derived stream {record.input} was late",
                    place=f"topic {record.topic}, partition {record.partition}, "
                    f"offset {record.offset}",
                    hint="its writer broke its boundary; the fragment is stopped so that no wrong "
                    "result is published",
                )
        return rejected

    def _refused(self, rejected: list[Rejected], results: Results) -> Mapping[str, Refused]:
        """Count what has a limit, before anything is written."""
        fragment, version = self._context.fragment, self._context.version
        if not fragment.limits:
            return {}
        sources = self.marker.sources
        letters = [record.context(fragment.names, version, sources) for record in rejected]
        letters += [failed_result(why, at, version) for why, _, at in results.failed()]
        place = f"fragment {self._context.id.network}.{self._context.id.fragment}"
        return count(fragment.limits, self.marker.refused, letters, place)

    def _send_results(self, results: Results) -> tuple[int, int]:
        """Send results, and what could not be computed to the dead letters; returns both counts."""
        output, writer = self._context.fragment.output, self._context.writer
        self._written_to = self._partitions()
        failed = 0
        for reason, value, timestamp_ms in results.failed():
            self._send_failed_result(reason, value, timestamp_ms)
            failed += 1
        if output.corrections:
            return self._send_identified(results), failed
        return writer.send_many(output.topic, results.records(self._written_to)), failed

    def _send_identified(self, results: Results) -> int:
        topic, sent = self._context.fragment.output.topic, 0
        for key, value, timestamp_ms, partition, result in results.identified(self._written_to):
            self._context.writer.send(
                topic,
                key,
                value,
                timestamp_ms=timestamp_ms,
                headers=((RESULT_ID, result),),
                partition=partition,
            )
            sent += 1
        return sent

    def _send_failed_result(self, reason: str, value: bytes, timestamp_ms: Millis) -> None:
        context = failed_result(reason, timestamp_ms, self._context.version)
        names = self._context.fragment.names
        self._context.writer.send(
            names.dead_letters,
            None,
            value,
            timestamp_ms=timestamp_ms,
            headers=headers(names, context, ()),
        )

    def _send_rejected(self, rejected: list[Rejected]) -> None:
        names = self._context.fragment.names
        for record in rejected:
            context = record.context(names, self._context.version, self.marker.sources)
            self._context.writer.send(
                names.dead_letters,
                record.key,
                record.value,
                timestamp_ms=record.timestamp_ms,
                headers=headers(names, context, record.headers),
            )

    def _publish_boundary(self) -> None:
        with self._publishing:
            self._publish()

    def _publish(self) -> None:
        """Publish what the lane promises, with the positions up to which its output lies.

        What cannot be published now is published with the next batch, or by `publish_again`. The
        partitions that are named are at least those that the lane has written to: their number only
        rises. Ends are asked for after the marker was committed, and so cover what it promises.
        """
        due = self._due()
        if due is None or due == self._published:
            return
        if self._published is not None and due.undelivered > self._published.undelivered:
            self._log.warning("a boundary was not delivered: it is published again")
        output, writer = self._context.fragment.output.topic, self._context.fragment.names.writer
        try:
            ends = self._context.admin.partition_ends(output, due.partitions, Isolation.UNCOMMITTED)
            record = BoundaryRecord(
                self._context.output_id, writer, self._context.epoch, due.boundary_ms, ends
            )
            self._context.boundaries.send(
                boundaries_topic(output),
                writer.encode(),
                codec.encode_boundary(record),
                timestamp_ms=self.marker.written_at_ms,
                partition=0,
            )
        except (RetryError, UnavailableError, NoSuchTopicError) as error:
            self._log.warning("the boundary could not be published yet: %s", error)
            return
        self._published = due

    def _due(self) -> _Publication | None:
        """What has to be published; None while nothing is promised, or there is no place for it."""
        boundary_ms, topics = self.marker.boundary_ms, self._context.topics
        there = topics.last(boundaries_topic(self._context.fragment.output.topic))
        if boundary_ms is None or (there is None and topics.answered):
            return None
        into = "" if there is None else there.topic_id
        undelivered = self._context.boundaries.undelivered
        return _Publication(boundary_ms, self._partitions(), into, undelivered)

    def _partitions(self) -> int:
        """How many partitions the output has: never fewer than were written to before."""
        there = self._context.topics.last(self._context.fragment.output.topic)
        return max(self._written_to, 0 if there is None else there.partitions)

    def _send_marker(self, marker: CommitMarker) -> None:
        self._context.writer.send(
            self._context.fragment.names.markers,
            MARKER_KEY,
            codec.encode_marker(marker),
            timestamp_ms=marker.written_at_ms,
            partition=0,
        )

    def _mirror(self) -> None:
        topics = {i.topic for i in self._context.fragment.inputs}
        self._context.mirror.follow(by_topic(self.marker.end, topics))

    def _finished(self, rows_out: int, started_s: float) -> None:
        elapsed_ms = round(1000 * (self._context.clock.monotonic_s() - started_s))
        self._context.tell(
            BatchFinished(self._context.id, self._context.epoch, self.marker, rows_out, elapsed_ms)
        )
