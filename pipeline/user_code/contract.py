"""The contract of a function's result; checked in its process, so it imports only Arrow.

The result is either one row per input row, in the same order; or, with a column `__row`, a
selection: the number of the input row of each output row. Each number occurs at most once.
"""

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

ROW: Final = "__row"
"""The column with the numbers of the kept rows."""


class ContractError(ValueError):
    """The function's result breaks the contract."""


def fitted(returned: object, given: int, wanted: pa.Schema) -> pa.RecordBatch:
    """A function's result with the declared columns in their order, and `__row` if it has one.

    Args:
        returned: the result.
        given: number of input rows.
        wanted: the declared columns.

    Raises:
        ContractError: the result breaks the contract; the message says how.
    """
    if not isinstance(returned, pa.RecordBatch):
        name = f"{type(returned).__module__}.{type(returned).__name__}"
        raise ContractError(f"it returned a {name}, not a pyarrow.RecordBatch")
    names = returned.schema.names
    _check_names(names, wanted.names)
    columns = [_column(returned.column(field.name), field) for field in wanted]
    schema = wanted
    if ROW in names:
        columns.append(_rows(returned.column(ROW), given))
        schema = wanted.append(pa.field(ROW, pa.int32(), nullable=False))
    elif returned.num_rows != given:
        raise ContractError(
            f"it returned {returned.num_rows} rows for {given}, without a column {ROW} that tells "
            "which rows they are made of"
        )
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _check_names(names: list[str], wanted: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ContractError(f"it returned two columns {name}")
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ContractError(f"it returned no column {missing[0]}, only {', '.join(names)}")
    extra = [name for name in names if name not in wanted and name != ROW]
    if extra:
        raise ContractError(f"it returned a column {extra[0]}, which is not declared")


def _column(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type != field.type:
        if not _of_one_kind(column.type, field.type):
            raise ContractError(f"column {field.name} is {column.type}, not {field.type}")
        try:
            column = column.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ContractError(f"column {field.name}: {error}") from error
    missing = _null_inside(column, field)
    if missing:
        raise ContractError(f"{missing} is null, and declared NOT NULL")
    return column


def _of_one_kind(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether two types differ only in precision.

    A value that then does not fit is an error; it is not changed.
    """
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_null(found) or found == wanted:
        return True
    parts_of = next((parts for of, parts in _WITH_PARTS if of(found) and of(wanted)), None)
    if parts_of is None:
        return any(kind(found) and kind(wanted) for kind in _KINDS)
    ours, theirs = parts_of(found), parts_of(wanted)
    return [name for name, _ in ours] == [name for name, _ in theirs] and all(
        _of_one_kind(our, their) for (_, our), (_, their) in zip(ours, theirs, strict=True)
    )


def _is_list(found: pa.DataType) -> bool:
    return pa.types.is_list(found) or pa.types.is_large_list(found)


def _is_time(found: pa.DataType) -> bool:
    return pa.types.is_timestamp(found) and found.tz is not None


def _is_text(found: pa.DataType) -> bool:
    return (
        pa.types.is_string(found)
        or pa.types.is_large_string(found)
        or pa.types.is_string_view(found)
    )


def _is_bytes(found: pa.DataType) -> bool:
    return (
        pa.types.is_binary(found)
        or pa.types.is_large_binary(found)
        or pa.types.is_binary_view(found)
        or pa.types.is_fixed_size_binary(found)
    )


_Is = Callable[[pa.DataType], bool]
_Parts = Callable[[pa.DataType], list[tuple[str, pa.DataType]]]
_WITH_PARTS: Final[tuple[tuple[_Is, _Parts], ...]] = (
    (_is_list, lambda of: [("", of.value_type)]),
    (pa.types.is_map, lambda of: [("", of.key_type), ("", of.item_type)]),
    (pa.types.is_struct, lambda of: [(part.name, part.type) for part in of]),
)
_KINDS: Final[tuple[_Is, ...]] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    _is_time,
    _is_text,
    _is_bytes,
)


def _null_inside(column: pa.Array, field: pa.Field) -> str:
    """The path of a null that is not allowed; empty if there is none."""
    if column.null_count and not field.nullable:
        return f"column {field.name}" if "." not in field.name else field.name
    column = column.drop_null() if column.null_count else column
    if pa.types.is_struct(field.type):
        inner = [(column.field(part.name), part) for part in field.type]
    elif pa.types.is_list(field.type):
        inner = [(column.flatten(), field.type.value_field)]
    elif pa.types.is_map(field.type):
        # Copied, since for a slice of a column Arrow returns the items of the whole.
        inner = [(column.take(pa.array(range(len(column)))).items, field.type.item_field)]
    else:
        return ""
    for values, part in inner:
        named = part.with_name(f"{field.name}.{part.name}")
        if found := _null_inside(values, named):
            return found
    return ""


def _rows(column: pa.Array, given: int) -> pa.Array:
    """The row numbers, each once, in order."""
    nothing = len(column) == 0
    if not pa.types.is_integer(column.type) and not (nothing and pa.types.is_null(column.type)):
        raise ContractError(f"{ROW} is {column.type}, not whole numbers")
    if nothing:
        return pa.array([], pa.int32())
    if column.null_count:
        raise ContractError(f"{ROW} is null")
    least, most = pc.min_max(column).as_py().values()
    if least < 0 or most >= given:
        raise ContractError(f"{ROW} is {least if least < 0 else most}, of {given} rows from 0 on")
    rows = column.cast(pa.int32())
    if len(rows) > 1 and not pc.all(pc.greater(rows[1:], rows[:-1])).as_py():
        raise ContractError(f"{ROW} does not rise: each row is named at most once, in its order")
    return rows
