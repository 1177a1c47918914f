import pytest

from pipeline.network.boxes.flat_map import AT_MOST, FlatMap
from tests.unit.network.described import BoxOf, ErrorsOf, column_texts


def test_a_flat_map_has_the_selected_columns(box_of: BoxOf) -> None:
    """Of the record and of the element; the event time and the index of an element are columns."""
    box = box_of(
        "  b:\n    flat_map: o\n    each: {item: items}\n    at: n\n    at_most: 5\n"
        "    select: {seen: at, n: n, name: item.name, price: item.price, car: car}\n"
        "    key: [name]\n"
    )
    assert isinstance(box, FlatMap)
    assert column_texts(box) == [
        "seen TIMESTAMP NOT NULL",
        "n INT NOT NULL",
        "name STRING NOT NULL",
        "price BIGINT",
        "car STRING",
    ]
    assert (box.event_time_column, box.key) == ("seen", ("name",))
    assert (box.at, box.at_most, box.each.expression.text) == ("n", 5, "items")


def test_defaults_of_a_flat_map(box_of: BoxOf) -> None:
    """A list of columns is enough; nullable elements have nullable columns."""
    box = box_of("  b: {flat_map: o, each: {size: sizes}, select: [segment, size]}\n")
    assert isinstance(box, FlatMap)
    assert column_texts(box) == ["segment BIGINT NOT NULL", "size INT"]
    assert (box.event_time_column, box.key, box.at, box.at_most) == (None, (), None, AT_MOST)


def test_an_array_may_be_computed(box_of: BoxOf) -> None:
    """Any expression of type ARRAY."""
    box = box_of("  b: {flat_map: s, each: {word: \"split(location, '[ ,]+')\"}, select: [word]}\n")
    assert column_texts(box) == ["word STRING NOT NULL"]


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        ("flat_map: o", ["box b needs each", "box b needs select"]),
        (
            "flat_map: o, each: items, select: [car]",
            ["each of box b must be a mapping of columns"],
        ),
        (
            "flat_map: o, each: {a: items, b: sizes}, select: [car]",
            ["each of box b must name one array\n    hint: write each: {item: items}"],
        ),
        (
            "flat_map: o, each: {c: car}, select: [c]",
            [
                (
                    "each needs an array, not STRING\n"
                    "    hint: split(text, ',') makes an array of a text"
                )
            ],
        ),
        (
            "flat_map: o, each: {t: tags}, select: [t]",
            ["each needs an array, not MAP<STRING, STRING>"],
        ),
        (
            "flat_map: o, each: {CAR: items}, select: [segment]",
            ["the element is called CAR, as is a column of o\n    hint: give it another name"],
        ),
        (
            "flat_map: o, each: {x: items}, at: X, select: [segment]",
            [
                (
                    "the place of the element is called X, as is the element\n"
                    "    hint: give it another name"
                )
            ],
        ),
        (
            "flat_map: o, each: {x: items}, at: __x, select: [segment]",
            ["__x begins with __, which Medusa keeps for itself"],
        ),
        (
            "flat_map: o, each: {x: items}, at_most: 0, select: [segment]",
            ["at_most of box b must be a whole number from 1 to 100000, not '0'"],
        ),
        (
            "flat_map: o, each: {x: items}, select: {p: x.prise}",
            ["the record has no field prise (there is: price, name)"],
        ),
        ("flat_map: o, each: {x: items}, select: {}", ["select of box b names no column"]),
        (
            "flat_map: o, each: {x: explode(items)}, select: [x]",
            ["explode is refused: it makes many rows of one\n    hint: use a flat_map box"],
        ),
    ],
)
def test_errors_in_a_flat_map(lines: str, problems: list[str], errors_of: ErrorsOf) -> None:
    """One message for each, with the remedy."""
    assert errors_of(f"  b: {{{lines}}}\n") == problems
