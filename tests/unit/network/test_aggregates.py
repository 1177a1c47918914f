"""Calls of aggregate functions: their aggregations, results and errors."""

import pytest

from pipeline.network.aggregate_functions import AGGREGATES
from pipeline.network.aggregates import Aggregation, Collector
from pipeline.network.expressions import Checked, check, check_with
from pipeline.network.model import NOWHERE, ColumnRef
from pipeline.network.scope import Scope

EXACT = "try_cast(`d` AS DECIMAL(28,10))"
POSITIVE = "(`i` > 0)"


def checked(text: str, scope: Scope) -> tuple[Checked, list[Aggregation]]:
    """A text of `compute`, and the aggregations in it."""
    collector = Collector(scope)
    found = check_with(text, collector.walk(Scope(()), NOWHERE))
    return found, collector.found


@pytest.mark.parametrize(
    ("text", "function", "argument", "data_type", "nullable"),
    [
        ("stddev(d)", "stddev_samp", EXACT, "DOUBLE", True),
        ("std(d)", "stddev_samp", EXACT, "DOUBLE", True),
        ("variance(i)", "var_samp", "CAST(`i` AS DECIMAL(20,0))", "DOUBLE", True),
        ("stddev_pop(d)", "stddev_pop", EXACT, "DOUBLE", False),
        ("var_pop(n)", "var_pop", "`n`", "DOUBLE", False),
        ("var_pop(j)", "var_pop", "CAST(`j` AS DECIMAL(20,0))", "DOUBLE", True),
        (
            "min(d)",
            "min",
            "nanvl(`d` + CAST('0' AS DOUBLE), CAST('NaN' AS DOUBLE))",
            "DOUBLE",
            False,
        ),
        ("max(f)", "max", "nanvl(`f` + CAST('0' AS FLOAT), CAST('NaN' AS FLOAT))", "FLOAT", False),
        ("every(b)", "min", "`b`", "BOOLEAN", True),
        ("bool_or(i > 0)", "max", POSITIVE, "BOOLEAN", False),
        ("first(t)", "first", "`t`", "STRING", False),
        ("last_value(xs)", "last", "`xs`", "ARRAY<INT>", False),
        ("first(j)", "first", "`j`", "INT", True),
        (
            "last(t) FILTER (WHERE i > 0)",
            "last",
            f"(CASE WHEN {POSITIVE} THEN `t` ELSE CAST(NULL AS STRING) END)",
            "STRING",
            True,
        ),
    ],
)
def test_aggregations_of_calls(
    text: str,
    function: str,
    argument: str,
    data_type: str,
    nullable: bool,  # noqa: FBT001 - a table
    scope: Scope,
) -> None:
    """Added values are exact, compared ones have one form, taken ones are unchanged."""
    _, (found,) = checked(text, scope)
    assert found.argument is not None
    call = (found.function, found.argument.sql, str(found.type), found.nullable)
    assert call == (function, argument, data_type, nullable)


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("min_by(t, i)", "`i`"),
        ("max_by(m, f)", "nanvl(`f` + CAST('0' AS FLOAT), CAST('NaN' AS FLOAT))"),
        (
            "max_by(t, i) FILTER (WHERE i > 0)",
            f"(CASE WHEN {POSITIVE} THEN `i` ELSE CAST(NULL AS INT) END)",
        ),
    ],
)
def test_filters_of_compared_values(text: str, by: str, scope: Scope) -> None:
    """FILTER excludes a row by its compared value: the taken value may be null."""
    _, (found,) = checked(text, scope)
    assert found.by is not None
    assert found.by.sql == by


def test_both_arguments_are_read(scope: Scope) -> None:
    """The planner needs the columns that are read."""
    _, (found,) = checked("max_by(t, i)", scope)
    assert [e.columns for e in found.reads] == [{ColumnRef("t")}, {ColumnRef("i")}]
    _, (rows,) = checked("count(*)", scope)
    assert rows.reads == ()


@pytest.mark.parametrize(
    ("text", "function", "parameters"),
    [
        ("percentile(i, 0.95)", "percentile", ("0.95",)),
        ("percentile(d, 1)", "percentile", ("1",)),
        ("percentile(d, 5e-1)", "percentile", ("0.5",)),
        ("median(n)", "percentile", ("0.5",)),
        ("approx_percentile(d, 0.90)", "approx_percentile", ("0.9", "0.01")),
        ("percentile_approx(l, 0, 0.001)", "approx_percentile", ("0", "0.001")),
    ],
)
def test_percentiles(text: str, function: str, parameters: tuple[str, ...], scope: Scope) -> None:
    """Share and error are literals, in one form; the result is a DOUBLE."""
    found, (aggregation,) = checked(text, scope)
    assert found.expression is not None
    assert (aggregation.function, aggregation.parameters) == (function, parameters)
    assert str(aggregation.type) == "DOUBLE"


