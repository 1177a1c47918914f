"""Java's log of a query that is stopped during a batch, and of a failed query."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.errors import RefusedError, RetryError
from pipeline.spark.batch.facts import Engine
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.from_memory import MemoryQueries
from pipeline.spark.run.query_runner import Query, QueryRunner, StoppingError
from pipeline.spark.session.java_log import ENGINE, _set_level

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
_UNUSED = cast("Lowered", None)
_WITHIN_S = 60
_FAILED = "terminated with error"


@pytest.fixture
def logged(spark: SparkSession, queries: MemoryQueries) -> Iterator[Callable[[], str]]:
    """Java's log since the start, with errors: test sessions suppress those by default."""
    file = queries._folder / "java.log"
    before = file.stat().st_size
    _set_level(spark, ENGINE, "ERROR")

    def since() -> str:
        return file.read_bytes()[before:].decode()

    yield since
    _set_level(spark, ENGINE, "OFF")


def _until_begun(folder: Path, batch: int) -> None:
    """Wait until a batch is planned, plus one second."""
    waits = threading.Event()
    for _ in range(10 * _WITHIN_S):
        if (folder / "offsets" / str(batch)).exists():
            waits.wait(1)
            return
        waits.wait(0.1)


def _rows(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()


def test_an_interrupted_batch_is_not_logged_as_an_error(
    spark: SparkSession, logged: Callable[[], str], tmp_path: Path
) -> None:
    """The batch is planned, and not committed."""
    stop, written = threading.Event(), list[int]()

    def write(_rows: DataFrame, batch: int, _engine: Engine) -> None:
        written.append(batch)
        stop.set()

    def watch(_: Engine) -> None:
        """Delay a stop of the query until the second batch has begun."""
        _until_begun(tmp_path, 1)

    query = Query("n.f.1", _rows(spark), _UNUSED, tmp_path, write, watch=watch)
    with pytest.raises(StoppingError):
        QueryRunner(stop).run(query)
    assert written == [0]
    assert (tmp_path / "offsets" / "1").exists()
    assert not (tmp_path / "commits" / "1").exists()
    assert _FAILED not in logged()


def test_a_medusa_error_ends_a_query_without_a_stack_trace(
    spark: SparkSession, logged: Callable[[], str], tmp_path: Path
) -> None:
    """The lane logs its message."""

    def write(_rows: DataFrame, _batch: int, _engine: Engine) -> None:
        raise RefusedError("it does not fit")

    query = Query("n.g.1", _rows(spark), _UNUSED, tmp_path, write)
    with pytest.raises(RefusedError):
        QueryRunner(threading.Event()).run(query)
    assert _FAILED not in logged()


def test_another_error_ends_a_query_with_a_stack_trace(
    spark: SparkSession, logged: Callable[[], str], tmp_path: Path
) -> None:
    """Also after another query was stopped, and one ended with a Medusa error."""

    def write(rows: DataFrame, _batch: int, _engine: Engine) -> None:
        rows.selectExpr("raise_error('unforeseen')").collect()

    query = Query("n.h.1", _rows(spark), _UNUSED, tmp_path, write)
    with pytest.raises(RetryError):
        QueryRunner(threading.Event()).run(query)
    assert "Query n.h.1 [" in logged()
    assert _FAILED in logged()
