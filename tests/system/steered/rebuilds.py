"""A lane with late records, whose state is rebuilt in between, on Spark and Kafka."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final, cast

from pyspark.sql import DataFrame, SparkSession

from brokers.kafka.servers import Brokers
from pipeline.boundaries.next_batch import Batch
from pipeline.boundaries.promise import watermark_for
from pipeline.boundaries.windows import last_end
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.events import LaneRebuilding
from pipeline.lanes.left_out import LeftOut, within
from pipeline.lanes.needed import BatchRead, NeededLog, after_batch
from pipeline.lanes.start.decision import Rebuild
from pipeline.lanes.start.facts import CommittedState, StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.shape import Shape, Windowed
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.batch.results import Results
from pipeline.spark.query.emit import emit
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.query.readers import (
    STREAM_OPTIONS,
    KafkaReader,
    RangeReader,
    Ranges,
    Reader,
    read_options,
    starting_at,
)
from pipeline.spark.run.lane_meters import LaneMeters
from pipeline.spark.run.planned_batch import plan_first_batch, plan_next_batch
from pipeline.spark.run.query_runner import Driver, Query, QueryRunner
from pipeline.spark.run.rebuild import Rebuilding
from pipeline.spark.run.rebuild_query import RebuildQuery, Rebuilt
from pipeline.spark.run.steered_query import Answer, Steering
from tests.system.steered.plans import FAR_MS
from tests.system.steered.runs import NOW, Case, Result, results_of

NO_EVENT_TIME, TOO_FAR = 0.2, 0.6
"""Probabilities of a batch in which event time does not move, and of one in which it moves beyond
records that are still to be read: these will be late."""
_REQUEST: Final = StartRequest(Epoch(1), "digest", stateful=True, on_change=None, place="here")


def batches_with_late(
    rng: Random, times: Mapping[InputPartition, Sequence[int]], number: int
) -> Iterator[Batch]:
    """Batches that read everything, some records late, and release everything at the end."""
    at, in_force = dict.fromkeys(times, Offset(0)), 1
    for done in range(number):
        ahead = {p: len(times[p]) * (done + 2) // number + 1 for p in times}
        end = {p: Offset(min(len(times[p]), rng.randint(at[p], max(at[p], ahead[p])))) for p in at}
        read = max((t for p, of in times.items() for t in of[: end[p]]), default=0)
        unread = min((t for p, of in times.items() for t in of[end[p] :]), default=read)
        most = read if rng.random() < TOO_FAR else unread - 1
        event_ms = None
        if most > in_force and rng.random() >= NO_EVENT_TIME:
            event_ms = Millis(rng.randint(in_force + 1, most))
        if end == at and event_ms is None:
            continue
        yield Batch(end, event_ms)
        at, in_force = end, event_ms or in_force
    whole = {p: Offset(len(of)) for p, of in times.items()}
    last = max((t for of in times.values() for t in of), default=0) + FAR_MS
    yield Batch(whole, Millis(last))
    yield Batch(whole, Millis(last + FAR_MS))


@dataclass(frozen=True, slots=True)
class At:
    """A lane after a batch.

    Args:
        batch: its number.
        end: where it ended.
        watermark_ms: in force in it.
        late: records that were late in it or before, in no window that was open.
        needed: the oldest positions that the state needs.
    """

    batch: int
    end: Positions
    watermark_ms: Millis | None
    late: frozenset[tuple[InputPartition, int]]
    needed: Positions


def course(case: Case, batches: Sequence[Batch]) -> list[At]:
    """The lane after each of its batches."""
    shape, log = case.fragment.shape, NeededLog({})
    start: Positions = dict.fromkeys(case.times, Offset(0))
    watermark_ms, late, found = None, set[tuple[InputPartition, int]](), list[At]()
    for number, batch in enumerate(batches):
        newest = dict[InputPartition, Millis]()
        for at, end in batch.end.items():
            for offset in range(start[at], end):
                at_ms = case.times[at][offset]
                newest[at] = Millis(max(at_ms, newest.get(at, 0)))
                if watermark_ms is not None and _is_late(shape, at_ms, watermark_ms):
                    late.add((at, offset))
        if batch.event_ms is not None:
            watermark_ms = watermark_for(shape, batch.event_ms)
        log, needed = after_batch(shape, log, BatchRead(start, batch.end, newest, watermark_ms))
        found.append(At(number, batch.end, watermark_ms, frozenset(late), needed))
        start = batch.end
    return found


def _is_late(shape: Shape, at_ms: int, late_ms: Millis) -> bool:
    if isinstance(shape, Windowed):
        return last_end(shape.window, Millis(at_ms + shape.window.size_ms)) <= late_ms
    return at_ms <= late_ms


Note = Callable[[BatchFacts, Results], None]
"""Notes a batch, and its rows."""


def _nothing_noted(facts: BatchFacts, results: Results) -> None:
    """Of a batch that is judged by its results alone."""


@dataclass(frozen=True, slots=True)
class _Course:
    """Plans and executes batches in one query, and has their results.

    Args:
        first: number of the first one.
        answers: all of them.
        note: called inside each batch.
        found: the results of those that were executed.
    """

    first: int
    answers: Sequence[Answer]
    note: Note
    found: list[Counter[Result]] = field(default_factory=list)

    def write(self, rows: DataFrame, number: int, engine: Engine) -> None:
        """Check a batch, and keep its results."""
        table = rows.toArrow()
        answer, facts = self.answers[number - self.first], engine.batch_facts(number, table)
        assert (facts.end, facts.eviction_ms) == (answer.end, answer.watermark_ms)
        self.note(facts, Results(table))
        self.found.append(results_of(table))

    def plan(self) -> Answer | None:
        """The next batch; None: there is none."""
        return self.answers[len(self.found)] if len(self.found) < len(self.answers) else None


@dataclass(frozen=True, slots=True)
class Spark:
    """Executes batches and rebuilds of one case."""

    case: Case
    spark: SparkSession
    brokers: Brokers

    def batches(
        self, folder: Path, first: int, batches: Sequence[Batch], watermark_ms: Millis | None
    ) -> list[Counter[Result]]:
        """Execute batches in one query; returns the results of each.

        Args:
            folder: with the batch before the first one, or new.
            first: number of the first one.
            batches: all of them.
            watermark_ms: in force before.
        """
        return self.execute(folder, first, self.answers(batches, watermark_ms))

    def answers(self, batches: Sequence[Batch], watermark_ms: Millis | None) -> list[Answer]:
        """The batches as a query is asked for them; `watermark_ms`: in force before."""
        answers = list[Answer]()
        for batch in batches:
            if batch.event_ms is not None:
                watermark_ms = watermark_for(self.case.fragment.shape, batch.event_ms)
            answers.append(Answer(batch.end, watermark_ms))
        return answers

    def execute(
        self, folder: Path, first: int, answers: Sequence[Answer], note: Note = _nothing_noted
    ) -> list[Counter[Result]]:
        """Execute planned batches in one query; returns the results of each.

        Args:
            folder: with the batch before the first one, or new.
            first: number of the first one.
            answers: all of them.
            note: called inside each batch.
        """
        course = _Course(first, answers, note)
        end, lowered = answers[0].end, self.case.lowered
        if first == 0:
            folder.mkdir(parents=True)
            plan_first_batch(self.spark, folder, lowered, end, answers[0].watermark_ms, NOW)
        else:
            planned = answers[0].watermark_ms
            plan_next_batch(folder, BatchId(first), lowered, end, planned, NOW)

        QueryRunner(threading.Event()).run(
            Query(
                name=self.case.fragment.name,
                rows=emit(lowered, self._reader(dict.fromkeys(self.case.times, Offset(0)))),
                lowered=lowered,
                folder=folder,
                write=course.write,
                steering=Steering(self.spark, course.plan),
            )
        )
        return course.found

    def go_on(
        self, rebuilt: Rebuilt, batches: Sequence[Batch], watermark_ms: Millis | None
    ) -> list[Counter[Result]]:
        """Execute batches in the query of a rebuild; returns the results of each."""
        assert rebuilt.lasting is not None, "its query has ended"
        answers = self.answers(batches, watermark_ms)
        course = _Course(rebuilt.last + 1, answers, _nothing_noted)
        stop = threading.Event()
        driver = Driver(course.write, lambda _: None, lambda: None, stop)
        rebuilt.lasting.query.take_over(driver, course.plan)
        assert rebuilt.lasting.end(), "its thread has not ended"
        return course.found

    def rebuild(
        self, folder: Path, until: At, since: At | None, begin: Positions, most: int
    ) -> BatchId:
        """As `rebuilt`; returns the number of the last batch."""
        return self.rebuilt(folder, until, since, begin, most).last

    def rebuilt(
        self,
        folder: Path,
        until: At,
        since: At | None,
        begin: Positions,
        most: int,
        *,
        lasts: bool = False,
    ) -> Rebuilt:
        """Rebuild the state as it was after a batch.

        Args:
            folder: a copy of the checkpoint `since`, or new.
            until: the lane after that batch.
            since: the lane at an older checkpoint; None: from the log.
            begin: of the log.
            most: maximum number of offsets in a piece.
            lasts: as of `RebuildQuery`.
        """
        paths, state = self.case.lowered.paths, None
        if since is not None:
            state = CommittedState(BatchId(since.batch), since.end, since.watermark_ms)
            begin = since.end
        else:
            folder.mkdir(parents=True)
        named = (
            LeftOut(at, Offset(offset), path.name)
            for at, offset in sorted(until.late)
            for path in paths
            if path.source == at.input
        )
        start = Rebuild(_marker(until), begin, until.watermark_ms, "a test", since=state)
        left_out = tuple(one for one in named if within(one, begin, until.end))
        first = BatchId(0 if since is None else since.batch + 1)
        reports = list[LaneRebuilding]()
        query = replace(self._query(most, reports), lasts=lasts)
        done = query.execute(Rebuilding(start, begin, left_out), first, folder, self.case.lowered)
        first_report = reports[0]
        assert (first_report.batches_done, first_report.read) == (0, 0)
        assert (done.last - first + 1) == first_report.batches
        whole = replace(first_report, batches_done=first_report.batches, read=first_report.offsets)
        assert whole in reports
        return done

    def _query(self, most: int, reports: list[LaneRebuilding]) -> RebuildQuery:
        lane = SimpleNamespace(fragment=self.case.fragment.name)
        settings = SimpleNamespace(
            lane=lane, run=1, epoch=1, fragment=self.case.fragment, place="here"
        )
        host = SimpleNamespace(
            spark=self.spark,
            clock=SimpleNamespace(now_ms=lambda: NOW, monotonic_s=time.monotonic),
            report=reports.append,
            resolver=None,
            meters=LaneMeters(),
        )
        stop = threading.Event()
        return RebuildQuery(
            settings=cast("Any", settings),
            host=cast("Any", host),
            runner=QueryRunner(stop),
            limit=cast("Any", SimpleNamespace(at=lambda _: most)),
            folders=cast("Any", None),
            reader=self._reader,
            again=self._again,
            with_schemas=_once,
            stop=stop,
        )

    @property
    def inspector(self) -> Inspector:
        """Inspects records of the case."""
        return Inspector(self.case.lowered, self._again())

    def _reader(self, begin: Positions) -> Reader:
        options = {**read_options(self.brokers), **STREAM_OPTIONS}
        return KafkaReader(self.spark, options, starting_at(begin))

    def _again(self) -> Callable[[Ranges], Reader]:
        return lambda ranges: RangeReader(self.spark, read_options(self.brokers), ranges)


def _once(lowered: Lowered, read: Positions, run: Callable[[Lowered], None]) -> Lowered:
    del read
    run(lowered)
    return lowered


def _marker(at: At) -> CommitMarker:
    return first_marker(_REQUEST, Incarnation("one"), at.end, NOW)
