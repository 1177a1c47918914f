"""Log levels of a session's Java process: expected events are not logged."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

LEVEL: Final = "WARN"
ENGINE: Final = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"
"""The logger of all queries."""
_NOISY: Mapping[str, str] = MappingProxyType(
    {
        "org.apache.spark.sql.avro.AvroSerializer": "ERROR",
        # It logs a failure for a query that was stopped while it planned a batch.
        "org.apache.spark.broadcast.TorrentBroadcast": "OFF",
        "org.apache.spark.scheduler.DAGScheduler": "ERROR",
        "org.apache.spark.scheduler.FairSchedulableBuilder": "ERROR",
        "org.apache.spark.scheduler.TaskSetManager": "ERROR",
        # A method of generated code may be too large for Java: Spark then does without it, and real
        # failures are exceptions in any case.
        "org.apache.spark.sql.catalyst.expressions": "ERROR",
        "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator": "OFF",
        "org.apache.spark.sql.execution.WholeStageCodegenExec": "ERROR",
    }
)
"""Minimum levels of loggers that report expected events."""


def set_log_levels(spark: SparkSession) -> None:
    """Set the levels of noisy loggers."""
    for name, level in _NOISY.items():
        _set_level(spark, name, level)


@contextmanager
def silenced(spark: SparkSession, logger: str) -> Iterator[None]:
    """Disable a logger in the block, including errors."""
    _set_level(spark, logger, "OFF")
    try:
        yield
    finally:
        with suppress(Py4JError, OSError, AttributeError):  # the session may be closed by now
            _set_level(spark, logger, _NOISY.get(logger, LEVEL))


@contextmanager
def end_not_logged(query: StreamingQuery, spark: SparkSession) -> Iterator[None]:
    """Suppress Spark's log message about the error that ends a query, in the block.

    The query is stopped there, or ends with an error that the lane logs. Spark recognises a stop by
    the error of its interrupted thread, but not for all errors: then it logs an error, with the
    stack.
    """
    log4j = _log4j(spark)
    denied, neutral = log4j.core.Filter.Result.DENY, log4j.core.Filter.Result.NEUTRAL
    text = f"runId = {query.runId}] terminated with error"
    made = log4j.core.filter.StringMatchFilter.newBuilder().setText(text)
    filtered = made.setOnMatch(denied).setOnMismatch(neutral).build()
    context = log4j.LogManager.getContext(False)
    loggers = context.getConfiguration().getLoggerConfig(ENGINE)
    loggers.addFilter(filtered)
    try:
        yield
    finally:
        with suppress(Py4JError, OSError, AttributeError):  # the session may be closed by now
            loggers.removeFilter(filtered)


def _set_level(spark: SparkSession, logger: str, level: str) -> None:
    log4j = _log4j(spark)
    log4j.core.config.Configurator.setLevel(logger, log4j.Level.toLevel(level))


def _log4j(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no other way
