"""Columns of the rows on which expressions are evaluated, with Spark and without."""

from pipeline.network.types import (
    ArrayType,
    Column,
    Columns,
    DecimalType,
    MapType,
    Scalar,
    StructType,
)

COLUMNS: Columns = (
    Column("i", Scalar.INT, nullable=True),
    Column("j", Scalar.INT, nullable=False),
    Column("l", Scalar.LONG, nullable=True),
    Column("f", Scalar.FLOAT, nullable=True),
    Column("d", Scalar.DOUBLE, nullable=True),
    Column("e", Scalar.DOUBLE, nullable=False),
    Column("n", DecimalType(10, 2), nullable=True),
    Column("m", DecimalType(38, 10), nullable=True),
    Column("b", Scalar.BOOLEAN, nullable=True),
    Column("t", Scalar.STRING, nullable=True),
    Column("u", Scalar.STRING, nullable=False),
    Column("y", Scalar.BYTES, nullable=True),
    Column("day", Scalar.DATE, nullable=True),
    Column("at", Scalar.TIMESTAMP, nullable=True),
    Column("xs", ArrayType(Scalar.INT, element_nullable=True), nullable=True),
    Column("mp", MapType(Scalar.LONG, value_nullable=True), nullable=True),
    Column(
        "r",
        StructType(
            "R",
            (Column("a", Scalar.INT, nullable=True), Column("s", Scalar.STRING, nullable=False)),
        ),
        nullable=True,
    ),
)
