"""Validation of the records of a source: event time and, for invalid records, the reason.

`judged` computes the reason of each unfit record. `is_unfit` computes only whether there is one, by
the same conditions, for queries that need no more: see `sifted.py`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.spark.query import hidden
from pipeline.spark.query.emitting import decoded
from pipeline.spark.query.lowered import Source
from pipeline.spark.query.sql import quoted

KAFKA = {
    hidden.TOPIC: "topic", hidden.PARTITION: "partition", hidden.OFFSET: "offset",
    hidden.KEY: "key", hidden.VALUE: "value", hidden.KAFKA_TIME: "timestamp",
    hidden.HEADERS: "headers",
}  # fmt: skip
"""Hidden columns by Kafka's columns."""
_TOO_LATE_MS = round(1_000 * datetime(2200, 1, 1, tzinfo=UTC).timestamp())


def judged(raw: DataFrame, source: Source, record_filter: Column) -> DataFrame:
    """Decode records, compute event times, and set the reason of invalid records.

    `record_filter` filters the records.
    """
    rows = decoded.split(of_kafka(raw).where(record_filter), source).select(
        *KAFKA,
        hidden.HANDLE,
        decoded.record(source).alias(hidden.ROW),
    )
    rows = rows.select("*", *columns_of(source))
    rows = rows.withColumn(hidden.EVENT_TIME, event_time(source))
    rows = rows.withColumn(hidden.EVENT_MS, F.unix_millis(hidden.EVENT_TIME))
    return rows.withColumn(hidden.REASON, _reason(source))


def of_kafka(raw: DataFrame) -> DataFrame:
    """Kafka's columns as hidden columns."""
    return raw.select(*[F.col(kafka).alias(ours) for ours, kafka in KAFKA.items()])


def columns_of(source: Source) -> list[Column]:
    """The columns of the record in `__row`."""
    return [F.col(f"{hidden.ROW}.{quoted(c.name)}").alias(c.name) for c in source.columns]


def event_time(source: Source) -> Column:
    """Event time of a decoded record; null for others."""
    sql = source.event_time.sql
    time = F.expr(sql) if sql else F.date_trunc("millisecond", hidden.KAFKA_TIME)
    return F.when(decoded.is_decoded(), time)


def is_unfit(source: Source) -> Column:
    """Whether a record cannot be decoded, or its event time is invalid."""
    wrong = reduce(or_, (condition for condition, _ in _faults(source)))
    return ~decoded.is_decoded() | F.coalesce(wrong, F.lit(False))


def _reason(source: Source) -> Column:
    """The reason of a record; null, the common case, comes first."""
    reason = F.when(~decoded.is_decoded(), decoded.undecoded(source))
    for condition, word in _faults(source):
        reason = reason.when(condition, word.value)
    return reason


def _faults(source: Source) -> Iterator[tuple[Column, Reason]]:
    """Conditions and reasons of invalid event times of decoded records."""
    time, at_ms = source.event_time, F.col(hidden.EVENT_MS)
    if time.failed is not None:
        yield F.expr(time.failed), Reason.EVENT_TIME_FAILED
    yield at_ms.isNull(), Reason.EVENT_TIME_MISSING
    if time.sql is not None:
        yield at_ms <= 0, Reason.EVENT_TIME_BEFORE_1970
    if time.ahead_ms is not None:
        ahead = at_ms - F.unix_millis(hidden.KAFKA_TIME) > time.ahead_ms
        yield ahead | (at_ms >= _TOO_LATE_MS), Reason.EVENT_TIME_AHEAD
