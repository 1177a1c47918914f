"""As-of joins as DataFrame calls: both sides united, grouped by key, with custom state.

Spark has no as-of join of streams. The logic is in `as_of_state.py`; it runs in Spark's Python
processes, once for each bucket of keys with new or due rows: a call costs a millisecond or two,
much more than the work for a key. It receives whole rows as bytes, so that no value is converted by
pandas, which would change some.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import BinaryType, DataType, DoubleType, FloatType, StringType

from pipeline.ids import Millis
from pipeline.network.boxes.sides import How
from pipeline.spark.query import hidden
from pipeline.spark.query.as_of_state import (
    New,
    Result,
    Version,
    Waiting,
    bucket_again_ms,
    bucket_of,
    bucket_text,
    settle_bucket,
)
from pipeline.spark.query.emitting.joined import above
from pipeline.spark.query.hidden import Failed
from pipeline.spark.query.lowered import AsOfCore
from pipeline.spark.query.sql import quoted

_BUCKET, _KEY, _AT, _PLACE, _ROW = "__bucket", "__of", "__at_ms", "__place", "__row"
_STATE = "held string"
_RESULT = "at_ms bigint, left binary, right binary, answered boolean"
_SEPARATOR = "\x00"
"""Less than every character of topic names, so that places sort like positions."""
_LATEST = "2262-01-01"
"""Just before the maximum time of pandas; records of later times than 2200 are refused."""
BUCKETS = 512
"""Few enough that a batch of many keys costs few calls, many enough that a bucket is small: each
call writes the whole bucket again."""


def as_of_rows(
    left: DataFrame, right: DataFrame, core: AsOfCore, settled_ms: Millis | None
) -> DataFrame:
    """Emit the join: columns `left` and `right` (the matching version), time, reason, id if any.

    Also the record of the left row, the encoded version, and whether it came with the row.

    `settled_ms`: no row is emitted at or below this time, except those redriven with their version.
    """
    ours, theirs = ([pair[side] for pair in core.on] for side in (0, 1))
    right = right.drop(hidden.ID)  # a version has the same bytes, whether or not results have ids
    versions = _side(right.where(_known(theirs)), theirs, _place(), F.lit(None).cast("binary"))
    rows = left if core.how is How.LEFT else left.where(_known(ours))
    version = F.col(hidden.HELD)
    both = _side(rows, ours, F.lit(None).cast("string"), version).unionByName(versions)
    settled = _settled(both, core.within_ms)
    if core.how is How.INNER:
        settled = settled.where(F.col("right").isNotNull())
    found = settled.select(
        from_avro("left", _avro(left)).alias("left"),
        from_avro("right", _avro(right), {"mode": "PERMISSIVE"}).alias("right"),
        F.timestamp_millis("at_ms").alias(hidden.EVENT_TIME),
        F.col("right").alias(hidden.HELD),
        F.col("answered").alias(hidden.ANSWERED),
    )
    found = found.withColumn(hidden.REASON, _invalid_version(core))
    found = found.withColumn(hidden.RECORD, F.col(f"left.{hidden.RECORD}"))
    if hidden.ID in left.columns:
        found = found.withColumn(hidden.ID, F.col(f"left.{hidden.ID}"))
    return found.where(above(settled_ms) | F.col(hidden.ANSWERED))


def _invalid_version(core: AsOfCore) -> Column:
    """The reason if the version that came with a row is invalid: a valid one has a time.

    Another program may have sent it. Strict decoding would end the query, at each start again.
    """
    word = str(Failed(core.box, "held", "what came with the record is no version of the table"))
    time = F.col(f"right.{hidden.EVENT_TIME}")
    return F.when(F.col(hidden.HELD).isNotNull() & time.isNull(), F.lit(word))


def _known(names: Iterable[str]) -> Column:
    """Whether a row has a complete key: null is not equal to anything."""
    return F.expr(" AND ".join(f"{quoted(name)} IS NOT NULL" for name in names))


def _side(rows: DataFrame, on: Sequence[str], place: Column, version: Column) -> DataFrame:
    """The rows of a side in the common columns; only those of the right have a place.

    `version`: the version of a row that was redriven with it. Such a row does not wait, and Spark
    must not drop it as late by its own time.
    """
    texts = [_text(name, rows.schema[name].dataType) for name in on]
    row = to_avro(F.struct(*_kept(rows)), _avro(rows))
    latest = F.lit(_LATEST).cast("timestamp")
    time = F.when(version.isNotNull(), latest).otherwise(F.least(hidden.EVENT_TIME, latest))
    key = F.when(_known(on), F.to_json(F.array(*texts))).otherwise(_nothing(row))
    return rows.select(
        F.pmod(F.xxhash64(key), F.lit(BUCKETS)).alias(_BUCKET),
        key.alias(_KEY),
        F.unix_millis(hidden.EVENT_TIME).alias(_AT),
        place.alias(_PLACE),
        row.alias(_ROW),
        version.alias(hidden.HELD),
        time.alias(hidden.EVENT_TIME, metadata={"spark.watermarkDelayMs": 0}),
    )


def _nothing(row: Column) -> Column:
    """A key for rows without a complete key, spread over the buckets."""
    return F.pmod(F.xxhash64(row), F.lit(BUCKETS)).cast("string")


def _text(name: str, of: DataType) -> Column:
    """A text for each value of a column; equal texts for values that are equal in SQL."""
    column = F.col(quoted(name))
    match of:
        case FloatType() | DoubleType():
            return F.when(column == 0, "0").otherwise(column.cast("string"))
        case BinaryType() | StringType():  # invalid characters would all become the same
            return F.hex(column)
        case _:
            return column.cast("string")


def _place() -> Column:
    topic, partition, offset, path = (
        F.col(hidden.POSITION)[field] for field in hidden.POSITION_FIELDS
    )
    digits = (F.lpad(number.cast("string"), 20, "0") for number in (partition, offset))
    return F.concat_ws(_SEPARATOR, topic, *digits, path)


def _kept(rows: DataFrame) -> list[Column]:
    """The columns of a row that are encoded: all but the version that came with it."""
    return [F.col(quoted(name)) for name in rows.columns if name != hidden.HELD]


def _avro(rows: DataFrame) -> str:
    """The Avro schema in which rows are encoded."""
    jvm = cast("Any", rows.sparkSession.sparkContext._jvm)  # noqa: SLF001 - PySpark keeps it
    schema = rows.select(*_kept(rows))._jdf.schema()  # noqa: SLF001 - PySpark keeps it
    converted = jvm.org.apache.spark.sql.avro.SchemaConverters.toAvroType(schema, False, "row", "")
    return str(converted.toString())


def _settled(both: DataFrame, within_ms: int) -> DataFrame:
    """Rows of `_RESULT`: all of a batch; of a stream those that event time has passed."""
    buckets = both.groupBy(_BUCKET)
    if not both.isStreaming:

        def at_once(frame: pd.DataFrame) -> pd.DataFrame:  # PySpark requires a plain function here
            new, answered = _taken([frame])
            return _frame(answered, settle_bucket({}, new, None, within_ms)[0])

        return buckets.applyInPandas(at_once, _RESULT)
    return buckets.applyInPandasWithState(
        partial(_step, within_ms=within_ms),
        _RESULT,
        _STATE,
        "append",
        GroupStateTimeout.EventTimeTimeout,
    )


def _step(
    _bucket: Any, frames: Iterator[pd.DataFrame], state: GroupState, *, within_ms: int
) -> Iterator[pd.DataFrame]:
    """Process the new and due rows of a bucket: emit results, update the state."""
    before = bucket_of(state.get[0]) if state.exists else {}
    new, answered = _taken(() if state.hasTimedOut else frames)
    results, kept = settle_bucket(before, new, Millis(state.getCurrentWatermarkMs()), within_ms)
    again_ms = bucket_again_ms(kept)
    if again_ms is None:
        state.remove()
    else:
        state.update((bucket_text(kept),))
        state.setTimeoutTimestamp(again_ms)
    if answered or results:
        yield _frame(answered, results)


def _taken(frames: Iterable[pd.DataFrame]) -> tuple[dict[str, New], list[Result]]:
    """New rows and versions of each key, and results of rows redriven with their version."""
    new: dict[str, New] = {}
    answered: list[Result] = []
    for frame in frames:
        columns = (frame[name] for name in (_KEY, _AT, _PLACE, _ROW, hidden.HELD))
        for key, at_ms, place, row, version in zip(*columns, strict=True):
            if version is not None:
                answered.append(Result(int(at_ms), row, version or None))
                continue
            of = new.get(key)
            if of is None:
                of = new[key] = New([], [])
            if place is None:
                of.waiting.append(Waiting(int(at_ms), row))
            else:
                of.versions.append(Version(int(at_ms), place, row))
    return new, answered


def _frame(answered: Sequence[Result], results: Sequence[Result]) -> pd.DataFrame:
    every = (*answered, *results)
    at_ms, left, right = zip(*every, strict=True) if every else ((), (), ())
    redriven = [n < len(answered) for n in range(len(every))]
    return pd.DataFrame({"at_ms": at_ms, "left": left, "right": right, "answered": redriven})
