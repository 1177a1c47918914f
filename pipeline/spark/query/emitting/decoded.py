"""Decoding of values in the wire format, each with its writer's schema."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.avro.functions import from_avro

from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.result_headers import WRITTEN_TO
from pipeline.spark.query import hidden
from pipeline.spark.query.emitting.headers import header
from pipeline.spark.query.emitting.record_filter import is_sent_again
from pipeline.spark.query.lowered import DECODED_MARK, Source, TopicRole
from schemas import wire

_REST = 2_147_483_647


def framed(rows: DataFrame, source: Source) -> DataFrame:
    """Add the framed value: the schema prefix and the value; null if it is foreign.

    Each step is a separate projection, so that Spark computes shared expressions once: it plans a
    query anew for each batch, and plans and compiles duplicated expressions twice.
    """
    value, handle = F.col(hidden.VALUE), F.col(hidden.HEADER_HANDLE)
    rows = rows.select("*", header(wire.Part.VALUE.value).alias(hidden.HEADER_HANDLE))
    named = reduce(
        or_,
        (_begins(handle, magic) & (F.length(handle) == n) for magic, n in wire.PREFIXES.items()),
    )
    framed_anew = F.when(named, F.concat(handle, value)).otherwise(value)
    foreign = is_foreign(source)
    if foreign is not None:
        framed_anew = F.when(~foreign, framed_anew)
    return rows.select("*", framed_anew.alias(hidden.FRAMED))


def is_foreign(source: Source) -> Column | None:
    """Whether no lane wrote a record of a derived stream; None for external streams."""
    if source.written_to is None:
        return None
    mark = F.coalesce(header(WRITTEN_TO), F.lit(b""))
    is_own = F.col(hidden.TOPIC) == source.data.topic
    tentative = source.topic(TopicRole.TENTATIVE)
    if tentative is not None:
        is_own |= F.col(hidden.TOPIC) == tentative
    return is_own & (mark != F.lit(source.written_to.encode()))


def split(rows: DataFrame, source: Source) -> DataFrame:
    """Add the framed value and its schema prefix; null if it has none."""
    value = F.col(hidden.FRAMED)
    handle = _case(
        (_begins(value, magic) & (F.length(value) >= size), F.substring(value, 1, size))
        for magic, size in wire.PREFIXES.items()
    )
    return framed(rows, source).select("*", handle.alias(hidden.HANDLE))


def _begins(value: Column, magic: int) -> Column:
    return F.startswith(value, F.lit(bytes((magic,))))


def _case(cases: Iterable[tuple[Column, Column]]) -> Column:
    """The value of the first condition that holds; null if none does."""
    (condition, value), *others = cases
    found = F.when(condition, value)
    for condition, value in others:
        found = found.when(condition, value)
    return found


def record(source: Source) -> Column:
    """The decoded record; without its mark if it cannot be decoded."""
    value = F.col(hidden.FRAMED)
    options = {"avroSchema": source.reader_json, "mode": "PERMISSIVE"}
    writers = [writer for writer in source.writers if not writer.unfit]
    if not writers:
        return from_avro(F.lit(None).cast("binary"), source.reader_json, options)
    prefixed = ((wire.prefix(writer.handle), writer.json) for writer in writers)
    return _case(
        (
            F.startswith(value, F.lit(prefix)),
            from_avro(F.substring(value, len(prefix) + 1, _REST), text, options),
        )
        for prefix, text in prefixed
    )


def is_decoded() -> Column:
    """Whether a row could be decoded."""
    return F.col(f"{hidden.ROW}.{DECODED_MARK}").isNotNull()


def undecoded(source: Source) -> Column:
    """The reason why a value could not be decoded."""
    handle = F.col(hidden.HANDLE)
    planned = [wire.prefix(writer.handle) for writer in source.writers]
    known = (
        F.when(F.col(hidden.VALUE).isNull(), Reason.EMPTY_VALUE.value)
        .when(handle.isNull(), Reason.NOT_WIRE_FORMAT.value)
        .when(_is_missing(source), Reason.SCHEMA_NOT_FOUND.value)
        .when(~handle.isin(planned), hidden.UNKNOWN_SCHEMA)
        .otherwise(Reason.UNDECODABLE.value)
    )
    foreign = is_foreign(source)
    if foreign is None:
        return known
    return F.when(foreign, Reason.FOREIGN.value).otherwise(known)


def unknown(rows: DataFrame, source: Source) -> DataFrame:
    """Count records by schemas that the query was not planned with.

    Rows of (`handle`, `count`); a handle is the prefix in hexadecimal digits.
    """
    planned = [wire.prefix(writer.handle) for writer in source.writers]
    kafka = {hidden.TOPIC: "topic", hidden.VALUE: "value", hidden.HEADERS: "headers"}
    rows = rows.select(*[F.col(theirs).alias(ours) for ours, theirs in kafka.items()])
    rows = split(rows, source)
    handle = F.col(hidden.HANDLE)
    rows = rows.where(handle.isNotNull() & ~handle.isin(planned) & ~_is_missing(source))
    return rows.groupBy(F.hex(handle).alias("handle")).count()


def _is_missing(source: Source) -> Column:
    """Whether a schema is recorded as missing from the registry.

    It may exist when a record is redriven, so schemas of redriven records are looked up again.
    """
    missing = [wire.prefix(handle) for handle in source.missing]
    return ~is_sent_again(source) & F.col(hidden.HANDLE).isin(missing)
