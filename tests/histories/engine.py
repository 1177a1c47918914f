"""In-memory engine that replaces Spark for a lane, record by record.

It replaces `emit`, `QueryRunner`, `Steering` and their use of Spark; all of Medusa's decisions are
the real code: the lane's start, the plans of its batches, the sink, the agent. As Spark does, it
first runs the batch that is planned in the folder, and then asks its steering for each next one. It
stores the ends and the watermark of a batch before it runs it, repeats a planned batch after a
crash, drops rows by the watermark of the previous batch and closes windows by its own.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any, cast
from zlib import crc32

import pyarrow as pa

from pipeline.errors import RetryError
from pipeline.ids import BatchId, Millis, TopicName
from pipeline.lanes import rebuild_pieces
from pipeline.lanes.batch import BatchFacts
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.join import Join
from pipeline.planner.plan import Fragment
from pipeline.spark.batch.facts import positions
from pipeline.spark.query.lowered import Lowered, TopicRole
from pipeline.spark.run.outside import UnreadableError
from pipeline.spark.run.query_runner import Driver, Query, StoppingError
from pipeline.spark.run.spark_errors import DamagedCheckpointError, LostDataError
from pipeline.spark.run.steered_query import Answer, Plan
from schemas import wire
from tests.histories.folders import Folder, Planned, leaves_of
from tests.histories.kafka import log, topic_of
from tests.histories.looking import Frame, Look, Ranges
from tests.histories.rows import (
    EMPTY,
    Row,
    State,
    aggregated,
    downstream,
    joined,
)
from tests.histories.turns import Event, Turn, pause


def plan_first_batch(
    _spark: object,
    folder: Folder,
    lowered: Lowered,
    end: Positions,
    watermark_ms: Millis | None,
    _now_ms: Millis,
) -> None:
    """Replaces the function of `pipeline/spark/run/planned_batch.py`."""
    assert not folder.offsets
    folder.offsets[0] = _planned(lowered, end, watermark_ms)


def plan_next_batch(
    folder: Folder,
    batch: BatchId,
    lowered: Lowered,
    end: Positions,
    watermark_ms: Millis | None,
    _now_ms: Millis,
) -> None:
    """Replaces the function of `pipeline/spark/run/planned_batch.py`."""
    assert batch not in folder.offsets
    assert batch - 1 in folder.offsets
    folder.offsets[int(batch)] = _planned(lowered, end, watermark_ms)


def withdraw_batch(folder: Folder, batch: BatchId) -> bool:
    """Replaces the function of `pipeline/spark/run/planned_batch.py`."""
    if batch not in folder.offsets or batch in folder.commits:
        return False
    del folder.offsets[int(batch)]
    return True


def _planned(lowered: Lowered, end: Positions, watermark_ms: Millis | None) -> Planned:
    ends: dict[str, dict[str, dict[int, int]]] = {s.input: {} for s in lowered.sources}
    for at, offset in end.items():
        if at.input in ends:
            ends[at.input].setdefault(at.topic, {})[at.partition] = int(offset)
    return Planned(leaves_of(ends, lowered), int(watermark_ms or 0))


@dataclass(frozen=True, slots=True)
class Executed:
    """One executed batch, for the checks: its offset ranges and watermarks."""

    batch: int
    fragment: Fragment
    reads: Mapping[tuple[str, str], tuple[str, Mapping[int, tuple[int, int]]]]
    """Per source and data topic: the topic's id, and the range of each partition."""
    late_ms: int
    eviction_ms: int
    rebuild: bool


