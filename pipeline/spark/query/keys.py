"""Non-Avro keys as Spark SQL. Pure."""

from collections.abc import Mapping
from typing import Final

from pipeline.network.model import KeyFormat
from pipeline.network.types import DataType, Scalar
from pipeline.planner.plan import DerivedStream
from pipeline.spark.query.sql import quoted

_DIGITS: Final[Mapping[DataType, int]] = {Scalar.INT: 8, Scalar.LONG: 16}
"""Hexadecimal digits of a whole number."""


def key_sql(output: DerivedStream) -> str | None:
    """The bytes of an output's key; None if keys are in Avro, or the input's.

    The document guarantees that such a key is one column, which is never null.
    """
    if output.key_format is KeyFormat.AVRO:
        return None
    (name,) = output.key
    column = quoted(name)
    (data_type,) = (c.type for c in output.columns if c.name == name)
    if output.key_format is KeyFormat.STRING:
        return f"CAST(CAST({column} AS STRING) AS BINARY)"
    digits = _DIGITS.get(data_type)
    if digits is None:
        return column
    # Big-endian, in two's complement. ANSI mode has no cast of a number to BINARY.
    return f"unhex(right(lpad(hex(CAST({column} AS BIGINT)), 16, '0'), {digits}))"