@pytest.mark.parametrize(
    ("text", "added", "result"),
    [
        ("sum(n)", "DECIMAL(10,2)", "DECIMAL(20,2)"),
        ("sum(CAST(n AS DECIMAL(28,20)))", "DECIMAL(28,20)", "DECIMAL(38,20)"),
        ("sum(n * l)", "DECIMAL(28,2)", "DECIMAL(38,2)"),
        ("sum(CAST(n AS DECIMAL(38,18)))", "DECIMAL(28,14)", "DECIMAL(38,14)"),
        ("avg(CAST(n AS DECIMAL(38,18)))", "DECIMAL(28,14)", "DOUBLE"),
        ("stddev(CAST(n AS DECIMAL(38,18)))", "DECIMAL(28,14)", "DOUBLE"),
        ("stddev(CAST(n AS DECIMAL(20,15)))", "DECIMAL(28,14)", "DOUBLE"),
        ("stddev(CAST(n AS DECIMAL(30,2)))", "DECIMAL(28,2)", "DOUBLE"),
    ],
)
def test_decimals_are_added_with_room_for_ten_billion(
    text: str, added: str, result: str, scope: Scope
) -> None:
    """So no order of rows overflows; a result that does not fit fails its row."""
    _, (found,) = checked(text, scope)
    assert found.argument is not None
    assert (str(found.argument.type), str(found.type)) == (added, result)


def test_equal_calls_are_computed_once_and_others_are_distinct(scope: Scope) -> None:
    """By function, both arguments and the literals behind them."""
    text = "median(i) + percentile(i, 0.50) + percentile(i, 0.6) + min_by(i, d) + min_by(i, l)"
    _, found = checked(text, scope)
    assert [a.name for a in found] == ["__agg0", "__agg1", "__agg2", "__agg3"]


def test_a_time_keeps_its_whole_milliseconds(scope: Scope) -> None:
    """Where the taken value is one."""
    for text, millis in (("first(at)", True), ("max_by(at, i)", True), ("last(exact_at)", False)):
        found, _ = checked(text, scope)
        assert found.expression is not None
        assert found.expression.millis is millis, text


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("stddev(t)", "stddev needs numbers, not STRING", ""),
        ("percentile(t, 0.5)", "percentile needs numbers, not STRING", ""),
        ("percentile(i, 1.5)", "needs as its share a literal number from 0 to 1", "median"),
        ("percentile(i, d)", "needs as its share a literal number from 0 to 1", "median"),
        ("percentile(i, TRUE)", "needs as its share a literal number from 0 to 1", "median"),
        ("percentile(i)", "percentile takes 2 arguments, not 1", "percentile(x, 0.95)"),
        ("approx_percentile(i, 0.5, 10000)", "a literal number from 0.001 to 0.1", "within 1%"),
        ("approx_percentile(i)", "takes 2 or 3 arguments, not 1", "approx_percentile(x, 0.95"),
        ("min_by(i)", "min_by takes 2 arguments, not 1", "min_by(x, y)"),
        ("max_by(i, xs)", "max_by cannot compare values of type ARRAY<INT>", ""),
        ("every(i)", "every needs a condition, not INT", "compare it"),
        ("first(NULL)", "first of VOID means nothing", ""),
        ("first(DISTINCT i)", "first(DISTINCT …) is not supported", ""),
        ("last(first(i))", "first stands inside another aggregate function", "two boxes"),
        ("any_value(i)", "any_value is refused: it depends on the order", "first(x)"),
        ("collect_list(i)", "collect_list is refused: it depends on the order", "percentile"),
        ("corr(i, j)", "corr is refused: it adds floating point", "sum(x * y)"),
        ("percentile_disc(i, 0.5)", "percentile_disc is refused", "percentile(x, 0.5)"),
        (
            "percentile_cont(0.5) WITHIN GROUP (ORDER BY i)",
            "percentile_cont is refused",
            "percentile(x, 0.5)",
        ),
        (
            "listagg(t) WITHIN GROUP (ORDER BY i) FILTER (WHERE b)",
            "listagg is refused: it depends on the order",
            "use first(x)",
        ),
        ("median(i) WITHIN GROUP (ORDER BY i)", "WITHIN GROUP is not supported", "median(x)"),
        ("first(i) IGNORE NULLS", "every aggregate function passes over nulls", "leave it out"),
        ("last(i IGNORE NULLS)", "every aggregate function passes over nulls", "leave it out"),
        ("last(i) FILTER (WHERE b) IGNORE NULLS", "IGNORE NULLS is not written", "leave it out"),
        ("median(i) WITHIN GROUP (ORDER BY i) FILTER (WHERE b)", "WITHIN GROUP is", "median(x)"),
        ("first(i) RESPECT NULLS", "RESPECT NULLS is not supported", "coalesce"),
        ("first(i ORDER BY at)", "ORDER BY inside a function is not supported", "min_by(x, y)"),
        ("sum(i) FILTER (WHERE i)", "what follows WHERE must be a condition, not INT", "compare"),
        ("count(DISTINCT *)", "count(DISTINCT *) is not supported: name the column", "DISTINCT x"),
        ("sum(*)", "sum(*) is not supported: name the column", "sum(x)"),
    ],
)
def test_refused_calls_name_the_alternative(
    text: str, message: str, hint: str, scope: Scope
) -> None:
    """With the function's name as it was written."""
    found, _ = checked(text, scope)
    (fault,) = found.faults
    assert message in fault.message
    assert hint in fault.hint


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate_functions_are_refused_elsewhere(name: str, scope: Scope) -> None:
    """The message contains where it is allowed."""
    (fault,) = check(f"{name}(i)", scope).faults
    assert (fault.message, fault.hint) == (
        f"{name} is an aggregate function",
        "it stands only in compute of an aggregate box",
    )
