"""Sink: has each executed batch judged, and writes it with its marker, all at once.

In this order: rows (fetching them executes the batch), facts, inspection, verdict, marker, and then
the writing. Nothing is visible before it is complete, everything after it. The boundary follows: it
may be delayed, and once its marker is committed no later owner breaks the promise.

A batch of a stateless lane is written while Spark computes the next one. Spark then commits it
before its marker is committed; if the marker never is, the next start finds a checkpoint that is
ahead, and begins at the marker: positions are the only progress of such a lane.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from brokers.kafka_interface import Isolation, complete
from pipeline.boundaries.next_batch import Batch
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError
from pipeline.ids import BatchId, Millis
from pipeline.lanes.batch import BatchFacts, RepeatedOtherwiseError, is_repeat
from pipeline.lanes.events import BatchFinished
from pipeline.lanes.needed_letters import DeadLetterSpan
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.cut import Cut, cut_id
from pipeline.markers.positions import by_topic
from pipeline.spark.batch.committed import Circumstances, Committed
from pipeline.spark.batch.ports import BatchEngine, BatchInspector, BatchRows
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.batch.repeated import judged_otherwise
from pipeline.spark.batch.results import Results
from pipeline.spark.batch.unknown_schemas import SchemaCheck
from pipeline.spark.batch.verdict import Executed, Judge, Verdict
from pipeline.spark.write.outgoing import Again, BatchWriter, Outgoing, OutgoingResults
from pipeline.spark.write.publisher import Publisher
from pipeline.spark.write.sink_context import SinkContext

WRITE_DEADLINE_S: Final = 60.0


class Sink:
    """Writes the batches of one lane. Not thread-safe; Spark runs one batch at a time.

    `publisher` publishes the lane's boundary.
    """

    def __init__(self, context: SinkContext, writer: BatchWriter) -> None:
        self._context = context
        self._writer = writer
        self._judge = Judge(context.fragment, context.version, context.functions)
        self._schemas = SchemaCheck(context.schemas)
        self._committed: Committed | None = None
        self.publisher = Publisher(context)
        self._log = logging.LoggerAdapter(
            logging.getLogger(__name__), {"fragment": str(context.lane.fragment)}
        )

    @property
    def marker(self) -> CommitMarker:
        """The last committed marker.

        Raises:
            BrokenInvariantError: `start` was not called.
        """
        return self._last.marker

    @property
    def undecided(self) -> bool:
        """Whether what was written last failed, and may be visible later."""
        return self._writer.undecided

    def start(self, marker: CommitMarker, rejected: Sequence[Rejected] = ()) -> None:
        """Commit the marker that a lane starts from, under the lane's epoch.

        `rejected`: records refused by a chosen rebuild, which become dead letters.

        Raises:
            TooManyDeadLettersError: they exceed a limit; nothing was written.
        """
        marker = marker.with_output(self._context.output_id)
        marker, letters = self._judge.judge_rebuilt(marker, rejected)
        self._writer.write(Outgoing(marker, letters), _nothing, self._deadline("starting a lane"))
        self._committed = Committed.begun(marker)
        self.publisher.output_ends = marker.output_ends
        self._mirror()
        self.publisher.publish(marker)

    def plan(self, batch: Batch) -> None:
        """Take in the plan of the next batch, if it is written otherwise than at once.

        Its cut is committed in the background, while Spark executes it.
        """
        if self._writer.cuts:
            self._context.commits.follow(partial(self._cut, batch))

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
        last = self.marker
        if is_repeat(last, facts):
            self._check_repeated(facts, inspector)
            self._log.info("batch %d was written before; executed for its state only", batch)
            self._finished(0, started_s)
            return
        event_ms = self._context.plans.executed(last, facts)
        self._schemas.of_new(facts, last.end, inspector)
        verdict = self._verdict(facts, event_ms, Results(table), inspector)
        commit = partial(self._commit, verdict, started_s)
        if self._judge.traits.stateful:
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
        deadline = self._deadline("passing event time on")
        still_the_same = self._context.topics.ask()
        committed = self._last.passed_on(boundary_ms, clock.now_ms())
        self._writer.write(Outgoing(committed.marker), still_the_same, deadline)
        self._committed = committed
        self._finished(0, started_s)
        self.publisher.publish(committed.marker)

    def _cut(self, batch: Batch) -> None:
        """Commit the cut of a batch, unless an earlier owner has: then it was planned by that."""
        last, context = self.marker, self._context
        if last.cut is not None:
            return
        number = BatchId(last.batch + 1)
        partitions = self.publisher.partitions_to_write()
        cut = Cut(cut_id(context.epoch, number), batch.end, batch.event_ms, partitions)
        committed = self._last.with_cut(cut)
        deadline = self._deadline("fixing what a batch reads")
        self._writer.write(Outgoing(committed.marker), _nothing, deadline)
        self._committed = committed

    def _verdict(
        self,
        facts: BatchFacts,
        event_ms: Millis | None,
        results: Results,
        inspector: BatchInspector,
    ) -> Verdict:
        last, context = self.marker, self._context
        look, rejected = self._judge.inspected(last, facts), list[Rejected]()
        if look is not None:
            rejected = inspector.rejected(look.start, look.end, look.late_ms)
        derived = context.fragment.derived if rejected else ()
        promised = {one: ms for one in derived if (ms := context.promised(one)) is not None}
        executed = Executed(facts, event_ms, results, rejected, promised)
        return self._judge.judge(last, executed)

    def _commit(self, verdict: Verdict, started_s: float) -> None:
        """Write a batch.

        Its records were read before: if the topics still have their ids, they were read from these.
        """
        context = self._context
        deadline = self._deadline("writing a batch")
        still_the_same = context.topics.ask()
        span, ends = self._letters_written(verdict), self.publisher.output_ends
        around = Circumstances(context.epoch, span, ends, context.clock.now_ms())
        committed = self._last.after(verdict, self._judge.shape, around)
        outgoing = Outgoing(committed.marker, verdict.letters, self._outgoing(verdict))
        self._writer.write(outgoing, still_the_same, deadline)
        self._committed = committed
        self._mirror()
        self._finished(verdict.written.records, started_s, verdict.results.size_bytes)
        self.publisher.publish(committed.marker)

    def _outgoing(self, verdict: Verdict) -> OutgoingResults:
        """The results; those of a batch that was cut as they were, or would have been, before."""
        partitions, cut = self.publisher.partitions_to_write(), self.marker.cut
        if cut is None:
            return OutgoingResults(verdict.results, partitions, verdict.late_ms)
        again = Again(self._context.lane.fragment, cut.id)
        return OutgoingResults(verdict.results, cut.partitions, verdict.late_ms, again)

    def _check_repeated(self, facts: BatchFacts, inspector: BatchInspector) -> None:
        """Check that a repeated batch results in the same state as when it was written.

        Nothing is compared in a stateless lane.

        Raises:
            UnknownSchemasError: plan again with them and run the batch again.
            RepeatedOtherwiseError: its decisions differ.
        """
        if not self._judge.traits.stateful:
            return
        why = judged_otherwise(self.marker, facts, inspector)
        if not why:
            return
        self._schemas.of_written(facts, self.marker.start, inspector)
        raise RepeatedOtherwiseError(
            f"batch {facts.batch} was written, and is judged otherwise when it is executed again "
            f"for its state: {why}",
            place=self._judge.place,
            hint="nothing has to be done: the state is rebuilt from the log, without what the dead "
            "letters name",
        )

    def _letters_written(self, verdict: Verdict) -> DeadLetterSpan | None:
        """The span of the batch's dead letters, if a rebuild may need them.

        Raises:
            NotNowError: a partition of their topic has no leader now.
        """
        if not verdict.names_records or not self._judge.traits.stateful:
            return None
        topic, admin = self._context.fragment.names.dead_letters, self._context.admin
        # Before its ends: if it is recreated in between, offsets of the old topic are not applied
        # to the new.
        described = admin.describe((topic,)).get(topic)
        ends = complete(admin.end_offsets((topic,), Isolation.UNCOMMITTED), (topic,))[topic]
        return DeadLetterSpan(described.topic_id if described else "", ends, verdict.facts.end)

    @property
    def _last(self) -> Committed:
        if self._committed is None:
            raise BrokenInvariantError("a sink writes before its lane has started")
        return self._committed

    def _deadline(self, what: str) -> Deadline:
        return Deadline.after(self._context.clock, WRITE_DEADLINE_S, what)

    def _mirror(self) -> None:
        topics = {i.topic for i in self._context.fragment.inputs}
        self._context.mirror.follow(by_topic(self.marker.end, topics))

    def _finished(self, rows_out: int, started_s: float, bytes_out: int = 0) -> None:
        context = self._context
        elapsed_ms = round(1000 * (context.clock.monotonic_s() - started_s))
        what = self.marker, rows_out, elapsed_ms, bytes_out
        context.report(BatchFinished(context.lane, context.run, *what))


def _nothing() -> None:
    """Nothing is checked before a lane's first marker becomes visible."""
