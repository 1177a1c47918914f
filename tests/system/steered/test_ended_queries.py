"""A query that has ended leaves nothing in Java's memory, and no connection."""

import gc
import logging
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from brokers.embedded.stack import EmbeddedStack
from pipeline.boundaries.next_batch import Batch
from pipeline.clock import Deadline
from pipeline.errors import RetryError
from pipeline.lanes.batch import BatchFacts
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.results import Results
from pipeline.spark.run.steered_query import Answer
from pipeline.system_clock import SystemClock
from tests.system.steered.rebuilds import Spark, batches_with_late
from tests.system.steered.runs import filled

pytestmark = pytest.mark.system
QUERIES = 3


@pytest.mark.parametrize("fails", [False, True])
def test_ended_queries_leave_nothing(
    fails: bool,  # noqa: FBT001 - a parameter of the test
    node_session: SparkSession,
    embedded_stack: EmbeddedStack,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their plans would fill Java's memory, their connections need sockets and threads.

    Nor do those that an error of their batch has ended.
    """
    brokers, rng = embedded_stack.settings.kafka_bootstrap_servers, Random(1)
    case = filled("tumbling", 1, f"ended_{int(fails)}", rng, brokers, most=20)
    batches = tuple(batches_with_late(rng, case.times, 4))
    jvm: Any = node_session.sparkContext._jvm
    seen: list[Any] = []
    facts = Engine.batch_facts

    def noted(engine: Engine, batch: int, table: Any) -> Any:
        if batch == 0:
            seen.append(jvm.java.lang.ref.WeakReference(engine.stream))
        return facts(engine, batch, table)

    monkeypatch.setattr(Engine, "batch_facts", noted)
    # Pytest keeps what is logged, with the frames of its errors.
    monkeypatch.setattr(logging.getLogger("py4j.clientserver"), "disabled", True)
    spark = Spark(case, node_session, brokers)
    spark.batches(tmp_path / "first", 0, batches, None)
    threads = threading.active_count()
    for number in range(QUERIES):
        if fails:
            _failed(spark, tmp_path / f"{number}", batches[0])
        else:
            spark.batches(tmp_path / f"{number}", 0, batches, None)
    assert len(seen) == QUERIES + 1
    _await(lambda: threading.active_count() <= threads, "their threads have ended")
    gone = partial(_is_gone, jvm)
    _await(lambda: all(map(gone, seen)), "Java has forgotten them")


def _failed(spark: Spark, folder: Path, batch: Batch) -> None:
    """Execute a batch that fails."""

    def fail(facts: BatchFacts, _: Results) -> None:
        raise RetryError(f"batch {facts.batch} fails")

    with suppress(RetryError):
        spark.execute(folder, 0, [Answer(batch.end, None)], fail)
        pytest.fail("the batch has not failed")


def _is_gone(jvm: Any, reference: Any) -> bool:
    gc.collect()
    jvm.java.lang.System.gc()
    return reference.get() is None


def _await(holds: Any, what: str) -> None:
    clock = SystemClock()
    deadline = Deadline.after(clock, 60, what)
    while not holds():
        deadline.check(f"not yet: {what}")
        clock.sleep(0.2)
