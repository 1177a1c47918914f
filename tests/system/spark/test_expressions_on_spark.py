"""Expressions compared with Spark: types, values, and failure conditions.

Each line of `tests/data/network/expressions.txt` is evaluated over rows of extreme values: once as
the safe SQL that is generated from it, once as the text itself, guarded by the generated failure
condition. On the first row for which that condition is true, the bare text must raise.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.network.expressions import check
from pipeline.network.model import Expression
from pipeline.network.scope import Scope, Source
from pipeline.network.types import (
    ArrayType,
    DataType,
    MapType,
    Scalar,
    StructType,
)
from tests.expression_columns import COLUMNS

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

DATA = Path(__file__).parents[2] / "data" / "network"
TEXTS = tuple(line for line in (DATA / "expressions.txt").read_text().splitlines() if line.strip())

CHUNK = 30
"""Expressions per query: few queries, and none too large to be compiled."""


ROWS = (
    (
        "1, 2, 3L, 1.5F, 2.5D, 1D, 1.25, 3.5, true, '12', 'ab', X'01', DATE '2024-02-29',"
        " TIMESTAMP '2024-02-29 10:11:12.345678', array(1, 2, null), map('a', 1L),"
        " named_struct('a', 1, 's', 'x')"
    ),
    (
        "0, 0, 0L, 0F, 0D, 0D, 0, 0, false, '', '', X'', DATE '1970-01-01',"
        " TIMESTAMP '1970-01-01 00:00:00', array(), map(), named_struct('a', null, 's', '')"
    ),
    (
        "-2147483648, 2147483647, -9223372036854775808L, float('NaN'), double('NaN'), 1e18D,"
        " 99999999.99, 9999999999999999999999999999.9999999999BD, null, 'x1', 'ÄÖ😀', X'FF00',"
        " date_from_unix_date(2147483647), timestamp_micros(9223372036854775807L), array(null),"
        " map('b', null), named_struct('a', -2147483648, 's', 'y')"
    ),
    (
        "2147483647, -2147483648, 9223372036854775807L, float('-Infinity'), double('-Infinity'),"
        " 1e300D, -99999999.99, -9999999999999999999999999999.9999999999BD, true,"
        " '2024-01-31 12:00:00', 'a,b,c', X'C328', date_from_unix_date(-2147483648),"
        " timestamp_micros(-9223372036854775808L), array(5, 6, 7), map('a', 5L, 'b', 6L),"
        " named_struct('a', 7, 's', 'z')"
    ),
    (
        "null, 1, null, null, null, -1.5D, null, null, null, null, '99999999999', null, null, null,"
        " null, null, null"
    ),
    (
        "7, -1, -1L, 3.4E38F, 1e18D, 1e17D, -0.01, 0.0000000001BD, false, '1e3', '2024-01-31',"
        " X'00', DATE '0001-01-01', TIMESTAMP '0001-01-01 00:00:00', array(1), map('ab', 9L),"
        " named_struct('a', 7, 's', 'z')"
    ),
    (
        "-5, 3, 5L, -2.5F, -2.5D, 0.5D, 12.34, 100000.5, true, 'true', 'Hello World', X'61',"
        " DATE '9999-12-31', TIMESTAMP '9999-12-31 23:59:59.999999', array(3, 2, 1), map('x', 1L),"
        " named_struct('a', 3, 's', 'q')"
    ),
)

SCOPE = Scope((Source(COLUMNS),))


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """The rows, cached in memory to prevent constant folding."""
    selects = " UNION ALL ".join(f"SELECT {row}, {n}" for n, row in enumerate(ROWS))
    names = ", ".join(f"c{n}" for n in range(len(COLUMNS)))
    casts = ", ".join(
        f"CAST(c{n} AS {column.type}) AS {column.name}" for n, column in enumerate(COLUMNS)
    )
    query = f"SELECT {casts}, row FROM ({selects}) AS v({names}, row)"  # noqa: S608 - our own constants
    cached = spark.sql(query).coalesce(1).cache()
    assert cached.count() == len(ROWS)
    return cached


def good(text: str) -> Expression:
    """The expression of a valid text."""
    checked = check(text, SCOPE)
    assert checked.faults == (), text
    assert checked.expression is not None
    return checked.expression


def spark_name(data_type: DataType) -> str:
    """A type as Spark's `simpleString` writes it."""
    return str(data_type).lower().replace(", ", ",").replace(": ", ":")


def comparable(sql: str, data_type: DataType) -> str:
    """A value as text, so that NaN equals itself and years beyond 9999 need no Python date."""
    if isinstance(data_type, ArrayType | MapType | StructType):
        return f"to_json(struct({sql} AS v))"
    return f"CAST({sql} AS STRING)"


def chunks() -> list[Sequence[str]]:
    """The expressions in groups."""
    return [TEXTS[start : start + CHUNK] for start in range(0, len(TEXTS), CHUNK)]


@pytest.mark.parametrize("texts", chunks(), ids=lambda texts: texts[0])
def test_types_are_those_of_spark(texts: Sequence[str], rows: DataFrame) -> None:
    """Types of the text and of the safe SQL, which is null only where it may be."""
    ours = [good(text) for text in texts]
    safe = rows.selectExpr(*(f"{e.sql} AS v{n}" for n, e in enumerate(ours)))
    bare = rows.selectExpr(*(f"{e.text} AS v{n}" for n, e in enumerate(ours)))
    failed = rows.selectExpr(*(f"{e.failed or 'false'} AS v{n}" for n, e in enumerate(ours)))
    expected = {e.text: spark_name(e.type) for e in ours}
    for frame in (safe, bare):
        found = [field.dataType.simpleString() for field in frame.schema.fields]
        assert dict(zip(texts, found, strict=True)) == expected
    assert {field.dataType.simpleString() for field in failed.schema.fields} == {"boolean"}


