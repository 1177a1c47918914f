"""Outer joins; the features of all joins are in `test_boxes.py`."""

import pytest

from pipeline.network.boxes.join import Join
from pipeline.network.boxes.sides import How
from tests.unit.network.described import BoxOf, ErrorsOf, column_texts


def test_a_left_join_has_nulls_on_its_right(box_of: BoxOf) -> None:
    """Selected columns of the left are unchanged; `on` without a side is the left one's."""
    box = box_of(
        "  j:\n    join: {left: s, right: s, on: [car], within: 5m, how: left}\n"
        "    select: {car: car, was: left.seen_at, other: right.car, sum: left.segment + 1}\n"
    )
    assert isinstance(box, Join)
    assert box.how is How.LEFT
    assert column_texts(box) == [
        "car STRING NOT NULL",
        "was TIMESTAMP NOT NULL",
        "other STRING",
        "sum INT NOT NULL",
    ]
    assert box.key == ("car",)
    assert box.select[0].expression.sql == "`left`.`car`"


def test_a_full_join_has_the_compared_columns_of_the_present_side(
    box_of: BoxOf,
) -> None:
    """Written without a side; a named side can be null."""
    box = box_of(
        "  j:\n    join: {left: s, right: s, on: [car], within: 5m, how: full}\n"
        "    select: {one: left.car, car: car, road: left.road}\n"
    )
    assert column_texts(box) == ["one STRING", "car STRING NOT NULL", "road STRING"]
    assert box.key == ("car",)


def test_a_full_join_without_select_has_each_column_of_on_once(box_of: BoxOf) -> None:
    """Under its left name, whole numbers of both sizes as the larger one."""
    box = box_of(
        "  a: {map: s, select: {car: car, n: segment, was: seen_at}}\n"
        "  b: {map: o, select: {m: segment, at: at}}\n"
        "  j: {join: {left: a, right: b, on: {n: m}, within: 5m, how: full}}\n"
    )
    assert column_texts(box) == ["car STRING", "n BIGINT NOT NULL", "was TIMESTAMP", "at TIMESTAMP"]
    assert box.key == ("n",)


@pytest.mark.parametrize(
    ("how", "within", "selected", "found"),
    [
        ("left", "{after: 5m}", "left.seen_at", "x"),
        ("left", "{before: 5m}", "right.seen_at", None),
        ("left", "0s", "right.seen_at", None),
        ("full", "{after: 5m}", "left.seen_at", None),
        ("full", "0s", "left.seen_at", None),
        ("full", "0s", "coalesce(left.seen_at, right.seen_at)", None),
    ],
)
def test_the_event_time_is_a_column_where_every_result_has_it_there(
    box_of: BoxOf, how: str, within: str, selected: str, found: str | None
) -> None:
    """A row without a partner has its own; the other side's column is null in it."""
    box = box_of(
        f"  j:\n    join: {{left: s, right: s, on: [car], within: {within}, how: {how}}}\n"
        f'    select: {{x: "{selected}"}}\n'
    )
    assert box.event_time_column == found


def test_a_full_join_on_the_event_times_has_them_as_a_column(box_of: BoxOf) -> None:
    """On either side: the ends of two equal windows, for example."""
    box = box_of(
        "  j:\n    join: {left: s, right: s, on: [car, seen_at], how: full}\n"
        "    select: {x: seen_at}\n"
    )
    assert box.event_time_column == "x"


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        (
            "right",
            (
                "there is no join with how: right\n"
                "    hint: write how: left, and let left and right change places"
            ),
        ),
        ("outer", "there is no join with how: outer (there is: inner, left, full)"),
        ("[left]", "how of join of box j must be one value, not a list"),
    ],
)
def test_other_joins_are_refused(errors_of: ErrorsOf, how: str, problem: str) -> None:
    """With the alternatives."""
    lines = (
        f"  j: {{join: {{left: s, right: s, on: [car], within: 5m, how: {how}}}, select: [car]}}\n"
    )
    assert errors_of(lines) == [problem]


@pytest.mark.parametrize(
    ("on", "problem"),
    [
        ("[car, road, CAR]", "on has CAR twice"),
        ("{car: car, Car: CAR}", "on has Car twice"),
        ("{car: road, Car: ROAD}", "on has Car = ROAD twice"),
    ],
)
def test_compared_columns_are_unique_in_on(errors_of: ErrorsOf, on: str, problem: str) -> None:
    """Case-insensitive, as in `by` and `key`."""
    lines = f"  j: {{join: {{left: s, right: s, on: {on}, within: 5m}}, select: [left.car]}}\n"
    assert errors_of(lines) == [problem]


@pytest.mark.parametrize(
    ("on", "key"), [("{car: road, road: road}", ("x", "y")), ("{car: car, Car: road}", ("x",))]
)
def test_a_column_may_be_compared_with_several(
    box_of: BoxOf, on: str, key: tuple[str, ...]
) -> None:
    """Those are other pairs; a selected one is in the key once."""
    box = box_of(
        f"  j:\n    join: {{left: s, right: s, on: {on}, within: 5m}}\n"
        "    select: {x: left.car, y: left.road}\n"
    )
    assert box.key == key


@pytest.mark.parametrize(
    ("on", "hint"),
    [
        ("{car: segment}", "CAST one of them in a map box"),
        ("{speed: tags}", "a map box can select a part of it, such as m['key'] of a map"),
    ],
)
def test_a_hint_names_only_existing_casts(on: str, hint: str, errors_of: ErrorsOf) -> None:
    """A value with parts is never cast."""
    (found,) = errors_of(
        f"  j: {{join: {{left: s, right: o, on: {on}, within: 5m}}, select: [left.car]}}\n"
    )
    assert found.startswith("on compares s.")
    assert found.endswith(f"hint: {hint}")
