"""Batch attempts that wrote state files but were not committed, on real Spark.

Each batch is attempted first, and the attempt fails when its state is in files, with a snapshot of
it. The query then goes on in a copy of the checkpoint, as after a crash of the node: by turns it
executes the batch that is planned there, or the plan is withdrawn and the batch reads more records.
So each version of the state is in files twice, and the right one has to be loaded for the next
batch, which goes on in a further copy.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from brokers.records import KafkaRecord
from pipeline.errors import RetryError
from pipeline.ids import Millis, Offset
from pipeline.markers.positions import Positions
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.from_memory import FAST, MemoryQueries, MemoryQuery, Write
from pipeline.spark.run.linking import LocalDisk, link_checkpoint
from pipeline.spark.session.session import STATE_SETTINGS
from tests.faults.case import Case
from tests.faults.cases import CASES
from tests.faults.cases.behind_unions import behind_unions
from tests.faults.memory import run

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

SNAPSHOTS = {
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "1",
    "spark.sql.streaming.stateStore.maintenanceInterval": "50ms",
    "spark.sql.streaming.stateStore.maintenanceShutdownTimeout": "1s",
}
"""Snapshots each state version immediately.

Stopping the state stores takes a lock that the snapshot thread may need to end, so the stop must
not wait long for that thread.
"""
WRITTEN_WITHIN_S = 60.0
ALONE = (
    "window",
    "sliding",
    "sessions",
    "top",
    "join",
    "outer_join",
    "left_join",
    "as_of",
    "deduplicate",
)
BEHIND_UNIONS = ("sessions", "outer_join", "as_of", "deduplicate")
BEHIND_A_UNION = pytest.mark.second_tier("the same behind a union, of which more is written down")
OUTER = pytest.mark.second_tier("an outer join keeps the same rows, and those without a partner")
SECOND_TIER = {**dict.fromkeys(BEHIND_UNIONS, BEHIND_A_UNION), "join": OUTER, "left_join": OUTER}


class Abandoning:
    """Starts queries in which each batch is attempted twice."""

    def __init__(self, queries: MemoryQueries, folder: Path) -> None:
        self._queries = queries
        self._folder = folder
        self.attempts: list[Attempts] = []

    def __call__(self, lowered: Lowered, write: Write) -> "Attempts":
        """Start the query of a fragment."""
        folder = self._folder / f"query-{len(self.attempts)}"
        attempts = Attempts(self._queries, lowered, write, folder)
        self.attempts.append(attempts)
        return attempts


class Attempts:
    """One query, which continues in a copy of its checkpoint after each abandoned attempt."""

    def __init__(
        self,
        queries: MemoryQueries,
        lowered: Lowered,
        write: Write,
        folder: Path,
    ) -> None:
        self._lowered = lowered
        self._source = queries._source(lowered)
        self._spark = queries._spark
        self._write = write
        self._root = folder
        self._pending: list[tuple[Sequence[KafkaRecord], Positions]] = []
        self._moves_to: Millis | None = None
        self._abandons = False
        self._ready = threading.Event()
        self.abandoned = 0
        self._query = self._started([], [])

    @property
    def _folder(self) -> Path:
        return self._root / f"epoch-{self.abandoned}"

    def add(self, records: Sequence[KafkaRecord], ends: Positions) -> None:
        """Add records to the next batch."""
        self._pending.append((records, ends))

    def move(self, watermark_ms: Millis, ends: Positions) -> None:
        """Move the watermark after the next batch, which reads no records."""
        self._pending.append(((), ends))
        self._moves_to = watermark_ms

    def drain(self) -> None:
        """Attempt a batch with half of the records; then execute it with the same or with all."""
        if not self._pending:
            self._query.drain()
            return
        records = [record for some, _ in self._pending for record in some]
        ends = self._pending[-1][1]
        self._pending.clear()
        some, more = records[: len(records) // 2], records[len(records) // 2 :]
        self._query.add(some, _ends_before(more, ends))
        self._attempt()
        if self.abandoned % 2:
            self._query.add(more, ends)
            self._go_on_in_a_copy(withdrawn=True)
        else:  # the first batch, too: Spark starts no query where state exists already
            self._go_on_in_a_copy(withdrawn=False)
            self._query.drain()
            self._query.add(more, ends)
        self._query.drain()
        if self._moves_to is not None:
            self._query.move(self._moves_to, ends)
            self._moves_to = None
            self._query.drain()

    def close(self) -> None:
        """Stop the query."""
        self._query.close()

    def _started(self, records: list[KafkaRecord], ends: list[Positions]) -> MemoryQuery:
        self._ready.clear()
        query = MemoryQuery(self._spark, self._source, self._folder, self._batch, lambda _: None)
        query._records.extend(records)
        query._ends.extend(ends)
        self._ready.set()
        return query

    def _attempt(self) -> None:
        self._abandons = True
        with pytest.raises(RetryError, match="abandoned"):
            self._query.drain()
        self._abandons = False
        self._query._query.stop()

    def _go_on_in_a_copy(self, *, withdrawn: bool) -> None:
        before = self._folder
        self.abandoned += 1
        assert link_checkpoint(before, self._folder, frozenset(), LocalDisk())
        planned = max((self._folder / "offsets").iterdir(), key=lambda path: int(path.name))
        assert len(planned.read_text().splitlines()) == 2 + len(self._lowered.leaves)
        assert not (self._folder / "commits" / planned.name).exists()
        if withdrawn:
            planned.unlink()
        self._query = self._started(self._query._records, self._query._ends)

    def _batch(self, rows: DataFrame, batch: int, engine: Engine, inspector: Inspector) -> None:
        assert self._ready.wait(WRITTEN_WITHIN_S)
        if not self._abandons:
            self._write(rows, batch, engine, inspector)
            return
        rows.toArrow()
        self._await(lambda: self._stores(batch, "zip") == self._stores(batch, "changelog"))
        raise RetryError("abandoned")

    def _stores(self, batch: int, kind: str) -> set[Path]:
        """The state stores that have a file of the state after a batch."""
        files = self._folder.glob(f"state/**/{batch + 1}[_.]*{kind}")
        return {path.parent for path in files if not path.name.startswith(".")}

    def _await(self, condition: Callable[[], bool]) -> None:
        ends_at = time.monotonic() + WRITTEN_WITHIN_S
        while not condition():
            assert time.monotonic() < ends_at, "the state was not written"
            time.sleep(0.02)


def _ends_before(records: Sequence[KafkaRecord], ends: Positions) -> Positions:
    """The positions before these records, the last of all added."""
    first: dict[tuple[str, int], Offset] = {}
    for record in records:
        first.setdefault((record.topic, record.partition), Offset(record.offset))
    return {at: first.get((at.topic, at.partition), end) for at, end in ends.items()}


@pytest.fixture(scope="module")
def as_a_node(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that keeps state as a node's does."""
    session = spark.newSession()
    for name, value in {**FAST, **STATE_SETTINGS, **SNAPSHOTS}.items():
        session.conf.set(name, value)
    _stop_state_stores(session)
    yield session
    _stop_state_stores(session)


def _stop_state_stores(spark: SparkSession) -> None:
    """The thread for snapshots keeps the interval of the first query that needed one."""
    streaming = spark._jvm.org.apache.spark.sql.execution.streaming  # type: ignore[union-attr]
    streaming.state.StateStore.stop()


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(CASES[name], id=name, marks=SECOND_TIER.get(name, ())) for name in ALONE),
        *(
            pytest.param(behind_unions(CASES[name]), id=f"{name} of union")
            for name in BEHIND_UNIONS
        ),
    ],
)
def test_the_state_of_an_abandoned_attempt_is_never_used(
    case: Case, as_a_node: SparkSession, tmp_path: Path
) -> None:
    """Results equal the reference, whatever records the abandoned attempts had read."""
    start = Abandoning(MemoryQueries(as_a_node, tmp_path / "unused"), tmp_path / "checkpoints")
    verdict = run(case, Random(1), tmp_path, start)
    assert verdict.findings == (), verdict.words()
    assert verdict.expected
    assert all(attempts.abandoned > 2 for attempts in start.attempts)
