"""Expressions: types, nullability, failure conditions, and error messages."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.network.expressions import check
from pipeline.network.model import Expression
from pipeline.network.scope import Scope, Source
from pipeline.network.term import Fault
from pipeline.network.types import Column, Scalar


def good(text: str, scope: Scope) -> Expression:
    """The expression of a valid text."""
    checked = check(text, scope)
    assert checked.faults == ()
    assert checked.expression is not None
    return checked.expression


def faults(text: str, scope: Scope) -> tuple[Fault, ...]:
    """The errors of an invalid text."""
    checked = check(text, scope)
    assert checked.expression is None
    return checked.faults


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("1", "INT"),
        ("3000000000", "BIGINT"),
        ("-2147483648", "INT"),
        ("1.50", "DECIMAL(3,2)"),
        ("0.05", "DECIMAL(2,2)"),
        ("1e3", "DOUBLE"),
        ("1L", "BIGINT"),
        ("1.5F", "FLOAT"),
        ("99999999999999999999", "DECIMAL(20,0)"),
        ("i + j", "INT"),
        ("i + l", "BIGINT"),
        ("i / j", "DOUBLE"),
        ("i * 1.5", "DECIMAL(13,1)"),
        ("n + 2", "DECIMAL(11,2)"),
        ("n + i", "DECIMAL(13,2)"),
        ("n * d", "DOUBLE"),
        ("f + i", "DOUBLE"),
        ("f * f", "FLOAT"),
        ("l DIV i", "BIGINT"),
        ("i > d", "BOOLEAN"),
        ("CASE WHEN b THEN 1 ELSE 2.5 END", "DECIMAL(11,1)"),
        ("coalesce(j, n, d)", "DOUBLE"),
        ("CASE WHEN b THEN xs END", "ARRAY<INT>"),
        ("coalesce(NULL, xs)", "ARRAY<INT>"),
        ("if(b, NULL, m)", "MAP<STRING, BIGINT>"),
        ("t || i", "STRING"),
        ("at + INTERVAL 5 MINUTES", "TIMESTAMP"),
        ("at - exact_at > INTERVAL 1 HOUR 30 MINUTES", "BOOLEAN"),
        ("CAST(t AS DECIMAL(5, 1))", "DECIMAL(5,1)"),
        ("ceil(n)", "DECIMAL(9,0)"),
        ("ceil(d)", "BIGINT"),
        ("r.a", "INT"),
        ("m['k']", "BIGINT"),
        ("xs[0]", "INT"),
        ("xs", "ARRAY<INT>"),
        ("greatest(i, l, n)", "DECIMAL(22,2)"),
        ("EXTRACT(YEAR FROM at)", "INT"),
    ],
)
def test_types_are_those_of_spark(text: str, data_type: str, scope: Scope) -> None:
    """The type of each form; a system test compares many more with Spark itself."""
    assert str(good(text, scope).type) == data_type


@pytest.mark.parametrize(
    "text",
    [
        "i > 3 AND t = 'x'",
        "d * 2 > 1",
        "upper(t)",
        "CASE WHEN b THEN i ELSE 0 END",
        "CAST(i AS BIGINT)",
        "CAST(l AS DECIMAL(19, 0))",
        "CAST(at AS DATE)",
        "year(at)",
        "TRY_CAST(t AS INT)",
        "try_divide(i, j)",
        "m['k']",
        "size(xs)",
        "split_part(t, ',', 2)",
    ],
)
def test_an_expression_that_cannot_fail_has_no_condition(text: str, scope: Scope) -> None:
    """No condition is evaluated for rows that cannot fail."""
    assert good(text, scope).failed is None


@pytest.mark.parametrize(
    "text",
    [
        "i + 1",
        "-i",
        "i / j",
        "i % j",
        "l DIV i",
        "abs(i)",
        "CAST(t AS INT)",
        "CAST(l AS INT)",
        "CAST(d AS BIGINT)",
        "CAST(day AS TIMESTAMP)",
        "xs[i]",
        "element_at(xs, 1)",
        "to_timestamp(t)",
        "timestamp_millis(l)",
        "split_part(t, ',', i)",
        "i > 0 AND CAST(t AS INT) > 0",
        "at + INTERVAL 1 DAY",
        "day < at",
    ],
)
def test_an_expression_that_can_fail_has_a_condition(text: str, scope: Scope) -> None:
    """Overflow, division by zero, a failed cast, an index out of range."""
    assert good(text, scope).failed


def test_a_branch_fails_only_where_it_is_taken(scope: Scope) -> None:
    """The guard of a CASE guards its failure too."""
    expression = good("CASE WHEN j <> 0 THEN i % j END", scope)
    assert expression.failed == (
        "(CASE WHEN (`j` <> 0) THEN (`j` IS NOT NULL AND try_mod(`i`, `j`) IS NULL) ELSE false END)"
    )


def test_the_right_side_of_and_fails_only_where_it_is_reached(scope: Scope) -> None:
    """The same for AND, OR and coalesce."""
    assert good("i = 0 AND CAST(t AS INT) = 1", scope).failed == (
        "(coalesce((`i` = 0), true) AND (try_cast(`t` AS INT) IS NULL))"
    )
    assert good("i = 0 OR CAST(t AS INT) = 1", scope).failed == (
        "(NOT coalesce((`i` = 0), false) AND (try_cast(`t` AS INT) IS NULL))"
    )
    assert good("coalesce(j, CAST(t AS INT))", scope).failed == (
        "(`j` IS NULL AND (try_cast(`t` AS INT) IS NULL))"
    )


def test_try_forms_catch_only_their_own_failure(scope: Scope) -> None:
    """An argument that fails still fails the row."""
    assert good("try_divide(i, j)", scope).failed is None
    assert good("TRY_CAST(CAST(t AS INT) AS BOOLEAN)", scope).failed == (
        "(try_cast(`t` AS INT) IS NULL)"
    )


@pytest.mark.parametrize(
    ("text", "nullable"),
    [
        ("i + 1", False),
        ("j + 1", True),
        ("coalesce(j, 0)", False),
        ("j IS NULL", False),
        ("j <=> 1", False),
        ("CASE WHEN b THEN 1 END", True),
        ("CASE WHEN b THEN 1 ELSE 0 END", False),
        ("ln(d)", True),
        ("TRY_CAST(t AS INT)", True),
        ("CAST(t AS INT)", False),
        ("r.a", True),
        ("nullif(i, 1)", True),
        ("greatest(i, j)", False),
        ("concat_ws(',', t, j)", False),
    ],
)
def test_nullability(text: str, nullable: bool, scope: Scope) -> None:  # noqa: FBT001 - a table
    """Except for failed evaluations: such a row is not emitted."""
    assert good(text, scope).nullable is nullable


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("at", True),
        ("exact_at", False),
        ("at + INTERVAL 1 SECOND", True),
        ("at + INTERVAL 1 MICROSECOND", False),
        ("date_trunc('hour', exact_at)", True),
        ("timestamp_millis(l)", True),
        ("timestamp_micros(l)", False),
        ("coalesce(at, exact_at)", False),
        ("CASE WHEN b THEN at END", True),
        ("TIMESTAMP '2024-01-31 12:00:00.5'", True),
        ("TIMESTAMP '2024-01-31 12:00:00.0005'", False),
        ("greatest(at, at)", True),
    ],
)
def test_whole_milliseconds_are_tracked(text: str, millis: bool, scope: Scope) -> None:  # noqa: FBT001
    """So that timestamp-millis stays timestamp-millis, and nothing else loses digits."""
    assert good(text, scope).millis is millis


def test_columns_are_those_that_are_read(scope: Scope) -> None:
    """With their own spelling, in any case."""
    expression = good("I + coalesce(J, r.a)", scope)
    assert sorted(ref.name for ref in expression.columns) == ["i", "j", "r"]
    assert good("AT", scope).plain is not None
    assert good("AT", scope).sql == "`at`"
    assert good("at + INTERVAL 1 DAY", scope).plain is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("speed", "there is no column speed"),
        ("odd", "column odd cannot be used: it holds a union of INT and STRING"),
        ("left.i", "left.i: only a join has a left side"),
        ("r.z", "the record has no field z"),
        ("i.z", "z is asked of a value that is no record but INT"),
        ("i +", "the expression does not parse at character 3, '+'"),
        ("i * 0E", "0E is no number"),
        ("i * -1eD", "-1e is no number"),
        ("i i", "the expression does not parse at character 3, 'i'"),
        ("i, j", "the expression does not parse at character 2, ','"),
        ("i; j", "needs exactly one expression, without a semicolon"),
        ("'x", "the expression does not parse: a quote or escape is wrong"),
        ("", "the expression is empty"),
        ("t = 5", "STRING and INT cannot be compared with ="),
        ("at > '2024-01-01'", "TIMESTAMP and STRING cannot be compared with >"),
        ("at > 5", "TIMESTAMP and INT cannot be compared with >"),
        ("xs = xs", "values of type ARRAY<INT> cannot be compared"),
        ("j = NULL", "a comparison with NULL is never true"),
        ("t + 1", "+ needs numbers, not STRING"),
        ("day + 1", "DATE + INT means nothing"),
        ("at + 1", "TIMESTAMP + INT means nothing"),
        ("i AND b", "the left side of AND must be a condition, not INT"),
        ("CASE WHEN i THEN 1 END", "what follows WHEN must be a condition, not INT"),
        ("CASE WHEN b THEN 1 ELSE 'x' END", "CASE mixes INT and STRING"),
        ("CAST(i AS BINARY)", "a INT cannot be cast to BINARY"),
        ("CAST(i AS SMALLINT)", "cannot cast to SMALLINT"),
        ("CAST(t AS VARCHAR(2))", "VARCHAR(n): a text has no type with a length"),
        ("t::CHAR(5)", "CHAR(n): a text has no type with a length"),
        ("coalesce(i, t)", "coalesce mixes INT and STRING"),
        ("nvl(i, t)", "nvl mixes INT and STRING"),
        ("greatest(i, t)", "greatest mixes INT and STRING"),
        ("CAST(i AS DECIMAL(50,1))", "DECIMAL(50, 1) is no type"),
        ("upper(i)", "upper needs text, not INT"),
        ("substring(t)", "substring takes 2 to 3 arguments, not 1"),
        ("pow(t, 2)", "pow argument 1 needs a number, not STRING"),
        ("uper(t)", "there is no function uper"),
        ("sum(i)", "sum is an aggregate function"),
        ("date_trunc('eon', at)", "date_trunc 'eon' is not a unit of time"),
        (
            "date_trunc(t, at)",
            "date_trunc needs argument 1 as a quoted text, so that it can be checked",
        ),
        ("t LIKE t", "LIKE needs a quoted text, so that it can be checked"),
        ("t LIKE 'a\\\\b'", "the LIKE pattern has a '\\\\' that escapes nothing"),
        ("NULL", "NULL alone has no type"),
        ("INTERVAL 1 DAY", "a length of time cannot be a column"),
        ("at + INTERVAL 1 MONTH", "INTERVAL … MONTH is refused: its length is not fixed"),
        ("TIMESTAMP 'today'", "'today' is no time"),
        ("DATE '2024-02-30'", "'2024-02-30' is no date"),
        ("1e999", "the number does not fit into DOUBLE"),
        ("'a' 'b'", "two texts side by side"),
        ("upper(x -> x)", "a function of its own (x -> …) is not supported"),
        ("i -> i + 1", "a function of its own (x -> …) is not supported"),
        ("i & 1", "operators on bits are not supported"),
        ("sum(i) OVER ()", "OVER is refused: it depends on the order of records"),
        ("(SELECT 1)", "a SELECT inside an expression is refused"),
        ("i IN (SELECT 1)", "a SELECT inside an expression is refused"),
        ("SELECT 1", "a SELECT inside an expression is refused (character 1)"),
        ("*", "* is refused: name the columns"),
        (":x", "parameters are not replaced here"),
        ("2Y", "SMALLINT and TINYINT do not exist here"),
        (
            "regexp_extract(t, 'a', 1)",
            "regexp_extract needs argument 3 as a plain number from 0 to 0",
        ),
    ],
)
def test_errors_are_named(text: str, message: str, scope: Scope) -> None:
    """One message for each kind of error."""
    found = faults(text, scope)
    assert [fault.message for fault in found][:1] == [message]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("rand()", "gives another result each time"),
        ("uuid()", "gives another result each time"),
        ("current_timestamp", "reads the clock"),
        ("current_timestamp()", "reads the clock"),
        ("now()", "reads the clock"),
        ("current_date", "reads the clock"),
        ("any_value(i)", "depends on the order"),
        ("collect_list(i)", "depends on the order"),
        ("mode(i)", "depends on the order"),
        ("corr(i, j)", "whose last digits depend on the order"),
        ("sin(d)", "can differ in the last digits"),
    ],
)
def test_nondeterministic_functions_are_refused_with_the_reason(
    text: str, reason: str, scope: Scope
) -> None:
    """A repeated computation must have the same result."""
    (fault,) = faults(text, scope)
    assert "is refused: it " in fault.message
    assert reason in fault.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("row_number()", "use a box {top: STREAM"),
        ("rank() OVER (ORDER BY at) = 1", "use a box {top: STREAM"),
        ("ntile(4) OVER (ORDER BY i)", "use a top box, or percentile(x, 0.25)"),
        ("lag(i) OVER (ORDER BY at)", "join the stream with itself"),
        ("lead(i, 1) IGNORE NULLS OVER (ORDER BY at)", "join the stream with itself"),
        ("sum(i) OVER (PARTITION BY t)", "a top box ranks the rows of a window"),
        ("shuffle(xs)", "leave the array in its order"),
        ("spark_partition_id()", "use hash(…) of a column"),
        ("transform(xs, x -> x)", "a flat_map box"),
        ("m.k", "a map is asked by m['k']"),
        ("m = d", "a map box can select a part of it, such as m['key']"),
        ("day = i", "CAST both to STRING"),
    ],
)
def test_refused_functions_name_the_alternative(text: str, hint: str, scope: Scope) -> None:
    """In any surrounding expression."""
    assert hint in faults(text, scope)[-1].hint


@pytest.mark.parametrize(
    "text", ["count(*)", "count(DISTINCT i)", "count(DISTINCT *)", "count(*) FILTER (WHERE b)"]
)
def test_an_aggregate_function_elsewhere_is_one_error(text: str, scope: Scope) -> None:
    """Its special syntax is not a second error."""
    (fault,) = faults(text, scope)
    assert fault.message == "count is an aggregate function"


def test_every_error_is_reported_once(scope: Scope) -> None:
    """Invalid parts do not hide others, and cause no errors above them."""
    found = faults("nope + upper(i) + nope + CASE WHEN i THEN missing END", scope)
    assert [fault.message for fault in found] == [
        "there is no column nope",
        "upper needs text, not INT",
        "there is no column missing",
    ]


def test_similar_names_come_first(scope: Scope) -> None:
    """The most similar name is the first of the existing ones."""
    (fault,) = faults("exact_ta", scope)
    assert fault.choices[0] == "exact_at"
    assert set(fault.choices) == {c.name for c in scope.sources[0].columns}


def test_both_sides_of_a_join() -> None:
    """A name on both sides needs its side, unless `on` makes both equal."""
    left = Source(
        (Column("a", Scalar.INT, nullable=False), Column("k", Scalar.INT, nullable=False)), "left"
    )
    right = Source(
        (Column("a", Scalar.INT, nullable=False), Column("k", Scalar.INT, nullable=False)), "right"
    )
    scope = Scope((left, right), {"k": Scope((left,)).resolve(("k",))})
    assert good("left.a + RIGHT.a", scope).sql == "try_add(`left`.`a`, `right`.`a`)"
    assert good("k", scope).sql == "`left`.`k`"
    (fault,) = faults("a", scope)
    assert (fault.message, fault.choices) == (
        "a is on both sides of the join",
        ("left.a", "right.a"),
    )
    (fault,) = faults("left.z", scope)
    assert (fault.message, fault.choices) == ("there is no column z", ("a", "k"))


def test_a_text_cannot_break_out_of_its_literal(scope: Scope) -> None:
    """Quotes, backslashes and dollars stay inside their literal."""
    assert good(r"'a\'b\\c${d}'", scope).sql == r"'a\'b\\c\u0024{d}'"
    assert good("'ä😀'", scope).sql == r"'\u00e4\U0001f600'"


def test_size_and_depth_are_bounded(scope: Scope) -> None:
    """A hostile expression costs little and is refused."""
    assert "nested more than" in faults("+".join(["i"] * 500), scope)[0].message
    assert "nested more than" in faults("(" * 2_000 + "i" + ")" * 2_000, scope)[0].message
    assert "more than 8000 characters" in faults("i" * 9_000, scope)[0].message


WORDS = (
    "i j l d n b t at xs r . , ( ) [ ] + - * / % = <> < AND OR NOT IN LIKE IS NULL CASE WHEN THEN "
    "ELSE END CAST AS INT DECIMAL INTERVAL MINUTE 1 1.5 'x' '' * :: || upper coalesce sum count "
    "DISTINCT date_trunc 'hour' BETWEEN DIV TIMESTAMP"
)


@given(
    st.lists(st.sampled_from(WORDS.split(" ")), max_size=14).map(" ".join)
    | st.text(string.printable, max_size=40)
)
def test_any_text_is_checked_or_explained(text: str) -> None:
    """No text makes checking raise, and each gives an expression or a reason, never both."""
    column = Column("i", Scalar.INT, nullable=False)
    checked = check(text, Scope((Source((column,)),)))
    assert (checked.expression is None) == bool(checked.faults)
