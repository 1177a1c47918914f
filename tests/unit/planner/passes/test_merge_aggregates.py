from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.sides import How
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.network.model import Box, Network
from pipeline.planner.draft import Draft
from pipeline.planner.passes.merge_aggregates import merge_aggregates
from tests.unit.planner.networks import (
    MINUTE,
    OWNER,
    aggregated,
    column,
    external,
    joined,
    network,
    tolls,
)

SOURCE = external("s", column("a"), column("b"))
WINDOW_END = ("window_end", "window_end")


def _merged(wanted: Network) -> Network:
    return merge_aggregates(Draft(OWNER, wanted)).network


def _box(of: Network, name: str) -> Box:
    return next(box for box in of.boxes if box.name == name)


def _twins(
    change: Callable[[Aggregate], Aggregate] = lambda right: right,
    *,
    on: tuple[tuple[str, str], ...] = (("g", "g"), WINDOW_END),
    bound: tuple[int, int] = (0, 0),
    nullable: bool = False,
) -> Network:
    left = aggregated("left_n", SOURCE, {"g": "`a`"}, {"n": ("sum", "`a`")}, nullable=nullable)
    right = change(
        aggregated("right_n", SOURCE, {"g": "`a`"}, {"n": ("sum", "`b`")}, nullable=nullable)
    )
    select = {"left_n": "`left`.`n`", "right_n": "`right`.`n`", "of": "`right`.`g`"}
    return network((SOURCE,), (left, right, joined("both", left, right, on, select, bound)))


def test_tolls_become_one_aggregate_and_a_map() -> None:
    """The join of average speed and traffic volume is removed; its select is kept as a map."""
    merged = _merged(tolls())
    assert [box.name for box in merged.boxes][:2] == ["tolls_windows", "tolls"]
    windows, selected = _box(merged, "tolls_windows"), _box(merged, "tolls")
    assert isinstance(windows, Aggregate)
    assert isinstance(selected, Map)
    names = [column.name for column in windows.columns]
    assert names == ["road", "segment", "window_start", "window_end", "speed", "cars"]
    assert [a.function for a in windows.aggregations] == ["avg", "count_distinct"]
    assert selected.select[3].expression.sql == "`cars` - `speed`"
    assert selected.columns == _box(tolls(), "tolls").columns
    assert selected.key == ("road", "segment")
    assert selected.event_time_column == "minute"


def test_equal_names_on_both_sides_are_kept_distinct() -> None:
    """Placeholders and results of the right aggregate get other names where they clash."""
    merged = _merged(_twins())
    windows, selected = _box(merged, "both_windows"), _box(merged, "both")
    assert isinstance(windows, Aggregate)
    assert isinstance(selected, Map)
    assert [a.name for a in windows.aggregations] == ["agg_0", "agg_0_2"]
    assert [(c.name, c.expression.sql) for c in windows.compute] == [
        ("n", "`agg_0`"),
        ("n_2", "`agg_0_2`"),
    ]
    assert [c.expression.sql for c in selected.select] == ["`n`", "`n_2`", "`g`"]


def test_same_aggregation_is_computed_once() -> None:
    """An aggregation of both aggregates is computed once and used twice."""
    merged = _merged(
        _twins(
            lambda right: replace(
                right,
                aggregations=aggregated("x", SOURCE, {}, {"n": ("sum", "`a`")}).aggregations,
            )
        )
    )
    windows = _box(merged, "both_windows")
    assert isinstance(windows, Aggregate)
    assert len(windows.aggregations) == 1
    assert {c.expression.sql for c in windows.compute} == {"`agg_0`"}


def test_rows_that_the_join_would_not_pair_are_filtered() -> None:
    """A null in a group column matches nothing, so such rows do not reach the aggregate."""
    merged = _merged(tolls(nullable=True))
    keyed, windows = _box(merged, "tolls_keyed"), _box(merged, "tolls_windows")
    assert isinstance(keyed, Filter)
    assert keyed.where.sql == "(`road`) IS NOT NULL AND (`segment`) IS NOT NULL"
    assert windows.inputs == ("tolls_keyed",)


def test_names_in_use_are_not_used() -> None:
    """The planner's own boxes never take the name of a user's box."""
    wanted = tolls()
    taken = aggregated("tolls_windows", wanted.streams[0], {}, {"n": ("sum", "`segment`")})
    merged = _merged(replace(wanted, boxes=(*wanted.boxes, taken)))
    assert isinstance(_box(merged, "tolls_windows_2"), Aggregate)
    assert _box(merged, "tolls_windows") == taken


def test_window_may_be_matched_by_the_bound_alone() -> None:
    """A bound shorter than the window pairs each window only with itself."""
    pairs = (("g", "g"),)
    assert len(_merged(_twins(on=pairs, bound=(1 - MINUTE, MINUTE - 1))).boxes) == 2
    assert len(_merged(_twins(on=pairs, bound=(0, MINUTE))).boxes) == 3


@pytest.mark.parametrize(
    "wanted",
    [
        _twins(lambda right: replace(right, window=TumblingWindow(2 * MINUTE, 0))),
        _twins(lambda right: replace(right, window=TumblingWindow(MINUTE, 1))),
        _twins(lambda right: replace(right, by=())),
        _twins(on=(WINDOW_END,)),
        _twins(on=(("g", "n"), WINDOW_END)),
        _twins(on=(("g", "g"), ("n", "n"), WINDOW_END)),
        _twins(bound=(1, 5)),
        _twins(bound=(-5, -1)),
    ],
    ids=["size", "offset", "groups", "no group", "other column", "more", "later", "earlier"],
)
def test_joins_with_other_semantics_are_unchanged(wanted: Network) -> None:
    """Other windows, other groups or another pairing are not merged."""
    assert _merged(wanted) == wanted


@pytest.mark.parametrize("how", [How.LEFT, How.FULL])
def test_a_join_with_unmatched_rows_is_unchanged(how: How) -> None:
    """The aggregates differ in what they omit: a group of nulls is in neither pair."""
    twins = _twins()
    *others, join = twins.boxes
    assert isinstance(join, Join)
    wanted = replace(twins, boxes=(*others, replace(join, how=how)))
    assert _merged(wanted) == wanted


def test_aggregates_with_other_readers_are_unchanged() -> None:
    """They read the same average that the toll was computed from."""
    as_output = tolls(outputs=("average_speed",))
    assert _merged(as_output) == as_output
    wanted = tolls()
    reader = joined(
        "reader", wanted.boxes[1], wanted.streams[0], (("road", "road"),), {"x": "`left`.`cars`"}
    )
    read = replace(wanted, boxes=(*wanted.boxes, reader))
    assert _merged(read) == read


def test_merging_adds_a_note() -> None:
    """The plan contains which boxes are computed together and why."""
    (note,) = merge_aggregates(Draft(OWNER, tolls())).notes
    assert note.startswith("average_speed and traffic_volume are computed together")
