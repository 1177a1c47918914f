import pytest

from pipeline.network.boxes.union import Union
from tests.unit.network.described import BoxOf, ErrorsOf, column_texts


def test_a_union_has_the_columns_of_its_first_stream(box_of: BoxOf) -> None:
    """In any order of the others; nullable where any of them is; times of one name pass."""
    box = box_of(
        "  one: {map: s, select: {car: car, n: segment, seen_at: seen_at}}\n"
        '  two: {map: s, select: {SEEN_AT: seen_at, N: "nullif(segment, 3)", Car: car}}\n'
        "  all: {union: [one, two]}\n"
    )
    assert isinstance(box, Union)
    assert box.inputs == ("one", "two")
    assert column_texts(box) == ["car STRING NOT NULL", "n INT", "seen_at TIMESTAMP NOT NULL"]
    assert box.event_time_column == "seen_at"
    assert box.key == ()


def test_a_union_of_other_event_times_has_no_column_for_them(box_of: BoxOf) -> None:
    """In some rows the column is the event time, in others it is not."""
    box = box_of(
        "  one: {map: s, select: {car: car, at: seen_at}}\n"
        "  two: {map: s, select: {car: car, at: seen_at + INTERVAL 1 SECOND}}\n"
        "  all: {union: [one, two], key: [car]}\n"
    )
    assert box.event_time_column is None
    assert box.key == ("car",)


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        ("  b: {union: [s]}\n", ["box b needs at least two streams"]),
        (
            "  b: {union: s}\n",
            ["union of box b must be a list\n    hint: write [s]"],
        ),
        (
            "  b: {union: [s, s]}\n",
            ["box b names s twice, so each of its rows would come twice"],
        ),
        (
            (
                "  a: {map: s, select: {car: car, n: segment}}\n"
                "  c: {map: s, select: {cat: car, n: road}}\n"
                "  b: {union: [a, c]}\n"
            ),
            [
                (
                    "c has no column car, which a has (there is: cat, n)\n    "
                    "hint: put a map box in between that gives c the same columns"
                ),
                ("n is INT in a and STRING in c\n    hint: CAST one of them in a map box"),
                (
                    "c has a column cat, which a has not\n    "
                    "hint: put a map box in between that gives c the same columns"
                ),
            ],
        ),
    ],
)
def test_errors_in_a_union(lines: str, problems: list[str], errors_of: ErrorsOf) -> None:
    """One message for each difference, with the remedy."""
    assert errors_of(lines) == problems
