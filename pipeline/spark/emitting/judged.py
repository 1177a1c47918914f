"""Records of a source → rows, each with its event time and with what is wrong with it, if anything.

`judged` says of each record why it is unfit. `fit` is the same decision without the reasons, for
queries that need no more: see `sifted.py`.
"""

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.spark import hidden
from pipeline.spark.emitting import decoded
from pipeline.spark.emitting.wanted import advances_of
from pipeline.spark.hidden import Reason
from pipeline.spark.lowered import Source
from pipeline.spark.sql import quoted

KAFKA = {
    hidden.TOPIC: "topic", hidden.PARTITION: "partition", hidden.OFFSET: "offset",
    hidden.KEY: "key", hidden.VALUE: "value", hidden.KAFKA_TIME: "timestamp",
    hidden.HEADERS: "headers",
}  # fmt: skip
"""Our names of Kafka's columns."""
_TOO_LATE = datetime(2200, 1, 1, tzinfo=UTC)
_TOO_LATE_MS = round(1_000 * _TOO_LATE.timestamp())


def judged(
    raw: DataFrame, source: Source, wanted: Column, of_advance: str | None = None
) -> DataFrame:
    """Decode, find event times, and say of each record what is wrong with it, if anything.

    Args:
        raw: Kafka's columns.
        source: where they are from.
        wanted: which records come along.
        of_advance: the reason that advances get.
    """
    is_advance = F.col(hidden.TOPIC) == advances_of(source)
    text = F.col(hidden.VALUE).cast("string")
    advance = F.when(is_advance, F.get_json_object(text, "$.advance_ms").cast("long"))
    rows = decoded.split(of_kafka(raw).where(wanted)).select(
        *KAFKA,
        hidden.HANDLE,
        advance.alias(hidden.ADVANCE),
        decoded.record(source).alias(hidden.ROW),
    )
    rows = rows.select("*", *columns_of(source))
    rows = rows.withColumn(hidden.EVENT_TIME, event_time(source))
    reason = F.when(is_advance, F.lit(of_advance)).otherwise(_reason(source))
    return rows.withColumn(hidden.REASON, reason)


def of_kafka(raw: DataFrame) -> DataFrame:
    """Kafka's columns under our names."""
    return raw.select(*[F.col(kafka).alias(ours) for ours, kafka in KAFKA.items()])


def columns_of(source: Source) -> list[Column]:
    """The columns of the record in `__row`."""
    return [F.col(f"{hidden.ROW}.{quoted(c.name)}").alias(c.name) for c in source.columns]


def event_time(source: Source) -> Column:
    """Event time of a record that could be decoded; of others null."""
    sql = source.event_time.sql
    time = F.expr(sql) if sql else F.date_trunc("millisecond", hidden.KAFKA_TIME)
    return F.when(decoded.is_decoded(), time)


def fit(source: Source) -> Column:
    """Whether nothing is wrong with a record, by its `__event_ms`; null may stand for no.

    It is where `judged` finds no reason.
    """
    time, at_ms = source.event_time, F.col(hidden.EVENT_MS)
    good = decoded.is_decoded() & at_ms.isNotNull()
    if time.failed is not None:
        good &= ~F.coalesce(F.expr(time.failed), F.lit(False))
    if time.sql is not None:
        good &= at_ms > 0
    if time.ahead_ms is not None:
        good &= at_ms - F.unix_millis(hidden.KAFKA_TIME) <= time.ahead_ms
        good &= at_ms < _TOO_LATE_MS
    return good


def _reason(source: Source) -> Column:
    """What is wrong with a record, the common answer first: nothing."""
    time, at = source.event_time, F.col(hidden.EVENT_TIME)
    reason = F.when(~decoded.is_decoded(), decoded.undecoded(source))
    if time.failed is not None:
        reason = reason.when(F.expr(time.failed), Reason.EVENT_TIME_FAILED.value)
    reason = reason.when(at.isNull(), Reason.EVENT_TIME_MISSING.value)
    if time.sql is not None:
        before = F.unix_millis(at) <= 0
        reason = reason.when(before, Reason.EVENT_TIME_BEFORE_1970.value)
    if time.ahead_ms is not None:
        ahead = F.unix_millis(at) - F.unix_millis(hidden.KAFKA_TIME) > time.ahead_ms
        ahead |= at >= F.lit(f"{_TOO_LATE:%Y-%m-%d}").cast("timestamp")
        reason = reason.when(ahead, Reason.EVENT_TIME_AHEAD.value)
    return reason
