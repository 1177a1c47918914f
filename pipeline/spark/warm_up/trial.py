"""Trial: a query that runs a few batches and discards its results."""

import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from pipeline.clock import Clock
from pipeline.ids import Millis
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.results import Results
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.query_runner import Query, QueryRunner, StoppingError
from pipeline.spark.run.steered_query import set_watermark
from pipeline.spark.session.java_log import ENGINE, silenced


@dataclass(frozen=True, slots=True)
class Trial:
    """A query whose results are discarded.

    Args:
        name: in Spark's messages.
        rows: its results.
        lowered: the fragment that `rows` was emitted from.
        folder: for the checkpoint.
        batches: maximum number of batches.
        within_s: maximum time, also if its topics are quiet.
    """

    name: str
    rows: DataFrame
    lowered: Lowered
    folder: Path
    batches: int
    within_s: float


def run_trial(trial: Trial, clock: Clock, stop: threading.Event) -> list[int]:
    """Run it until it is done, or `stop` is set; returns the number of results of each batch.

    Raises:
        MedusaError: the query failed.
    """
    enough, counts, reached_ms = threading.Event(), list[int](), [Millis(0)]
    ends_s = clock.monotonic_s() + trial.within_s

    def write(rows: DataFrame, _: int, engine: Engine) -> None:
        table = rows.toArrow()
        counts.append(Results(table).computed().table.num_rows)
        largest = engine.metrics(table).largest
        at_ms = max(largest.values(), default=0)
        if at_ms > reached_ms[-1] and trial.lowered.traits.stateful:
            reached_ms.append(Millis(at_ms))
            set_watermark(engine, reached_ms[-1])  # so that the next batch closes something
        if len(counts) >= trial.batches or stop.is_set():
            enough.set()

    def watch(_: Engine) -> None:
        if stop.is_set() or clock.monotonic_s() > ends_s:
            enough.set()

    query = Query(trial.name, trial.rows, trial.lowered, trial.folder, write, watch=watch)
    # The caller reports a failure, without Java's stack.
    with silenced(trial.rows.sparkSession, ENGINE), suppress(StoppingError):
        QueryRunner(enough).run(query)
    return counts
