"""Encoding of rows as Kafka records."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.avro.functions import to_avro

from pipeline.ids import SchemaId
from pipeline.spark.query import hidden
from pipeline.spark.query.lowered import Encoding, Lowered
from pipeline.spark.query.placing import BY_KEY
from pipeline.spark.query.sql import quoted
from schemas import wire


def encoded(
    rows: DataFrame,
    lowered: Lowered,
    at_ms: Column,
    instead: Column | None = None,
    more: Sequence[Column | str] = (),
) -> DataFrame:
    """The rows of (key, value, timestamp_ms, partition, reason), and id if results have one.

    Args:
        rows: the rows.
        lowered: the fragment.
        at_ms: the event time of a row.
        instead: the value of a row with a reason; None: there are no such rows.
        more: further columns.
    """
    encoding = lowered.encoding
    value = _wire(encoding.value_id, encoding.value_columns, encoding.value_json)
    own = _own_key(encoding)
    passed = F.col(hidden.KEY) if lowered.keeps_key else F.lit(None).cast("binary")
    key = passed if own is None else own
    place = lowered.keeps_key and own is None
    partition = F.col(hidden.PARTITION) if place else F.lit(BY_KEY)
    reason = F.col(hidden.REASON)
    if instead is not None:
        value = F.when(reason.isNull(), value).otherwise(instead.cast("binary"))
        if own is not None:
            key = F.when(reason.isNull(), key)
    return rows.select(
        key.alias("key"),
        value.alias("value"),
        at_ms.alias("timestamp_ms"),
        partition.cast("int").alias("partition"),
        reason.alias("reason"),
        *([F.col(hidden.ID).cast("binary").alias("id")] if lowered.ids else []),
        *more,
    )


def _own_key(encoding: Encoding) -> Column | None:
    """The key computed from the row's columns; None if there is none."""
    if encoding.key_sql is not None:
        return F.expr(encoding.key_sql)
    if encoding.key_json is None or encoding.key_id is None:
        return None
    return _wire(encoding.key_id, encoding.key_columns, encoding.key_json)


def _wire(schema_id: SchemaId, columns: tuple[str, ...], schema_json: str) -> Column:
    """Magic byte, id, Avro body."""
    prefix = F.lit(wire.prefix(schema_id))
    body = to_avro(F.struct(*[F.col(quoted(name)) for name in columns]), schema_json)
    return F.concat(prefix, body)