@dataclass
class Batch:
    """A running batch; replaces Spark's rows and metrics."""

    frame: Frame
    number: int
    ranges: Ranges
    late_ms: int
    eviction_ms: int
    state: State
    ends: Positions
    rebuild: bool = False
    look: Look | None = None
    after: State = EMPTY
    results: list[Row] = field(default_factory=list)

    # The calls of a rebuild: `rows.write.format("noop").mode("overwrite").save()`.
    @property
    def write(self) -> "Batch":
        """As of a frame."""
        return self

    def format(self, _: str) -> "Batch":
        """As of a writer."""
        return self

    def mode(self, _: str) -> "Batch":
        """As of a writer."""
        return self

    def save(self) -> None:
        """Execute it."""
        self.execute()

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        """Execute it; returns the results."""
        self.execute()
        partitions = self.frame.lowered.encoding.partitions
        written = [_written(row, self.frame, partitions) for row in self.results]
        return _table(written)

    def execute(self) -> None:
        """Read, validate, compute."""
        fragment, box = self.frame.reader.fragment, self.frame.reader.fragment.stateful_box
        late_ms = self.late_ms if box is not None else 0
        self.look = look = Look(self.frame, self.ranges, late_ms).take()
        match box:
            case None:
                self.results = [row for rows in look.rows.values() for row in rows]
            case Aggregate():
                rows = look.rows.get("only", [])
                self.after, found = aggregated(box, self.state, rows, self.eviction_ms)
                self.results = list(downstream(fragment, found))
            case Join():
                self.after, found = joined(box, self.state, look.rows, self.eviction_ms)
                self.results = list(downstream(fragment, found))
            case _:
                raise AssertionError(f"the toy engine has no box of kind {box.kind}")
        if Turn.current is not None:
            known = Turn.current.facts.setdefault("executed", {})
            known[self.number] = self._executed()

    def batch_facts(self, batch: int, rows: pa.Table | None = None) -> BatchFacts:
        """As of `Engine`."""
        del rows
        assert batch == self.number
        assert self.look is not None
        stateful = self.frame.reader.fragment.stateful_box is not None
        return BatchFacts(
            batch=BatchId(batch),
            end=self.ends,
            late_ms=Millis(self.late_ms) if stateful and self.late_ms else None,
            eviction_ms=Millis(self.eviction_ms) if stateful and self.eviction_ms else None,
            records=self.look.records,
            bad=len(self.look.bad),
            unknown=tuple(sorted(set(self.look.unknown))),  # type: ignore[arg-type]
            late=len(self.look.late),
            largest=self.look.largest,
            skipped=self.look.skipped,
        )

    @property
    def lowered(self) -> Lowered:
        """As of `Engine`."""
        return self.frame.lowered

    def records_read(self) -> int:
        """As of `Engine`."""
        return 0

    def _executed(self) -> Executed:
        kafka = self.frame.reader.kafka
        reads: dict[tuple[str, str], tuple[str, Mapping[int, tuple[int, int]]]] = {
            (source.input, t.topic): (
                topic_of(kafka, t.topic).topic_id,
                self.ranges[source.input][t.topic],
            )
            for source in self.frame.lowered.sources
            for t in source.topics
            if t.role is TopicRole.DATA
        }
        fragment = self.frame.reader.fragment
        return Executed(self.number, fragment, reads, self.late_ms, self.eviction_ms, self.rebuild)


@dataclass(frozen=True, slots=True)
class Steering:
    """Replaces the class of `pipeline/spark/run/steered_query.py`."""

    spark: object
    plan: Callable[[], Answer | None]


REBUILD = ".rebuild"


class Runner:
    """Replaces `QueryRunner`: runs a batch, then yields to other threads."""

    def __init__(self, stop: Any) -> None:
        self._stop = stop

    def run(self, query: Query) -> None:
        """Run a query until it is stopped, or only the planned batch of its folder."""
        frame, folder = cast("Frame", query.rows), cast("Folder", query.folder)
        rebuild = query.name.endswith(REBUILD)
        while True:
            if not rebuild:
                pause()
            batch = planned(frame, folder)
            if batch is None:
                if not self._ask(query, folder):
                    return
                continue
            if self._stop.is_set():
                raise StoppingError
            batch.rebuild = rebuild
            if rebuild and frame.reader.rng().random() < 0.05:
                raise UnreadableError("the records cannot be read now")
            query.write(batch, batch.number, batch)  # type: ignore[arg-type]
            if frame.reader.rng().random() < 0.4:
                pause()
            folder.states[batch.number] = batch.after
            folder.commits.add(batch.number)
            query.watch(batch)  # type: ignore[arg-type]

    def _ask(self, query: Query, folder: Folder) -> bool:
        """Ask the steering for the next batch, and store it; meanwhile the query is watched.

        False: there is none, and the query ends.
        """
        steering = cast("Steering | None", query.steering)
        assert steering is not None, "the one batch of the query is not planned"
        turn, done = Turn.current, max(folder.commits)
        assert turn is not None
        turn.meanwhile = partial(query.watch, cast("Any", None))
        try:
            answer = steering.plan()
        finally:
            turn.meanwhile = lambda: None
        if answer is None:
            return False
        if self._stop.is_set():
            raise StoppingError
        last, lowered = folder.offsets[done], query.lowered
        before = Millis(last.watermark)
        watermark_ms = before if answer.watermark_ms is None else answer.watermark_ms
        new = answer.end != positions(last.leaves, lowered)
        assert new or watermark_ms > before, "no batch follows the answer of the steering"
        number = BatchId(done + 1)
        plan_next_batch(folder, number, lowered, answer.end, watermark_ms, Millis(0))
        return True


