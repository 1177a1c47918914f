"""Verdict on an executed batch: what is written of it, and what the lane then promises. Pure.

The facts of the batch, its rows and its refused records go in; what comes out is only written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pipeline.boundaries.promise import promise
from pipeline.ids import BoxName, Millis, NetworkVersion, StreamName
from pipeline.lanes.batch import BatchFacts, Written
from pipeline.lanes.dead_letter_limits import count
from pipeline.lanes.dead_letter_reasons import LATENESS
from pipeline.lanes.dead_letters import DeadLetter
from pipeline.lanes.gaps import withheld_ms
from pipeline.lanes.source_ids import answered_by
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions
from pipeline.markers.refused import Refused
from pipeline.network.boxes.shape import Shape
from pipeline.network.boxes.traits import Keeps, Lateness, Traits
from pipeline.planner.plan import Fragment
from pipeline.spark.batch.rejected import (
    Rejected,
    check_decided_alike,
    check_in_time,
    check_late,
    refused_checksum,
)
from pipeline.spark.batch.results import Results


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is inspected of a batch: a range, and the watermark of late records, if they count."""

    start: Positions
    end: Positions
    late_ms: Millis | None


@dataclass(frozen=True, slots=True)
class Executed:
    """An executed batch.

    Args:
        facts: of the batch.
        event_ms: the event time that came into force in it; None: none did, or it is not known.
        results: its rows.
        rejected: its refused and late records, as inspection found them.
        promised: derived input → the boundary in effect before the batch; of others none was.
    """

    facts: BatchFacts
    event_ms: Millis | None
    results: Results
    rejected: Sequence[Rejected]
    promised: Mapping[StreamName, Millis]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A batch with all decisions made.

    Args:
        facts: of the batch.
        results: its results, in the order in which they are written.
        late_ms: results up to this event time are marked as late; None: none is.
        letters: its dead letters.
        written: the counts of both.
        boundary_ms: what the lane promises with it; None: nothing yet.
    """

    facts: BatchFacts
    results: Results
    late_ms: Millis | None
    letters: tuple[DeadLetter, ...]
    written: Written
    boundary_ms: Millis | None

    @property
    def names_records(self) -> bool:
        """Whether a dead letter is of a record, which a rebuild of the state leaves out."""
        return any(letter.context.topic is not None for letter in self.letters)


@dataclass(frozen=True)
class Judge:
    """Judges the batches of one lane.

    Args:
        fragment: of the lane.
        version: of its network.
        functions: path → its boxes that call user functions.
    """

    fragment: Fragment
    version: NetworkVersion
    functions: Mapping[str, tuple[BoxName, ...]]

    @cached_property
    def traits(self) -> Traits:
        """Those of the fragment."""
        return self.fragment.traits

    @cached_property
    def shape(self) -> Shape:
        """That of the fragment."""
        return self.fragment.shape

    @property
    def place(self) -> str:
        """Names the fragment, for errors."""
        return f"fragment {self.fragment.names.id}"

    def inspected(self, last: CommitMarker, facts: BatchFacts) -> Inspection | None:
        """What has to be inspected before a batch is judged; None: nothing.

        Args:
            last: the marker of the batch before.
            facts: of the batch.
        """
        if not facts.bad and not facts.late:
            return None
        # For groups also if Spark has dropped nothing, to check that there is no late record.
        late = facts.late > 0 or self.traits.lateness is Lateness.GROUP
        return Inspection(last.end, facts.end, facts.late_ms if late else None)

    def judge(self, last: CommitMarker, batch: Executed) -> Verdict:
        """Make all decisions about a batch.

        Args:
            last: the marker of the batch before.
            batch: the batch.

        Raises:
            RetryError: a user function has refused other records in the inspection.
            BrokenInvariantError: a record of a derived stream was late, or Spark dropped rows as
            late that inspection does not find. TooManyDeadLettersError: of a stream or a box.
        """
        facts, rejected = batch.facts, batch.rejected
        self._check(last, batch)
        results = self._ordered(batch.results.above(withheld_ms(self.shape, last.gap)))
        letters = (*self._of_records(last, rejected), *self._of_results(last, results))
        boundary_ms = promise(
            self.shape,
            eviction_ms=facts.eviction_ms,
            passed_ms=batch.event_ms,
            previous_ms=last.boundary_ms,
        )
        written = Written(
            records=results.computed().table.num_rows,
            dead_letters=len(letters),
            late=sum(1 for one in rejected if one.why.reason.value in LATENESS),
            refused=self._refused(last, letters),
            checksum=refused_checksum(rejected),
            results=results.checksum if self.traits.stateful else None,
        )
        late_ms = self._promised_above(last, results)
        return Verdict(facts, results, late_ms, letters, written, boundary_ms)

    def judge_rebuilt(
        self, marker: CommitMarker, rejected: Sequence[Rejected]
    ) -> tuple[CommitMarker, tuple[DeadLetter, ...]]:
        """The marker of a rebuilt state, and the dead letters of the records that it refused.

        Raises:
            TooManyDeadLettersError: of a stream or a box.
        """
        if not rejected:
            return marker, ()
        letters = self._of_records(marker, rejected)
        totals = marker.totals
        totals = replace(totals, dead_letters=totals.dead_letters + len(letters))
        return replace(marker, totals=totals, refused=self._refused(marker, letters)), letters

    def _check(self, last: CommitMarker, batch: Executed) -> None:
        """Compare what was inspected with what the query counted, and with promises."""
        facts, rejected = batch.facts, batch.rejected
        if not facts.bad and not facts.late:
            return
        check_decided_alike(facts.failed, rejected, self.functions)
        check_late(rejected, self.place, dropped=facts.late > 0)
        derived = self.fragment.derived
        sources = [one for one in last.sources if one.name in derived]
        check_in_time(rejected, sources, batch.promised.get)

    def _ordered(self, results: Results) -> Results:
        """Results of windows by event time; a stateless query keeps its input's order.

        Its rows without a result are left out.
        """
        if not self.traits.stateful:
            return results.computed()
        return results.by_time() if self.traits.keeps is Keeps.GROUPS else results

    def _promised_above(self, last: CommitMarker, results: Results) -> Millis | None:
        """The lane's promise, if results at or below it may be published; else None.

        A stateless lane has no state that they could corrupt. In an as-of join they are of rows
        redriven with their version. They are marked as late, and their readers decide.
        """
        promised, earliest_ms = last.boundary_ms, None
        if promised is not None and (not self.traits.stateful or results.answered):
            earliest_ms = results.earliest_ms
        late = promised is not None and earliest_ms is not None and earliest_ms <= promised
        return promised if late else None

    def _of_records(
        self, last: CommitMarker, rejected: Sequence[Rejected]
    ) -> tuple[DeadLetter, ...]:
        names = self.fragment.names
        return tuple(one.letter(names, self.version, last.sources) for one in rejected)

    def _of_results(self, last: CommitMarker, results: Results) -> tuple[DeadLetter, ...]:
        failed = tuple(results.failed())
        decided = answered_by(self.fragment, last.sources) if failed else ""
        return tuple(
            one.letter(self.fragment, self.version, last.sources, decided) for one in failed
        )

    def _refused(self, last: CommitMarker, letters: Sequence[DeadLetter]) -> Mapping[str, Refused]:
        """Count dead letters with a limit, on top of a marker's counts."""
        if not self.fragment.limits:
            return {}
        contexts = [letter.context for letter in letters]
        return count(self.fragment.limits, last.refused, contexts, self.place)
