"""How a steered query ends while it waits for its next batch."""

import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from brokers.embedded.stack import EmbeddedStack
from pipeline.errors import BrokenInvariantError, MedusaError, RetryError
from pipeline.ids import Offset
from pipeline.spark.batch.facts import Engine
from pipeline.spark.query.emit import emit
from pipeline.spark.query.readers import STREAM_OPTIONS, KafkaReader, read_options, starting_at
from pipeline.spark.run.planned_batch import plan_first_batch
from pipeline.spark.run.query_runner import Query, QueryRunner, StoppingError
from pipeline.spark.run.steered_query import Answer, Steering
from tests.conftest import WaitFor
from tests.system.steered.runs import NOW, filled

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
WITHIN_S = 30.0


class Waiting:
    """A query of one batch, which then waits for a plan."""

    def __init__(
        self,
        spark: SparkSession,
        bootstrap: str,
        name: str,
        folder: Path,
        *,
        is_batch: bool = False,
        is_done: bool = False,
    ) -> None:
        self.stop, self.released = threading.Event(), threading.Event()
        self.asked = threading.Event()
        self.error: Exception | None = None
        self._is_batch, self._is_done = is_batch, is_done
        self._case = filled("tumbling", 1, name, Random(1), bootstrap)
        begin = dict.fromkeys(self._case.times, Offset(0))
        self._end = {at: Offset(len(times)) for at, times in self._case.times.items()}
        folder.mkdir()
        plan_first_batch(spark, folder, self._case.lowered, self._end, None, NOW)
        reader = KafkaReader(
            spark, {**read_options(bootstrap), **STREAM_OPTIONS}, starting_at(begin)
        )
        self._query = Query(
            name=name,
            rows=emit(self._case.lowered, reader),
            lowered=self._case.lowered,
            folder=folder,
            write=_written,
            steering=Steering(spark, self._plan),
            end=self.released.set,
        )
        self.plan: Callable[[], None] = lambda: None
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _plan(self) -> Answer | None:
        self.asked.set()
        self.plan()
        if self._is_done:
            return None
        assert self.released.wait(WITHIN_S)
        return Answer(self._end, None, self._is_batch)

    def _run(self) -> None:
        try:
            QueryRunner(self.stop).run(self._query)
        except (MedusaError, StoppingError) as error:
            self.error = error


def _written(rows: DataFrame, _: int, __: Engine) -> None:
    rows.toArrow()


def test_queries_that_wait_are_stopped(
    node_session: SparkSession, embedded_stack: EmbeddedStack, tmp_path: Path, wait_for: WaitFor
) -> None:
    """Several at once: each question is answered before Spark waits for the query's thread."""
    bootstrap = embedded_stack.settings.kafka_bootstrap_servers
    queries = [
        Waiting(node_session, bootstrap, f"steered_stop_{n}", tmp_path / str(n)) for n in range(4)
    ]
    for one in queries:
        one.thread.start()
    for one in queries:
        wait_for(one.asked.is_set, "a query that waits", within_s=120.0)
    for one in queries:
        one.stop.set()
    for one in queries:
        one.thread.join(WITHIN_S)
        assert isinstance(one.error, StoppingError)


def test_an_error_of_the_plan_is_the_error_of_the_query(
    node_session: SparkSession, embedded_stack: EmbeddedStack, tmp_path: Path
) -> None:
    """Not one of Java's, which would contain it as text."""
    bootstrap = embedded_stack.settings.kafka_bootstrap_servers
    one = Waiting(node_session, bootstrap, "steered_error", tmp_path / "one")
    raised = RetryError("the plan failed")

    def fail() -> None:
        raise raised

    one.plan = fail
    one.thread.start()
    one.thread.join(120.0)
    assert one.error is raised


def test_a_query_ends_after_the_last_batch_of_its_plan(
    node_session: SparkSession, embedded_stack: EmbeddedStack, tmp_path: Path
) -> None:
    """Without an error; the batch is committed."""
    bootstrap = embedded_stack.settings.kafka_bootstrap_servers
    one = Waiting(node_session, bootstrap, "steered_done", tmp_path / "one", is_done=True)
    one.thread.start()
    one.thread.join(120.0)
    assert not one.thread.is_alive()
    assert (one.error, one.asked.is_set()) == (None, True)
    assert (tmp_path / "one" / "commits" / "0").exists()
    assert not (tmp_path / "one" / "offsets" / "1").exists()


def test_a_planned_batch_that_spark_does_not_execute_is_noticed(
    node_session: SparkSession, embedded_stack: EmbeddedStack, tmp_path: Path
) -> None:
    """An answer without records or a new watermark: Spark asks again, instead of executing it."""
    bootstrap = embedded_stack.settings.kafka_bootstrap_servers
    one = Waiting(node_session, bootstrap, "steered_nothing", tmp_path / "one", is_batch=True)
    one.released.set()
    one.thread.start()
    one.thread.join(120.0)
    assert isinstance(one.error, BrokenInvariantError)
    assert "has not executed" in one.error.message
