"""The table of functions: allowed ones, and rejected ones with the reason.

A function is allowed when its result is a function of its arguments alone, equal on every machine,
and when it can be written so that no record makes it raise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.nearest import near
from pipeline.network import (
    functions_numbers,
    functions_text,
    functions_time,
    logic,
    safe,
)
from pipeline.network.aggregate_functions import AGGREGATES
from pipeline.network.coercion import common_type, is_orderable
from pipeline.network.function_rules import (
    Function,
    anything,
    boolean,
    checked,
    collection,
    plain,
    renamed,
    simple,
    small,
)
from pipeline.network.term import Fault, FaultError, Term
from pipeline.network.types import ArrayType, MapType, Scalar

_CLOCK = "reads the clock, so that a repeated computation would come out differently"
_CHANCE = "gives another result each time"
_ORDER = "depends on the order in which records arrive"
_MACHINE = "can differ in the last digits from one machine to another"
_USE_TIME = "use the event time column, or window_end behind an aggregate"
_ADDED = "adds floating point, whose last digits depend on the order in which records arrive"
_USE_COUNT = "use count(DISTINCT x), which is exact"

REFUSED: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("current_timestamp", "now", "current_date", "curdate", "localtimestamp", "current_time"),
        (_CLOCK, _USE_TIME),
    ),
    "unix_timestamp": (_CLOCK + " when it has no argument", "use unix_seconds(time)"),
    "rand": (_CHANCE, "use hash(…) of a column"),
    "random": (_CHANCE, "use hash(…) of a column"),
    "randn": (_CHANCE, "use hash(…) of a column"),
    "uuid": (_CHANCE, "use sha2(…) of the columns that identify the row"),
    "shuffle": (_CHANCE, "leave the array in its order"),
    "monotonically_increasing_id": (_CHANCE, "use sha2(…) of the columns that identify the row"),
    "spark_partition_id": (_CHANCE, "use hash(…) of a column"),
    "input_file_name": ("means nothing for records from Kafka", ""),
    "any_value": (_ORDER, "use first(x), which goes by event time"),
    **dict.fromkeys(
        ("collect_list", "array_agg", "collect_set", "listagg", "string_agg"),
        (_ORDER, "use first(x), last(x), min(x), max(x) or percentile(x, 0.5)"),
    ),
    "mode": (_ORDER + " when values are as frequent", "count them: a box with by: [x]"),
    "approx_count_distinct": ("counts only about", _USE_COUNT),
    **dict.fromkeys(
        ("percentile_cont", "percentile_disc"),
        ("is not supported in this form", "use percentile(x, 0.5)"),
    ),
    **dict.fromkeys(
        ("skewness", "kurtosis", "corr", "covar_pop", "covar_samp", "regr_slope"),
        (_ADDED, "compute it from count(*), sum(x), sum(y) and sum(x * y)"),
    ),
    **dict.fromkeys(
        ("row_number", "rank", "dense_rank"),
        (_ORDER, "use a box {top: STREAM, rows: 3, highest: x, window: 1m, by: […]}"),
    ),
    "ntile": (_ORDER, "use a top box, or percentile(x, 0.25) in an aggregate box"),
    **dict.fromkeys(
        ("lag", "lead"),
        (_ORDER, "join the stream with itself, or use first(x) and last(x) in an aggregate box"),
    ),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "atan2"), (_MACHINE, "")),
    "window": (
        "is no function here",
        "use a box {aggregate: STREAM, window: 1m, by: […], compute: {…}}",
    ),
    **dict.fromkeys(
        ("explode", "posexplode", "inline"), ("makes many rows of one", "use a flat_map box")
    ),
}
"""Functions of Spark that are rejected: the reason, and the alternative."""


def _if(args: Sequence[Term]) -> Term:
    when, then, otherwise = checked(args, [boolean, anything, anything])
    return logic.case([(when, then)], otherwise)


def _coalesce(args: Sequence[Term]) -> Term:
    if not args:
        raise FaultError("takes 1 argument or more, not 0")
    return logic.coalesce(args)


def _nvl(args: Sequence[Term]) -> Term:
    return logic.coalesce(checked(args, [anything, anything]))


def _nvl2(args: Sequence[Term]) -> Term:
    value, given, missing = checked(args, [anything, anything, anything])
    return logic.case([(logic.negation(logic.is_null(value)), given)], missing)


def _null_if(args: Sequence[Term]) -> Term:
    value, other = checked(args, [simple, simple])
    return logic.null_if(value, other)


def _is_null(args: Sequence[Term]) -> Term:
    return logic.is_null(checked(args, [anything])[0])


def _is_not_null(args: Sequence[Term]) -> Term:
    return logic.negation(_is_null(args))


def element_at(args: Sequence[Term]) -> Term:
    """`element_at(array, n)`, n from 1; `element_at(map, key)`."""
    value, key = checked(args, [collection, simple])
    if isinstance(value.type, MapType):
        return _map_value(value, key)
    value, key = checked(args, [collection, small])
    wide = f"CAST({key.sql} AS BIGINT)"
    outside = f"({key.sql} = 0 OR {wide} > size({value.sql}) OR {wide} < - size({value.sql}))"
    # Not try_element_at: with the least INT as index it reads outside the array and can crash.
    index = f"if({key.sql} > 0, {key.sql} - 1, size({value.sql}) + {key.sql})"
    sql = f"get({value.sql}, {index})"
    return _array_element(value, key, sql, outside)


def item(value: Term, key: Term) -> Term:
    """`array[n]`, n from 0; `map[key]`."""
    value, key = checked([value, key], [collection, simple])
    if isinstance(value.type, MapType):
        return _map_value(value, key)
    value, key = checked([value, key], [collection, small])
    outside = f"({key.sql} < 0 OR {key.sql} >= size({value.sql}))"
    return _array_element(value, key, f"get({value.sql}, {key.sql})", outside)


def _array_element(value: Term, key: Term, sql: str, outside: str) -> Term:
    if not isinstance(value.type, ArrayType):
        raise FaultError(f"needs an array, not {value.type}")
    nullable = value.type.element_nullable or value.nullable or key.nullable
    own = f"coalesce({value.sql} IS NOT NULL AND {outside}, false)"
    return safe.strict(sql, value.type.element, [value, key], own=own, nullable=nullable)


def _map_value(value: Term, key: Term) -> Term:
    if not isinstance(value.type, MapType) or key.type is not Scalar.STRING:
        raise FaultError(f"a map is asked by a text, not {key.type}")
    sql = f"try_element_at({value.sql}, {key.sql})"
    return safe.strict(sql, value.type.value, [value, key], nullable=True)


def _try_element_at(args: Sequence[Term]) -> Term:
    made = element_at(args)
    return replace(made, failed=safe.any_of(*(arg.failed for arg in args)), nullable=True)


def _array_contains(args: Sequence[Term]) -> Term:
    value, wanted = checked(args, [collection, simple])
    if not isinstance(value.type, ArrayType) or not is_orderable(value.type.element):
        raise FaultError(f"needs an array of values without parts, not {value.type}")
    element = value.type.element
    if common_type(element, wanted.type) != element:
        raise FaultError(f"looks for {wanted.type} in {value.type}", hint="CAST the value")
    wanted = safe.convert(wanted, element)
    nullable = value.nullable or wanted.nullable or value.type.element_nullable
    sql = f"array_contains({value.sql}, {wanted.sql})"
    return safe.strict(sql, Scalar.BOOLEAN, [value, wanted], nullable=nullable)


_CHOICES: tuple[Function, ...] = (
    Function("if", "if(condition, then, else)", "the common type", "one of two", _if),
    Function(
        "coalesce", "coalesce(value, …)", "the common type", "the first that is not null", _coalesce
    ),
    Function(
        "nvl", "nvl(value, other)", "the common type", "the same of two", _nvl, also=("ifnull",)
    ),
    Function(
        "nvl2",
        "nvl2(value, given, missing)",
        "the common type",
        "`given` where the value is not null, else `missing`",
        _nvl2,
    ),
    Function(
        "nullif",
        "nullif(value, other)",
        "as the value",
        "null where the two are equal, else the value",
        _null_if,
    ),
    Function("isnull", "isnull(value)", "BOOLEAN", "as `value IS NULL`", _is_null),
    Function("isnotnull", "isnotnull(value)", "BOOLEAN", "as `value IS NOT NULL`", _is_not_null),
)

_PARTS: tuple[Function, ...] = (
    Function(
        "size",
        "size(array or map)",
        "INT",
        "the number of entries",
        plain(Scalar.INT, "size({0})", collection),
        also=("cardinality",),
    ),
    Function(
        "element_at",
        "element_at(array, n) or element_at(map, key)",
        "the element's type",
        "element n, from 1, or from the end when negative; null for a key that is not there",
        element_at,
        fails="n is 0 or outside the array",
    ),
    Function(
        "try_element_at",
        "try_element_at(array, n) or try_element_at(map, key)",
        "the element's type",
        "the same, null where it fails",
        _try_element_at,
    ),
    Function(
        "array_contains",
        "array_contains(array, value)",
        "BOOLEAN",
        "whether the value is in the array",
        _array_contains,
    ),
)

SECTIONS: tuple[tuple[str, tuple[Function, ...]], ...] = (
    ("Choices", _CHOICES),
    ("Text", functions_text.TABLE),
    ("Numbers and hashes", functions_numbers.TABLE),
    ("Dates and times", functions_time.TABLE),
    ("Arrays and maps", _PARTS),
)
"""Every allowed function, by subject; the reference documentation is generated from this."""

FUNCTIONS: Mapping[str, Function] = {
    name: function
    for _, table in SECTIONS
    for row in table
    for name, function in renamed(row).items()
}
"""Every allowed function by each of its names, in lower case."""


def call(name: str, args: Sequence[Term]) -> Term:
    """A call of an existing function.

    Raises:
        FaultError: the arguments are invalid.
    """
    lower = name.lower()
    function = FUNCTIONS[lower]
    try:
        return function.rule(args)
    except FaultError as error:
        fault = error.fault
        message = f"{lower} {fault.message}"
        hint = fault.hint or f"it is written {function.signature}"
        raise FaultError(message, choices=fault.choices, hint=hint) from None


def no_function(name: str) -> Fault | None:
    """Why a name cannot be called: rejected, an aggregate, unknown; None: it can."""
    lower = name.lower()
    if lower in FUNCTIONS:
        return None
    if lower in REFUSED:
        reason, instead = REFUSED[lower]
        return Fault(f"{lower} is refused: it {reason}", hint=instead)
    if lower in AGGREGATES:
        return Fault(
            f"{lower} is an aggregate function",
            hint="it stands only in compute of an aggregate box",
        )
    close = near(lower, (*FUNCTIONS, *AGGREGATES))
    return Fault(
        f"there is no function {lower}",
        choices=close,
        hint="" if close else "docs/reference/expressions.md lists every function",
    )
