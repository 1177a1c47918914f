"""Values in the wire format → rows, each read with the schema that it was written with."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.avro.functions import from_avro

from pipeline.spark import hidden
from pipeline.spark.lowered import DECODED_MARK, Source, TopicRole
from schemas import wire

_REST = 2_147_483_647
_PREFIXES = (
    (wire.MAGIC, wire.PREFIX_BYTES),
    (wire.GUID_MAGIC, wire.GUID_PREFIX_BYTES),
)


def split(rows: DataFrame) -> DataFrame:
    """With the handle of each value's schema, null where nothing names one, and with the body."""
    value, told = F.col(hidden.VALUE), _header()
    named = _named_by(told)
    handle, body = F.when(named, told), F.when(named, value)
    for magic, size in _PREFIXES:
        framed = (F.length(value) >= size) & (F.substring(value, 1, 1) == F.lit(bytes((magic,))))
        handle = handle.when(framed, F.substring(value, 1, size))
        body = body.when(framed, F.substring(value, size + 1, _REST))
    return rows.select("*", handle.alias(hidden.HANDLE), body.alias(hidden.BODY))


def _header() -> Column:
    """What the first header says that may name a value's schema.

    Of the functions that find it Spark generates code; with a lambda it would generate none for
    all that happens to the record.
    """
    headers = F.col(hidden.HEADERS)
    at = F.array_position(headers.getField("key"), wire.Part.VALUE.value)
    return F.when(at > 0, F.get(headers, (at - 1).cast("int")).getField("value"))


def _named_by(told: Column) -> Column:
    fits = F.lit(False)
    for magic, size in _PREFIXES:
        first = F.substring(told, 1, 1) == F.lit(bytes((magic,)))
        fits = fits | ((F.length(told) == size) & first)
    return F.col(hidden.HEADERS).isNotNull() & fits


def record(source: Source) -> Column:
    """The record; without its mark if it cannot be decoded."""
    handle, body = F.col(hidden.HANDLE), F.col(hidden.BODY)
    options = {"avroSchema": source.reader_json, "mode": "PERMISSIVE"}
    is_data = F.col(hidden.TOPIC) != source.topic(TopicRole.ADVANCES)
    writers = [writer for writer in source.writers if not writer.unfit]
    if not writers:
        return from_avro(F.lit(None).cast("binary"), source.reader_json, options)
    first, *others = writers
    decoded = F.when(
        is_data & (handle == F.lit(wire.prefix(first.handle))), from_avro(body, first.json, options)
    )
    for writer in others:
        matches = is_data & (handle == F.lit(wire.prefix(writer.handle)))
        decoded = decoded.when(matches, from_avro(body, writer.json, options))
    return decoded


def is_decoded() -> Column:
    """Whether a row could be decoded."""
    return F.col(f"{hidden.ROW}.{DECODED_MARK}").isNotNull()


def undecoded(source: Source) -> Column:
    """The reason why a value could not be decoded."""
    handle = F.col(hidden.HANDLE)
    planned = [wire.prefix(writer.handle) for writer in source.writers]
    return (
        F.when(F.col(hidden.VALUE).isNull(), hidden.Reason.EMPTY_VALUE.value)
        .when(handle.isNull(), hidden.Reason.NOT_WIRE_FORMAT.value)
        .when(_is_missing(source), hidden.Reason.SCHEMA_NOT_FOUND.value)
        .when(~handle.isin(planned), hidden.UNKNOWN_SCHEMA)
        .otherwise(hidden.Reason.UNDECODABLE.value)
    )


def unknown(rows: DataFrame, source: Source) -> DataFrame:
    """How often each schema occurs in records that the query was not planned with.

    Rows of (`handle`, `count`); a handle is the prefix in hexadecimal digits.
    """
    planned = [wire.prefix(writer.handle) for writer in source.writers]
    kafka = {hidden.TOPIC: "topic", hidden.VALUE: "value", hidden.HEADERS: "headers"}
    rows = rows.where(F.col("topic") != source.topic(TopicRole.ADVANCES))
    rows = split(rows.select(*[F.col(theirs).alias(ours) for ours, theirs in kafka.items()]))
    handle = F.col(hidden.HANDLE)
    rows = rows.where(handle.isNotNull() & ~handle.isin(planned) & ~_is_missing(source))
    return rows.groupBy(F.hex(handle).alias("handle")).count()


def _is_missing(source: Source) -> Column:
    """Whether the registry is known not to have a schema.

    It may have it by the time that a record is sent again, so that is looked up again.
    """
    again = F.col(hidden.TOPIC) == source.topic(TopicRole.REDRIVE)
    missing = [wire.prefix(handle) for handle in source.missing]
    return ~again & F.col(hidden.HANDLE).isin(missing)