@pytest.mark.parametrize("texts", chunks(), ids=lambda texts: texts[0])
def test_values_are_those_of_spark_where_it_does_not_fail(
    texts: Sequence[str], rows: DataFrame
) -> None:
    """The safe SQL never raises and equals the guarded text; `failed` is never null."""
    ours = [good(text) for text in texts]
    safe = rows.selectExpr(
        *(f"{comparable(e.sql, e.type)} AS v{n}" for n, e in enumerate(ours)),
        *(f"{e.failed or 'false'} AS f{n}" for n, e in enumerate(ours)),
    ).collect()
    guarded = rows.selectExpr(
        *(
            f"CASE WHEN {e.failed or 'false'} THEN NULL"
            f" ELSE {comparable(e.text, e.type)} END AS v{n}"
            for n, e in enumerate(ours)
        )
    ).collect()
    for n, expression in enumerate(ours):
        failed = [row[f"f{n}"] for row in safe]
        assert None not in failed, expression.text
        values = [None if bad else row[f"v{n}"] for row, bad in zip(safe, failed, strict=True)]
        assert values == [row[f"v{n}"] for row in guarded], expression.text
        if not expression.nullable:
            kept = [row[f"v{n}"] for row, bad in zip(safe, failed, strict=True) if not bad]
            assert None not in kept, expression.text


FAILING = tuple(text for text in TEXTS if good(text).failed)


@pytest.mark.parametrize("texts", chunks(), ids=lambda texts: texts[0])
def test_expressions_raise_where_the_failure_condition_is_true(
    texts: Sequence[str], rows: DataFrame
) -> None:
    """On the first row whose failure condition is true, Spark raises for the text itself."""
    ours = [good(text) for text in texts if text in FAILING]
    if not ours:
        return
    failed = rows.selectExpr("row", *(f"{e.failed} AS f{n}" for n, e in enumerate(ours))).collect()
    for n, expression in enumerate(ours):
        first = next((row["row"] for row in failed if row[f"f{n}"]), None)
        if first is None:
            continue
        bare = f"{comparable(expression.text, expression.type)} AS v"
        assert raises(rows.where(f"row = {first}").selectExpr(bare)), expression.text


def raises(frame: DataFrame) -> bool:
    """Whether evaluating a frame raises."""
    try:
        frame.collect()
    except (PySparkException, Py4JJavaError):
        return True
    return False


def evaluated(rows: DataFrame, text: str, row: int) -> tuple[object, bool]:
    """The safe value of an expression on one row, and whether it failed."""
    expression = good(text)
    (found,) = (
        rows.where(f"row = {row}")
        .selectExpr(f"{expression.sql} AS v", f"{expression.failed or 'false'} AS f")
        .collect()
    )
    return found["v"], found["f"]


def recorded(expression: Expression) -> str:
    """SQL of a value in the form of `evaluated.json`: all digits, dates beyond Python's range."""
    sql = expression.sql
    if expression.type is Scalar.TIMESTAMP:
        sql = f"unix_micros({sql})"
    elif expression.type is Scalar.DATE:
        sql = f"unix_date({sql})"
    elif expression.type is Scalar.BYTES:
        sql = f"hex({sql})"
    return comparable(sql, expression.type)


def test_recorded_results_are_those_of_spark(rows: DataFrame) -> None:
    """Expected results of the evaluation without Spark: a value per row, false where it fails.

    The results of a line added to `evaluated.txt` are in the failure message of this test.
    """
    written: dict[str, list[object]] = json.loads((DATA / "evaluated.json").read_text())
    texts = (*TEXTS, *(DATA / "evaluated.txt").read_text().splitlines())
    found: dict[str, list[object]] = {}
    for start in range(0, len(texts), CHUNK):
        ours = [good(text) for text in texts[start : start + CHUNK]]
        made = rows.selectExpr(
            *(f"{recorded(e)} AS v{n}" for n, e in enumerate(ours)),
            *(f"{e.failed or 'false'} AS f{n}" for n, e in enumerate(ours)),
        ).collect()
        for n, expression in enumerate(ours):
            found[expression.text] = [False if r[f"f{n}"] else r[f"v{n}"] for r in made]
    different = {text: found[text] for text in found if found[text] != written.get(text)}
    assert not different, json.dumps(different, ensure_ascii=False)
    assert written.keys() == found.keys()


@pytest.mark.parametrize(
    ("text", "row", "value", "failed"),
    [
        ("'${row} é 😀'", 0, "${row} é 😀", False),
        ("try_element_at(xs, i)", 1, None, False),
        ("try_element_at(xs, i)", 2, None, False),
        ("element_at(xs, i)", 2, None, True),
        ("xs[i]", 2, None, True),
        ("split_part(u, ',', i)", 2, "", False),
        ("split_part(u, ',', i)", 1, None, True),
        ("split_part(u, ',', j)", 6, "", False),
        ("CAST(d AS DECIMAL(28,10))", 2, None, True),
        ("i + CAST(t AS INT)", 4, None, False),
        ("i + 1 / CAST(j - 1 AS DOUBLE)", 4, None, True),
        ("CAST(day AS TIMESTAMP)", 2, None, True),
    ],
)
def test_deliberate_differences_from_spark(
    text: str,
    row: int,
    value: object,
    failed: bool,  # noqa: FBT001 - a table
    rows: DataFrame,
) -> None:
    """Strings are literal; the least INT does not crash; NaN casts fail; all arguments count."""
    assert evaluated(rows, text, row) == (value, failed)
