"""Places of rows in the log (ids, positions, records) as hidden columns, where they are needed.

A redriven record has the place of its original.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.lanes.dead_letters import ATTEMPT, HELD, HELD_BY, REDRIVEN_ORIGIN
from pipeline.lanes.result_headers import RESULT_ID
from pipeline.network.boxes.traits import Keeps
from pipeline.spark.query import hidden
from pipeline.spark.query.emitting.headers import header
from pipeline.spark.query.emitting.record_filter import is_sent_again
from pipeline.spark.query.failed_results import ROW_COLUMNS
from pipeline.spark.query.lowered import (
    AsOfCore,
    Core,
    DeduplicateCore,
    GroupCore,
    Lowered,
    Path,
    Source,
)

_OWN = (hidden.TOPIC, hidden.PARTITION, hidden.OFFSET)
_PLACE = r"^[^/]+/\d{1,9}/\d{1,18}$"


def with_hidden(rows: DataFrame, lowered: Lowered, path: Path) -> tuple[DataFrame, tuple[str, ...]]:
    """Add the hidden columns that a path needs; returns the rows and the columns' names."""
    source, core = lowered.source(path.source), lowered.core
    found = dict[str, Column]()
    if lowered.ids and lowered.traits.keeps is not Keeps.GROUPS:
        found[hidden.ID] = record_id(source, lowered.twin(path))
    if _has_positions(core, path):
        found[hidden.POSITION] = position(source, path)
    if isinstance(core, AsOfCore) and path.port == "left":
        found[hidden.RECORD] = record(source, lowered.paths.index(path))
        found[hidden.HELD] = held(source, core)
    return (rows.withColumns(found) if found else rows), tuple(found)


def passed(lowered: Lowered) -> tuple[str, ...]:
    """Columns of a record that place a result with the record's key."""
    return hidden.PASSED if lowered.keeps_key else ()


def _has_positions(core: Core | None, path: Path) -> bool:
    """Whether rows of equal event time need an order."""
    match core:
        case AsOfCore():
            return path.port == "right"
        case GroupCore():
            return core.positions
        case _:
            return isinstance(core, DeduplicateCore)


def record_id(source: Source, twin: str = "") -> Column:
    """`topic/partition/offset` of the original of a record, or topic and id of a result.

    A tentative result and the stable one have one id, whatever their places are.

    `twin`: the name of the path, if another path has the same record at the same port.
    """
    place = F.concat_ws("/", *_OWN)
    first = F.coalesce(_origin(source), place)
    if source.has_ids:
        result = header(RESULT_ID).cast("string")
        first = F.coalesce(F.concat(F.lit(f"{source.data.topic}/"), result), first)
    return F.concat_ws("/", first, F.lit(twin)) if twin else first


def position(source: Source, path: Path) -> Column:
    """Topic, partition and offset of the original of a record, and its path.

    Orders the rows of a port totally: a box with several rows per record ends its fragment.
    """
    origin = _origin(source)
    parts = F.split(origin, "/")
    first = (parts[0], parts[1].cast("int"), parts[2].cast("bigint"))
    again = origin.rlike(_PLACE)
    places = (F.when(again, f).otherwise(F.col(own)) for f, own in zip(first, _OWN, strict=True))
    return F.struct(
        *(
            place.alias(name)
            for place, name in zip((*places, F.lit(path.name)), hidden.POSITION_FIELDS, strict=True)
        )
    )


RECORD_FIELDS: Final = ("path", "partition", "offset", "attempt", "first")


def record(source: Source, path: int) -> Column:
    """The record of a row, in few bytes, since it is kept with each waiting row.

    The number of its path, which determines the source; partition and offset, in the redrive topic
    if this is not the first attempt; the attempt; and `topic/partition/offset` of the original of a
    redriven record.
    """
    again = is_sent_again(source)
    attempt = header(ATTEMPT).cast("string").try_cast("int")
    fields = (
        F.lit(path),
        F.col(hidden.PARTITION),
        F.col(hidden.OFFSET),
        F.when(again, 1 + F.coalesce(attempt, F.lit(1))).otherwise(F.lit(1)),
        F.when(again, header(REDRIVEN_ORIGIN).cast("string")),
    )
    return F.struct(*(c.alias(name) for c, name in zip(fields, RECORD_FIELDS, strict=True)))


def held(source: Source, core: AsOfCore) -> Column:
    """The version with which a row was redriven; empty: none matched. Null for other rows."""
    return F.when(is_answered(source, core), F.coalesce(header(HELD), F.lit(b"")))


def is_answered(source: Source, core: AsOfCore) -> Column:
    """Whether a record was redriven with its table version, never null.

    Under another plan another version might match: then it is processed like any other.
    """
    same = header(HELD_BY) == F.lit(core.decided.encode())
    return is_sent_again(source) & F.coalesce(same, F.lit(False))


def row_columns(lowered: Lowered) -> tuple[Column, ...]:
    """The columns of `failed_results.ROW_COLUMNS`.

    Record and version are set only in results that cannot be computed.
    """
    failed, of = F.col(hidden.REASON).isNotNull(), F.col(hidden.RECORD)
    names = F.array(*[F.lit(path.name) for path in lowered.paths])
    record_of = of.withField("path", F.get(names, of["path"]))
    columns = (F.when(failed, F.to_json(record_of)), F.when(failed, F.col(hidden.HELD)))
    named = zip((*columns, F.col(hidden.ANSWERED)), ROW_COLUMNS, strict=True)
    return tuple(column.alias(name) for column, name in named)


def _origin(source: Source) -> Column:
    """`topic/partition/offset` of the original of a redriven record; else null."""
    origins = F.filter(hidden.HEADERS, lambda header: header["key"] == REDRIVEN_ORIGIN)
    origin = F.try_element_at(origins, F.lit(1))["value"].cast("string")
    return F.when(is_sent_again(source), origin)
