import json
from dataclasses import replace

from pipeline.network.model import Box, ExternalStream
from pipeline.network.types import EnumForm, Scalar
from pipeline.planner.digest import fragment_digest
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from tests.unit.planner.networks import (
    OWNER,
    aggregated,
    column,
    deduplicated,
    expression,
    external,
    filtered,
    flat_mapped,
    network,
    routed,
    united,
)

ORDERS = external("orders", column("a"), column("xs"))


def fragments(*boxes: Box) -> dict[str, list[str]]:
    """The boxes of each fragment."""
    planned = plan(network((ORDERS,), boxes), OWNER)
    return {str(f.name): [str(box.name) for box in f.boxes] for f in planned.fragments}


def test_a_flat_map_ends_its_fragment() -> None:
    """Its readers read its rows as records, each of which can be refused separately."""
    big = filtered("big", ORDERS, "`a` > 1")
    items = flat_mapped("items", big, "`xs`", {"x": "`item`"})
    sums = aggregated("sums", items, {"x": "`x`"}, {"n": ("sum", "`x`")})
    assert fragments(big, items, sums) == {"items": ["big", "items"], "sums": ["sums"]}


def test_a_flat_map_behind_a_state_ends_its_fragment_too() -> None:
    """The boxes between the stateful one and it are in the fragment."""
    sums = aggregated("sums", ORDERS, {"x": "`a`"}, {"n": ("sum", "`a`")})
    items = flat_mapped("items", sums, "`n`", {"x": "`x`", "part": "`item`"})
    last = filtered("last", items, "`part` > 1")
    assert fragments(sums, items, last) == {"items": ["sums", "items"], "last": ["last"]}


def test_a_route_is_copied_to_where_its_branches_are_read() -> None:
    """Like any stateless box."""
    route, branches = routed("r", ORDERS, {"big": expression("`a` > 1")}, "rest")
    assert fragments(route, *branches) == {"big": ["r", "big"], "rest": ["r", "rest"]}
    both = united("all", *branches)
    assert fragments(route, *branches, both) == {"all": ["r", "big", "rest", "all"]}


def test_a_key_is_a_string_where_its_column_is_an_enum() -> None:
    """One more symbol would change the bytes of equal keys."""
    form = EnumForm("m.E", ("A", "B"))
    source = external("s", replace(column("a", Scalar.STRING, nullable=False), form=form))
    box = deduplicated("once", source, ("a",), 5)
    (made,) = plan(network((source,), (replace(box, key=("a",)),), ("once",)), OWNER).fragments
    assert '"symbols":["A","B"]' in made.output.schema_json
    assert made.output.key_schema_json is not None
    (field,) = json.loads(made.output.key_schema_json)["fields"]
    assert field == {"name": "a", "type": "string"}


def test_a_derived_stream_has_the_least_lateness_of_its_inputs() -> None:
    """However far above that is; unrelated changes restart nothing."""
    slow = replace(external("slow", column("a"), column("xs")), lateness_ms=3_600_000)
    quick = replace(ORDERS, lateness_ms=2_000)
    route, branches = routed("r", slow, {"big": expression("`a` > 1")}, "rest")
    sums = aggregated("sums", branches[0], {"x": "`a`"}, {"n": ("sum", "`a`")})
    both = united("both", slow, quick)
    last = filtered("last", both, "`a` > 1")
    boxes: tuple[Box, ...] = (route, *branches, sums, both, last)

    def planned(*streams: ExternalStream) -> list[Fragment]:
        return list(plan(network(streams, boxes, ("sums", "both", "last")), OWNER).fragments)

    found = planned(slow, quick)
    lateness = {str(one.name): one.output.lateness_ms for one in found}
    of_slow = {"sums": 3_600_000, "rest": 3_600_000}
    assert lateness == {**of_slow, "both": 2_000, "last": 2_000}
    other = planned(slow, replace(quick, lateness_ms=1_000))
    digests = [
        [fragment_digest(one) for one in some if one.name == "last"] for some in (found, other)
    ]
    assert digests[0] == digests[1]
