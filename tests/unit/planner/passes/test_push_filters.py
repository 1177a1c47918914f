from dataclasses import replace

import pytest

from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.sides import How
from pipeline.network.model import Box, Network
from pipeline.planner.draft import Draft
from pipeline.planner.passes.push_filters import push_filters
from tests.unit.planner.networks import (
    OWNER,
    aggregated,
    column,
    external,
    filtered,
    joined,
    mapped,
    network,
)

ONE = external("one", column("a"), column("b"))
TWO = external("two", column("a"), column("c"))
PAIRS = joined(
    "pairs",
    ONE,
    TWO,
    (("a", "a"),),
    {"a": "`left`.`a`", "c": "`right`.`c`", "sum": "`left`.`b` + `right`.`c`"},
    (-5, 5),
)


def _pushed(*boxes: Box, outputs: tuple[str, ...] = ()) -> Network:
    return push_filters(Draft(OWNER, network((ONE, TWO), boxes, outputs))).network


def test_filter_moves_to_its_side_of_a_join() -> None:
    """A filter of columns from one side is done there; the join takes the filter's name."""
    lower, upper = _pushed(PAIRS, filtered("few", PAIRS, "`c` > 1")).boxes
    assert isinstance(lower, Filter)
    assert isinstance(upper, Join)
    assert (lower.name, lower.input, lower.where.sql) == ("few_right", "two", "`c` > 1")
    assert lower.columns == TWO.columns
    assert lower.event_time_column == "at"
    assert (upper.name, upper.left, upper.right) == ("few", "one", "few_right")


def test_readers_of_the_filter_are_unchanged() -> None:
    """They read a stream of the same name and columns."""
    few = filtered("few", PAIRS, "`c` > 1")
    after = filtered("after", few, "`sum` > 1")
    pushed = _pushed(PAIRS, few, after, outputs=("few",))
    assert [box.name for box in pushed.boxes] == ["few_right", "few", "after"]
    assert pushed.boxes[1].columns == few.columns


@pytest.mark.parametrize("where", ["`sum` > 1", "`a` > `c`"])
def test_filter_of_computed_or_mixed_columns_stays(where: str) -> None:
    """Only columns that are copied from one and the same side can be filtered there."""
    boxes = (PAIRS, filtered("few", PAIRS, where))
    assert _pushed(*boxes).boxes == boxes


@pytest.mark.parametrize(
    ("how", "where", "moves"),
    [
        (How.LEFT, "`a` > 1", True),
        (How.LEFT, "`c` > 1", False),
        (How.FULL, "`a` > 1", False),
        (How.FULL, "`c` > 1", False),
    ],
)
def test_a_filter_of_a_side_that_may_be_missing_stays(
    how: How,
    where: str,
    moves: bool,  # noqa: FBT001 - a case of the table
) -> None:
    """Below the join it would turn the rows that it removes into missing partners."""
    join = replace(PAIRS, how=how)
    boxes = (join, filtered("few", join, where))
    assert (_pushed(*boxes).boxes != boxes) == moves


def test_filter_stays_where_others_read_the_join() -> None:
    """A join that is an output or has other readers keeps all of its rows."""
    few = filtered("few", PAIRS, "`c` > 1")
    assert _pushed(PAIRS, few, outputs=("pairs",)).boxes == (PAIRS, few)
    other = filtered("other", PAIRS, "`sum` > 1")
    assert _pushed(PAIRS, few, other).boxes == (PAIRS, few, other)


def test_filter_that_can_fail_stays() -> None:
    """Below the join it would fail for rows that have no partner."""
    few = filtered("few", PAIRS, "`c` > 1")
    risky = replace(few, where=replace(few.where, failed="`c` IS NULL"))
    assert _pushed(PAIRS, risky).boxes == (PAIRS, risky)


def test_filter_of_a_group_moves_below_the_aggregate() -> None:
    """Filtered groups are not aggregated; the columns have the input's names."""
    sums = aggregated("sums", ONE, {"g": "`a`"}, {"n": ("sum", "`b`")})
    lower, upper = _pushed(sums, filtered("few", sums, "`g` > 1")).boxes
    assert isinstance(lower, Filter)
    assert isinstance(upper, Aggregate)
    assert (lower.name, lower.input, lower.where.sql) == ("few_input", "one", "`a` > 1")
    assert (upper.name, upper.input) == ("few", "few_input")


@pytest.mark.parametrize("where", ["`n` > 1", "`window_end` > 1", "`h` > 1"])
def test_filter_of_results_stays_above_the_aggregate(where: str) -> None:
    """Results, windows and computed groups do not exist before the aggregate."""
    sums = aggregated("sums", ONE, {"g": "`a`", "h": "`a` + 1"}, {"n": ("sum", "`b`")})
    few = filtered("few", sums, where)
    assert _pushed(sums, few).boxes == (sums, few)


def test_filter_moves_through_maps_to_where_it_saves_state() -> None:
    """A map between is passed, and the filter ends before the join's input."""
    renamed = mapped("renamed", PAIRS, {"x": "`c`", "y": "`sum`"})
    pushed = _pushed(PAIRS, renamed, filtered("few", renamed, "`x` > 1"))
    assert [(box.name, box.kind) for box in pushed.boxes] == [
        ("few_input_right", "filter"),
        ("few_input", "join"),
        ("few", "map"),
    ]


def test_filter_over_a_map_of_a_source_stays() -> None:
    """It would save nothing, so nothing is renamed."""
    renamed = mapped("renamed", ONE, {"x": "`a`"})
    few = filtered("few", renamed, "`x` > 1")
    assert _pushed(renamed, few).boxes == (renamed, few)