class RunningQuery:
    """One query, as the class of `pipeline/spark/run/query_runner.py` that it replaces.

    Another turn may take it over while it waits for a plan, which then has to return.
    """

    def __init__(self, query: Query, stop: Any) -> None:
        self._query, self._stop = query, stop
        self._ends = False
        self.taken_over = Event()

    def run(self) -> None:
        """Run it until it is stopped, its plan ends, or it is taken over."""
        try:
            Runner(self._stop).run(self._query)
        finally:
            self._ends = True

    def take_over(self, driver: Driver, plan: Plan) -> None:
        """Run it on in the turn that calls."""
        if self._ends:
            raise RetryError("the query has ended before it was taken over")
        self.taken_over.set()
        steering = cast("Any", Steering(None, plan))
        mine = replace(self._query, write=driver.write, watch=driver.watch, steering=steering)
        Runner(driver.stop).run(mine)

    def refuse_takeover(self) -> None:
        """Refuse a later takeover."""
        self._ends = True


class LastingQuery:
    """The query of a rebuild that a lane takes over. Replaces the one that has a thread."""

    def __init__(self, plan: Plan, _: Any, stop: Any) -> None:
        self.answer, self._stop = plan, stop
        self.query = cast("RunningQuery", None)
        self.has_waited = False

    def run(self, query: Query) -> None:
        """Run it up to its last planned batch."""
        Runner(self._stop).run(query)
        self.query = RunningQuery(replace(query, name=query.name.removesuffix(REBUILD)), self._stop)

    def release(self) -> None:
        """It does not wait."""

    def end(self) -> bool:
        """Whether it has ended; it does not run by itself."""
        return True


def planned(frame: Frame, folder: Folder) -> Batch | None:
    """The planned and uncommitted batch of a folder, if there is one."""
    done = max(folder.commits, default=-1)
    number = done + 1
    if number not in folder.offsets:
        return None
    if done >= 0 and done not in folder.states:
        raise DamagedCheckpointError(f"the state of batch {done} is gone")
    ends = _by_source(folder.offsets[number].leaves, frame)
    ranges = _between(_starts(frame, folder, done), ends)
    _check_held(ranges, frame)
    return Batch(
        frame,
        number,
        ranges,
        late_ms=folder.offsets[done].watermark if done >= 0 else 0,
        eviction_ms=folder.offsets[number].watermark,
        state=folder.states[done] if done >= 0 else EMPTY,
        ends=positions(folder.offsets[number].leaves, frame.lowered),
    )


def _starts(frame: Frame, folder: Folder, done: int) -> dict[str, dict[str, dict[int, int]]]:
    """Start positions of the next batch; new partitions start at their first record."""
    known = _by_source(folder.offsets[done].leaves, frame) if done >= 0 else {}
    kafka = frame.reader.kafka
    found: dict[str, dict[str, dict[int, int]]] = {}
    for source in frame.lowered.sources:
        for t in source.topics:
            there = topic_of(kafka, t.topic)
            for partition in range(t.partitions):
                at = InputPartition(source.input, t.topic, partition)
                start = known.get(source.input, {}).get(t.topic, {}).get(partition)
                if start is None:
                    begin = frame.reader.begin.get(at) if done < 0 else None
                    start = int(log(there, partition).start if begin is None else begin)
                found.setdefault(source.input, {}).setdefault(t.topic, {})[partition] = start
    return found


