"""Where a topic keeps records from being judged in part, or in several places."""

from dataclasses import replace

import pytest

from pipeline.network.boxes.filter import Filter
from pipeline.network.model import Box
from pipeline.planner.plan import Plan
from pipeline.planner.planner import plan
from tests.unit.planner.networks import (
    OWNER,
    aggregated,
    column,
    expression,
    external,
    failing,
    filtered,
    flat_mapped,
    joined,
    mapped,
    network,
    routed,
    united,
)

ORDERS = external("orders", column("a"), column("xs"))
ITEMS = flat_mapped("items", ORDERS, "`xs`", {"x": "`item`", "a": "`a`"})


def planned(*boxes: Box) -> Plan:
    """The plan of some boxes over one stream."""
    return plan(network((ORDERS,), boxes), OWNER)


def fragments(*boxes: Box) -> dict[str, list[str]]:
    """The boxes of each fragment."""
    return {str(f.name): [str(box.name) for box in f.boxes] for f in planned(*boxes).fragments}


def fails(box: Filter) -> Filter:
    """A filter that can fail."""
    return replace(box, where=failing(box.where))


SUMS = aggregated("sums", ITEMS, {"x": "`x`"}, {"n": ("sum", "`a`")})
BY_FAILING = replace(SUMS, by=(replace(SUMS.by[0], expression=failing(expression("`x`"))),))
OF_FAILING = replace(
    SUMS, aggregations=(replace(SUMS.aggregations[0], argument=failing(expression("`a`"))),)
)
THEN_FAILING = replace(
    SUMS, compute=(replace(SUMS.compute[0], expression=failing(expression("`agg_0`"))),)
)
BIG = filtered("big", ITEMS, "`x` > 1")


@pytest.mark.parametrize(
    "behind",
    [
        (SUMS,),
        (THEN_FAILING,),
        (BIG,),
        (BIG, mapped("last", BIG, {"x": "`x`"})),
        (joined("pairs", ITEMS, ORDERS, (("x", "a"),), {"x": "`left`.`x`"}),),
    ],
)
def test_rows_of_a_record_stay_inside_where_nothing_can_fail_for_one_of_them(
    behind: tuple[Box, ...],
) -> None:
    """What is computed of results counts for nothing: no record stands for those."""
    last = behind[-1].name
    assert fragments(ITEMS, *behind) == {last: ["items", *(box.name for box in behind)]}


@pytest.mark.parametrize(
    "behind",
    [
        (fails(BIG),),
        (BY_FAILING,),
        (OF_FAILING,),
        (BIG, fails(filtered("last", BIG, "`x` > 2"))),
        (flat_mapped("again", ITEMS, "`x`", {"y": "`item`"}),),
        (united("all", ITEMS, BIG), BIG, fails(filtered("last", united("all", ITEMS), "`x` > 2"))),
    ],
)
def test_rows_of_a_record_become_records_where_something_can_fail(behind: tuple[Box, ...]) -> None:
    """The flat_map ends a fragment, and the plan says why."""
    found = planned(ITEMS, *behind)
    assert [box.name for box in found.fragments[0].boxes] == ["items"]
    (note,) = (note for note in found.notes if note.startswith("items is written to a topic: "))
    assert note.endswith("can fail for some rows of a record")


def test_a_topic_behind_keeps_what_is_further_behind_apart() -> None:
    """Rows that come to a topic are records from there on."""
    last = fails(filtered("last", BIG, "`x` > 2"))
    found = plan(network((ORDERS,), (ITEMS, BIG, last), outputs=("big",)), OWNER)
    assert [[b.name for b in f.boxes] for f in found.fragments] == [["items", "big"], ["last"]]


def test_branches_of_a_route_that_cannot_fail_are_computed_where_they_are_read() -> None:
    """The route is copied into each fragment, as any box is that keeps nothing."""
    route, branches = routed("r", ORDERS, {"big": expression("`a` > 1")}, "rest")
    assert fragments(route, *branches) == {"big": ["r", "big"], "rest": ["r", "rest"]}


def test_a_route_that_can_fail_is_computed_once() -> None:
    """Into a topic, so that a record it cannot judge has one dead letter, and comes back once."""
    route, branches = routed("r", ORDERS, {"big": failing(expression("`a` > 1"))}, "rest")
    assert fragments(route, *branches) == {"r": ["r"], "big": ["big"], "rest": ["rest"]}
    both = united("all", *branches)
    assert fragments(route, *branches, both) == {"r": ["r"], "all": ["big", "rest", "all"]}
    assert planned(route, *branches, both).notes[-1] == (
        "r is written to a topic: a condition of it can fail, and its branches may be read apart"
    )
