"""Forms of columns (enums, uuids), and their propagation through boxes."""

import json
from collections.abc import Callable

import pytest

from pipeline.network.model import Network
from pipeline.network.types import EnumForm, Form, UuidForm

SIZE = {"type": "enum", "name": "Size", "namespace": "m", "symbols": ["S", "L"], "default": "S"}
LARGER = {**SIZE, "symbols": ["S", "XL"]}
SIZED = EnumForm("m.Size", ("S", "L"), "S")
ID = UuidForm()


def schema(size: object = SIZE) -> str:
    """A record with an enum, a uuid and a time."""
    fields = [
        {"name": "size", "type": size},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "n", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ]
    return json.dumps({"type": "record", "name": "Order", "namespace": "m", "fields": fields})


HEAD = """\
network: n
streams:
  s: {topic: s, schema: s.avsc, event_time: at}
  t: {topic: t, schema: t.avsc, event_time: at}
boxes:
  b: """
FormsOf = Callable[..., dict[str, Form | None]]


@pytest.fixture
def forms_of(load_text: Callable[..., Network]) -> FormsOf:
    """The forms of the string columns of the box `b`, by name; `other` is the enum of `t`."""

    def found(box: str, other: object = SIZE) -> dict[str, Form | None]:
        schemas = {"s.avsc": schema(), "t.avsc": schema(other)}
        (made,) = load_text(HEAD + box + "\n", schemas).boxes
        return {c.name: c.form for c in made.columns if str(c.type) == "STRING"}

    return found


@pytest.mark.parametrize(
    "box",
    [
        "{filter: s, where: size = 'S'}",
        "{map: s, select: [size, id]}",
        "{map: s, select: {size: (size), id: id}}",
        "{flat_map: s, each: {x: \"split(id, ',')\"}, select: [size, id]}",
        "{aggregate: s, window: 1m, by: [size, id], compute: {n: count(*)}}",
        "{top: s, window: 1m, rows: 1, highest: n, by: [size], select: [id]}",
        "{deduplicate: s, by: [id], within: 1m}",
        "{union: [s, t]}",
        "{join: {left: s, right: t, on: [n], within: 0s}, select: {size: left.size, id: right.id}}",
        "{join: {left: s, right: t, on: [size, id], within: 0s}, select: [size, id]}",
        (
            "{as_of: {left: s, right: t, on: [n], within: 1m}, "
            "select: {size: right.size, id: left.id}}"
        ),
    ],
)
def test_a_passed_column_keeps_its_form(box: str, forms_of: FormsOf) -> None:
    """Under any name, also as a group."""
    assert forms_of(box) == {"size": SIZED, "id": ID}


@pytest.mark.parametrize(
    "expression",
    [
        "CAST(size AS STRING)",
        "concat(size, '')",
        "coalesce(size, id)",
        "CASE WHEN n > 0 THEN size END",
        "upper(id)",
    ],
)
def test_a_computed_column_is_a_string(expression: str, forms_of: FormsOf) -> None:
    """It may be no symbol, whatever it is computed from."""
    assert forms_of(f'{{map: s, select: {{x: "{expression}"}}}}') == {"x": None}


def test_an_aggregate_of_an_enum_is_a_string(forms_of: FormsOf) -> None:
    """It is computed; its group is not."""
    box = "{aggregate: s, window: 1m, by: [size], compute: {last: max(id)}}"
    assert forms_of(box) == {"size": SIZED, "last": None}


def test_a_union_of_enums_of_one_name_has_all_symbols(forms_of: FormsOf) -> None:
    """So a producer of one of them can add one."""
    found = forms_of("{union: [s, t]}", LARGER)
    assert found["size"] == EnumForm("m.Size", ("S", "L", "XL"), "S")
    without = {key: value for key, value in LARGER.items() if key != "default"}
    assert forms_of("{union: [s, t]}", without)["size"] == EnumForm("m.Size", ("S", "L", "XL"))


@pytest.mark.parametrize(
    "other", [{**SIZE, "name": "Length"}, "string", {"type": "string", "logicalType": "uuid"}]
)
def test_a_union_of_other_forms_is_a_string(other: object, forms_of: FormsOf) -> None:
    """As they are all columns of one type, it is no error."""
    assert forms_of("{union: [s, t]}", other) == {"size": None, "id": ID}


def test_a_column_of_both_sides_is_a_string_where_either_may_be_missing(forms_of: FormsOf) -> None:
    """It is computed from the two."""
    box = "{join: {left: s, right: t, on: [size], within: 0s, how: full}, select: [size]}"
    assert forms_of(box) == {"size": None}