def _by_source(leaves: Any, frame: Frame) -> dict[str, dict[str, dict[int, int]]]:
    """The lines of the leaves, by index: Spark stores no names."""
    return {
        source: {
            topic: {int(partition): end for partition, end in offsets.items()}
            for topic, offsets in line.items()
        }
        for source, line in zip(frame.lowered.leaves, leaves, strict=True)
    }


def _between(starts: Any, ends: Any) -> Ranges:
    return {
        source: {
            topic: {
                partition: (begin, ends[source].get(topic, {}).get(partition, begin))
                for partition, begin in offsets.items()
            }
            for topic, offsets in topics.items()
        }
        for source, topics in starts.items()
    }


def _check_held(ranges: Ranges, frame: Frame) -> None:
    for topics in ranges.values():
        for topic, offsets in topics.items():
            there = topic_of(frame.reader.kafka, TopicName(topic))
            for partition, (start, end) in offsets.items():
                held = log(there, partition)
                if start < end and (start < held.start or end > held.end()):
                    raise LostDataError("offsets are gone", place=f"topic {topic}")


def _written(row: Row, frame: Frame, partitions: int) -> tuple[Any, ...]:
    encoding = frame.lowered.encoding
    body = {name: row.values[name] for name in encoding.value_columns}
    value = wire.join(encoding.value_id, json.dumps(body).encode())
    if encoding.key_columns:
        key: bytes | None = json.dumps([row.values[n] for n in encoding.key_columns]).encode()
        return key, value, row.at, crc32(key or b"") % partitions
    return row.record.key, value, row.at, max(row.record.partition, 0) % partitions


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([row[0] for row in rows], pa.binary()),
            "value": pa.array([row[1] for row in rows], pa.binary()),
            "timestamp_ms": pa.array([row[2] for row in rows], pa.int64()),
            "partition": pa.array([row[3] for row in rows], pa.int32()),
            "reason": pa.array([None for _ in rows], pa.string()),
        }
    )


class NoLimit:
    """Replaces `BatchLimit`: what is known when a lane starts limits nothing."""

    def __init__(self, *_: object) -> None:
        pass

    def at(self, _start: Positions) -> int:
        """A number above the records of any history."""
        return 1_000_000

    sample = at

    def limits(self, start: Positions, pace_ms: int) -> "Limits":
        """Those of a lane, of which some batches are small."""
        return Limits(self.at(start), pace_ms)


class Pieces:
    """Replaces decisions of a rebuild: its batches are small, and some drop state meanwhile."""

    def __init__(self, rng: Callable[[], Random]) -> None:
        self._rng = rng

    def divided(self, begin: Positions, end: Positions, most: int) -> rebuild_pieces.Pieces:
        """The pieces, of a few offsets."""
        rng = self._rng()
        most = rng.randint(1, 6) if rng.random() < 0.7 else most
        return rebuild_pieces.divided(begin, end, most)

    def drops_meanwhile(self, *_: object, chosen: bool) -> bool:
        """A chosen rebuild always does."""
        return chosen or self._rng().random() < 0.5


class Limits:
    """Replaces the class of `pipeline/boundaries/next_batch.py`: some batches are small."""

    rng: Callable[[], Random] = staticmethod(lambda: Random(0))
    state_is_full = False

    def __init__(self, offsets: int, pace_ms: int = 0) -> None:
        self._most, self.pace_ms = offsets, pace_ms

    def after(self, _: int) -> "Limits":
        """Nothing is remembered of a batch."""
        return self

    def wants_sample(self, _read: int, _partitions: int) -> bool:
        """Every size is trusted."""
        return False

    @property
    def offsets(self) -> int:
        """The maximum number of offsets in the batch that is planned now."""
        rng = self.rng()
        return rng.randint(1, 6) if rng.random() < 0.3 else self._most
