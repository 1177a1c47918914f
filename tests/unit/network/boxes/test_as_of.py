import pytest

from pipeline.network.boxes.as_of import AsOf
from pipeline.network.boxes.sides import How
from tests.unit.network.described import BoxOf, ErrorsOf


def test_a_result_has_the_time_of_its_left_row_and_the_compared_key(box_of: BoxOf) -> None:
    """Names of columns are case-insensitive."""
    box = box_of(
        "  d: {as_of: {left: s, right: s, on: [CAR], within: 30d}, select: [car, left.seen_at]}\n"
    )
    assert isinstance(box, AsOf)
    assert (box.on, box.within_ms, box.how) == ((("car", "car"),), 30 * 86_400_000, How.INNER)
    assert box.event_time_column == "seen_at"
    assert box.key == ("car",)


def test_without_select_all_columns_of_both_sides_are_included(box_of: BoxOf) -> None:
    """Compared ones once; those of a missing version are null."""
    box = box_of(
        "  a: {map: s, select: {vehicle: car, limit: speed}}\n"
        "  d: {as_of: {left: s, right: a, on: {car: vehicle}, within: 0s, how: left}}\n"
    )
    assert isinstance(box, AsOf)
    assert [column.name for column in box.columns][-2:] == ["seen_at", "limit"]
    assert (box.columns[-1].nullable, box.within_ms, box.how) == (True, 0, How.LEFT)


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        (
            "  d: {as_of: {left: s, right: s, on: [car]}, select: [left.car]}\n",
            [
                (
                    "as_of of box d needs within: how old what the table says may be\n"
                    "    hint: write within: 30d; a key of which nothing was said for so long is "
                    "forgotten"
                )
            ],
        ),
        (
            "  d: {as_of: s, within: 5m}\n",
            [
                "as_of of box d must be a mapping",
                (
                    "box d has no key within "
                    "(there is: key, select, as_of, dead_letters, pace, state_limit, placement, "
                    "reliability, priority, availability)"
                ),
            ],
        ),
        (
            "  d: {as_of: {left: s, on: [car], within: 5m}, select: [left.car]}\n",
            ["as_of of box d needs right"],
        ),
        (
            "  d: {as_of: {left: s, right: s, within: 5m}, select: [left.car]}\n",
            ["as_of of box d needs on"],
        ),
        (
            "  d: {as_of: {left: s, right: s, on: {car: speed}, within: 5m}, select: [left.car]}\n",
            [
                (
                    "on compares s.car, STRING, with s.speed, DOUBLE\n"
                    "    hint: CAST one of them in a map box"
                )
            ],
        ),
        (
            "  d: {as_of: {left: s, right: s, on: [car, car], within: 5m}, select: [left.car]}\n",
            ["on has car twice"],
        ),
        (
            "  d: {as_of: {left: s, right: s, on: [cra], within: 5m}, select: [left.car]}\n",
            [
                (
                    "on names cra, which is no column of s (there is: car, kind, road, segment, "
                    "speed, location, seen_at)"
                )
            ],
        ),
        (
            "  d: {as_of: {left: s, right: s, on: [car], within: 5m, how: full}}\n",
            ["there is no as_of with how: full (there is: inner, left)"],
        ),
        (
            "  d: {as_of: {left: s, right: s, on: [car], within: 5m, how: right}}\n",
            [
                (
                    "there is no as_of with how: right\n"
                    "    hint: write how: left, and let left and right change places"
                )
            ],
        ),
        (
            "  d: {as_of: {left: s, right: s, on: [car], within: soon}, select: [left.car]}\n",
            [
                (
                    "within of as_of of box d: 'soon' is not a duration: write a whole number "
                    "and ms, s, m, h or d"
                )
            ],
        ),
        (
            "  d: {as_of: {left: s, right: s, on: [car], within: 5m}, select: [speed]}\n",
            ["speed is on both sides of the join (there is: left.speed, right.speed)"],
        ),
    ],
)
def test_errors_in_an_as_of_join(lines: str, problems: list[str], errors_of: ErrorsOf) -> None:
    """One message for each, with the remedy."""
    assert errors_of(lines) == problems
