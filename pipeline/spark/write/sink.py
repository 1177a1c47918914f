"""Transactional sink: writes an executed batch and its marker in one transaction.

In this order: rows (fetching them executes the batch), facts, dead letters, records, marker,
commit. Nothing is visible before the commit, everything after it. The boundary follows, outside of
the transaction: it may be delayed, and once its marker is committed no later owner breaks the
promise.

A batch of a stateless lane is written while Spark computes the next one. Spark then commits it
before its marker is committed; if the marker never is, the next start finds a checkpoint that is
ahead, and begins at the marker: positions are the only progress of such a lane.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from brokers.kafka_interface import Isolation, complete
from brokers.records import Headers
from pipeline.boundaries.promise import promise
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError, FencedError, MedusaError
from pipeline.ids import (
    BatchId,
    Millis,
    SchemaHandle,
)
from pipeline.lanes.batch import (
    BatchFacts,
    RepeatedOtherwiseError,
    Written,
    is_repeat,
    next_marker,
    passed_on,
)
from pipeline.lanes.dead_letter_limits import count
from pipeline.lanes.dead_letter_reasons import LATENESS
from pipeline.lanes.dead_letters import Context, headers
from pipeline.lanes.events import BatchFinished
from pipeline.lanes.needed import BatchRead, NeededLog, after_batch, resume
from pipeline.lanes.needed_letters import (
    DeadLetterSpan,
    after_dead_letters,
    resume_dead_letters,
)
from pipeline.lanes.result_headers import LATE_RESULT, RESULT_ID, WRITTEN_TO
from pipeline.lanes.source_ids import answered_by
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import MarkedSource, by_topic
from pipeline.markers.refused import Refused
from pipeline.network.boxes.traits import Keeps, Lateness
from pipeline.spark.batch.ports import BatchEngine, BatchInspector, BatchRows, Schemas
from pipeline.spark.batch.rejected import (
    Rejected,
    check_decided_alike,
    check_in_time,
    check_late,
    refused_checksum,
)
from pipeline.spark.batch.repeated import judged_otherwise
from pipeline.spark.batch.results import Results
from pipeline.spark.query.failed_results import FailedResult
from pipeline.spark.write.publisher import Publisher
from pipeline.spark.write.sink_context import SinkContext
from schemas import wire

COMMIT_DEADLINE_S = 60.0
MARKER_KEY = b"marker"


class UnknownSchemasError(MedusaError):
    """A batch contains schemas that the query was not planned with; nothing was written.

    The lane plans again with them and runs the same batch once more.
    """

    code = "unknown-schemas"

    def __init__(self, handles: tuple[SchemaHandle, ...]) -> None:
        super().__init__(f"new schemas: {', '.join(wire.words(one) for one in handles)}")
        self.handles = handles


def check_schemas(unknown: tuple[SchemaHandle, ...], schemas: Schemas) -> None:
    """Look up schemas that a batch was not planned with.

    Those missing from the registry change nothing: their records are refused.

    Raises:
        UnknownSchemasError: with those that the registry has.
    """
    found = schemas.look_up(unknown)
    if found:
        raise UnknownSchemasError(found)


@dataclass(frozen=True, slots=True)
class _Judged:
    """A computed batch with all decisions made, ready to be written.

    `event_ms`: the event time that came into force in it; None: none did, or it is not known.
    """

    facts: BatchFacts
    event_ms: Millis | None
    results: Results
    rejected: Sequence[Rejected]
    refused: Mapping[str, Refused]


@dataclass(frozen=True, slots=True)
class _Needs:
    """Needed positions of inputs and dead letters, for a rebuild."""

    log: NeededLog
    letters: tuple[DeadLetterSpan, ...]


class Sink:
    """Writes the batches of one lane. Not thread-safe; Spark runs one batch at a time.

    `publisher` publishes the lane's boundary.
    """

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._traits, self._shape = context.fragment.traits, context.fragment.shape
        self._known: CommitMarker | None = None
        self._needs = _Needs(NeededLog({}), ())
        self.publisher = Publisher(context)
        self.undecided = False
        """Whether a transaction was begun, and is not known to be committed."""
        self._given_up: BatchId | None = None
        self._decided = ""
        self._log = logging.LoggerAdapter(
            logging.getLogger(__name__), {"fragment": str(context.lane.fragment)}
        )

    @property
    def marker(self) -> CommitMarker:
        """The last committed marker.

        Raises:
            BrokenInvariantError: `start` was not called.
        """
        if self._known is None:
            raise BrokenInvariantError("a sink writes before its lane has started")
        return self._known

    def write(
        self, rows: BatchRows, batch: int, engine: BatchEngine, inspector: BatchInspector
    ) -> None:
        """Execute and write one batch.

        Errors of a batch that is written in the background are raised with the next one.

        Raises:
            UnknownSchemasError: plan again with them and run the batch again.
            FencedError: another epoch owns the fragment.
            RetryError, UnavailableError: nothing was written; run the batch again.
            RepeatedOtherwiseError: the batch was written and makes other decisions now; rebuild the
            state from the log.
            RefusedError: a topic was deleted and created again, or a record is too large for one.
            BrokenInvariantError: a record of a derived stream was late, or Spark dropped rows as
            late that inspection does not find. TooManyDeadLettersError: nothing was written, and
            running it again will not help.
        """
        started_s = self._context.clock.monotonic_s()
        table = rows.toArrow()
        facts = engine.batch_facts(batch, table)
        self._context.commits.wait()
        if is_repeat(self.marker, facts):
            self._check_repeated(facts, inspector)
            self._log.info("batch %d was written before; executed for its state only", batch)
            self._finished(0, started_s)
            return
        event_ms = self._context.plans.executed(self.marker, facts)
        if facts.unknown:
            self._check_schemas(facts, inspector)
        results = Results(table)
        if not self._traits.stateful:
            results = results.computed()
        rejected = self._rejected(facts, inspector)
        sendable = self._sendable(results)
        refused = self._refused(self.marker, rejected, sendable.failed())
        commit = partial(
            self._commit, _Judged(facts, event_ms, sendable, rejected, refused), started_s
        )
        if self._traits.stateful:
            commit()
        else:
            self._context.commits.start(commit)

    def pass_on(self, boundary_ms: Millis) -> None:
        """Promise more without a batch: write a marker alone; for a lane without state.

        To be called between two batches.

        Raises:
            FencedError: another epoch owns the fragment. RetryError, UnavailableError: nothing was
            written. RefusedError: a topic was deleted and created again.
        """
        clock = self._context.clock
        self._context.commits.wait()
        started_s = clock.monotonic_s()
        deadline = Deadline.after(clock, COMMIT_DEADLINE_S, "passing event time on")
        still_the_same = self._context.topics.ask()
        marker = passed_on(self.marker, boundary_ms, clock.now_ms())
        with self._transaction(deadline):
            self._send_marker(marker)
            still_the_same()
        self._known = marker
        self._finished(0, started_s)
        self.publisher.publish(marker)

    @contextmanager
    def _transaction(self, deadline: Deadline) -> Iterator[None]:
        """A transaction: committed after the block; aborted if that fails, unless it is fenced."""
        clock, writer = self._context.clock, self._context.writer
        writer.begin()
        self.undecided = True
        try:
            yield
            writer.commit(deadline)
        except FencedError:
            raise
        except Exception:
            writer.abort(Deadline.after(clock, COMMIT_DEADLINE_S, "aborting a transaction"))
            raise
        self.undecided = False

    def _commit(self, judged: _Judged, started_s: float) -> None:
        """Write a batch in one transaction.

        Its records were read before: if the topics still have their ids, they were read from these.
        """
        deadline = Deadline.after(self._context.clock, COMMIT_DEADLINE_S, "writing a batch")
        still_the_same = self._context.topics.ask()
        wrote = self._letters_written(judged)
        with self._transaction(deadline):
            sent, failed = self._send_results(judged.results)
            self._send_rejected(judged.rejected, self.marker.sources)
            written = Written(
                records=sent,
                dead_letters=len(judged.rejected) + failed,
                late=sum(1 for r in judged.rejected if r.why.reason.value in LATENESS),
                refused=judged.refused,
                checksum=refused_checksum(judged.rejected),
            )
            marker, needs = self._next(judged, written, wrote)
            self._send_marker(marker)
            still_the_same()
        self._known, self._needs = marker, needs
        self._mirror()
        self._finished(sent, started_s)
        self.publisher.publish(self.marker)

    def _check_repeated(self, facts: BatchFacts, inspector: BatchInspector) -> None:
        """Check that a repeated batch results in the same state as when it was written.

        Nothing is compared in a stateless lane.

        Raises:
            UnknownSchemasError: plan again with them and run the batch again.
            RepeatedOtherwiseError: its decisions differ.
        """
        if not self._traits.stateful:
            return
        why = judged_otherwise(self.marker, facts, inspector)
        if not why:
            return
        if facts.unknown:  # the plan may lack schemas that were looked up when it was written
            unknown = inspector.unknown_schemas(self.marker.start, facts.end)
            if found := self._context.schemas.existing(unknown):
                raise UnknownSchemasError(found)
        raise RepeatedOtherwiseError(
            f"batch {facts.batch} was written, and is judged otherwise when it is executed again "
            f"for its state: {why}",
            place=self._place,
            hint="nothing has to be done: the state is rebuilt from the log, without what the dead "
            "letters name",
        )

    def _check_schemas(self, facts: BatchFacts, inspector: BatchInspector) -> None:
        """Look up the schemas that the batch was not planned with; raises as `check_schemas` does.

        When a producer has changed its schema, the ids in the batch metrics suffice, and an
        inspection would take longer than the rest of the change. If they do not suffice, all ids of
        the batch are looked up, so that no batch is aborted more than twice.
        """
        if self._given_up != facts.batch:
            self._given_up = facts.batch
            check_schemas(facts.unknown, self._context.schemas)
        check_schemas(inspector.unknown_schemas(self.marker.end, facts.end), self._context.schemas)

    def start(self, marker: CommitMarker, rejected: Sequence[Rejected] = ()) -> None:
        """Commit the marker that a lane starts from, under the lane's epoch.

        `rejected`: records refused by a chosen rebuild, which become dead letters.

        Raises:
            TooManyDeadLettersError: they exceed a limit; nothing was written.
        """
        clock = self._context.clock
        marker = marker.with_output(self._context.output_id)
        self._decided = answered_by(self._context.fragment, marker.sources)
        if rejected:
            totals = marker.totals
            totals = replace(totals, dead_letters=totals.dead_letters + len(rejected))
            marker = replace(marker, totals=totals, refused=self._refused(marker, rejected, []))
        self._context.writer.begin()
        self._send_rejected(rejected, marker.sources)
        self._send_marker(marker)
        self._context.writer.commit(Deadline.after(clock, COMMIT_DEADLINE_S, "starting a lane"))
        self._known, self._needs = marker, _Needs(resume(marker), resume_dead_letters(marker))
        self.publisher.output_ends = marker.output_ends
        self._mirror()
        self.publisher.publish(self.marker)

    def _letters_written(self, judged: _Judged) -> DeadLetterSpan | None:
        """The span of the batch's dead letters, if a rebuild may need them.

        Raises:
            NotNowError: a partition of their topic has no leader now.
        """
        if not judged.rejected or not self._traits.stateful:
            return None
        topic, admin = self._context.fragment.names.dead_letters, self._context.admin
        # Before its ends: if it is recreated in between, offsets of the old topic are not applied
        # to the new.
        described = admin.describe((topic,)).get(topic)
        ends = complete(admin.end_offsets((topic,), Isolation.UNCOMMITTED), (topic,))[topic]
        return DeadLetterSpan(described.topic_id if described else "", ends, judged.facts.end)

    def _next(
        self, judged: _Judged, written: Written, wrote: DeadLetterSpan | None
    ) -> tuple[CommitMarker, _Needs]:
        shape, last, facts = self._shape, self.marker, judged.facts
        read = BatchRead(last.end, facts.end, facts.largest, facts.eviction_ms)
        log, needed = after_batch(shape, self._needs.log, read)
        letters = after_dead_letters(self._needs.letters, wrote, needed)
        promised = promise(
            shape,
            eviction_ms=facts.eviction_ms,
            passed_ms=judged.event_ms,
            previous_ms=last.boundary_ms,
        )
        marker = next_marker(
            last,
            facts,
            written,
            epoch=self._context.epoch,
            needed=needed,
            letters=letters,
            output_ends=self.publisher.output_ends,
            boundary_ms=promised,
            now_ms=self._context.clock.now_ms(),
        )
        return marker, _Needs(log, letters)

    def _sendable(self, results: Results) -> Results:
        """Sort results of windows by event time; a stateless query keeps its input's order."""
        ordered = self._traits.keeps is Keeps.GROUPS
        return results.by_time() if ordered else results

    def _rejected(self, facts: BatchFacts, inspector: BatchInspector) -> list[Rejected]:
        if not facts.bad and not facts.late:
            return []
        dropped = facts.late > 0
        # For groups also if Spark has dropped nothing, to check that there is no late record.
        groups = self._traits.lateness is Lateness.GROUP
        late_ms = facts.late_ms if dropped or groups else None
        rejected = inspector.rejected(self.marker.end, facts.end, late_ms)
        check_decided_alike(facts.failed, rejected, self._context.functions)
        check_late(rejected, self._place, dropped=dropped)
        derived = self._context.fragment.derived
        sources = [one for one in self.marker.sources if one.name in derived]
        check_in_time(rejected, sources, self._context.promised)
        return rejected

    @property
    def _place(self) -> str:
        return f"fragment {self._context.lane.fragment}"

    def _refused(
        self,
        before: CommitMarker,
        rejected: Sequence[Rejected],
        failed: Iterable[FailedResult],
    ) -> Mapping[str, Refused]:
        """Count dead letters with a limit, on top of a marker's counts, before any write."""
        fragment, version = self._context.fragment, self._context.version
        if not fragment.limits:
            return {}
        letters = [record.context(fragment.names, version, before.sources) for record in rejected]
        letters += [self._letter_of(result) for result in failed]
        return count(fragment.limits, before.refused, letters, self._place)

    def _send_results(self, results: Results) -> tuple[int, int]:
        """Send results, and failed results as dead letters; returns both counts."""
        output, writer = self._context.fragment.output, self._context.writer
        partitions = self.publisher.partitions_to_write()
        failed = 0
        for result in results.failed():
            self._send_failed_result(result)
            failed += 1
        late_ms = self._promised_above(results)
        if output.corrections or late_ms is not None:
            return self._send_marked(results, partitions, late_ms), failed
        return writer.send_many(output.topic, results.records(partitions), self._own), failed

    @property
    def _own(self) -> Headers:
        """The headers of every result."""
        return ((WRITTEN_TO, self._context.output_id.encode()),)

    def _promised_above(self, results: Results) -> Millis | None:
        """The lane's promise, if results at or below it may be published; else None.

        A stateless lane has no state that they could corrupt. In an as-of join they are of rows
        redriven with their version. They are marked as late, and their readers decide.
        """
        promised, earliest_ms = self.marker.boundary_ms, None
        if promised is not None and (not self._traits.stateful or results.answered):
            earliest_ms = results.earliest_ms
        late = promised is not None and earliest_ms is not None and earliest_ms <= promised
        return promised if late else None

    def _send_marked(self, results: Results, partitions: int, late_ms: Millis | None) -> int:
        """Send results with their ids, if any; those up to `late_ms` are marked as late."""
        output, own, sent = self._context.fragment.output, self._own, 0
        mark = ((LATE_RESULT, b"%d" % late_ms),) if late_ms is not None else ()
        for key, value, timestamp_ms, partition, result in results.identified(partitions):
            ids = own if result is None else (*own, (RESULT_ID, result))
            late = late_ms is not None and timestamp_ms <= late_ms
            self._context.writer.send(
                output.topic,
                key,
                value,
                timestamp_ms=timestamp_ms,
                headers=(*ids, *mark) if late else ids,
                partition=partition,
            )
            sent += 1
        return sent

    def _letter_of(self, result: FailedResult) -> Context:
        context = self._context
        return result.context(context.fragment, context.version, self.marker.sources, self._decided)

    def _send_failed_result(self, result: FailedResult) -> None:
        names = self._context.fragment.names
        self._context.writer.send(
            names.dead_letters,
            None,
            result.value,
            timestamp_ms=result.timestamp_ms,
            headers=headers(names, self._letter_of(result), ()),
        )

    def _send_rejected(self, rejected: Sequence[Rejected], sources: Sequence[MarkedSource]) -> None:
        names = self._context.fragment.names
        for record in rejected:
            context = record.context(names, self._context.version, sources)
            self._context.writer.send(
                names.dead_letters,
                record.key,
                record.value,
                timestamp_ms=record.timestamp_ms,
                headers=headers(names, context, record.headers),
            )

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
        context = self._context
        elapsed_ms = round(1000 * (context.clock.monotonic_s() - started_s))
        context.report(BatchFinished(context.lane, context.run, self.marker, rows_out, elapsed_ms))
