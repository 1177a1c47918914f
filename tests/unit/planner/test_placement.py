"""Placement in a plan: where fragments are cut, and where they may run."""

from pipeline.labels import EVERY_NODE, format_selector
from pipeline.planner.describe import differences, state_differences
from pipeline.planner.digest import fragment_digest, plan_digest, state_digest
from pipeline.planner.plan import Plan
from tests.unit.planner.passes.test_share_box_settings import fragment, planned

IN_A, IN_B = ", placement: {nodes: zone=a}", ", placement: {nodes: zone=b}"
CHAIN = """
  moving: {filter: s, where: speed > 0%s}
  counts: {aggregate: moving, by: [road], compute: {n: count(*)}%s}
  many: {filter: counts, where: road > 'A'%s}
"""
MERGED = """
  high: {aggregate: s, by: [road], compute: {speed: max(speed)}%s}
  low: {aggregate: s, by: [road], compute: {speed: min(speed)}%s}
  both: {join: {left: high, right: low, on: [road, window_end]}, select: {high: left.speed}%s}
"""


def nodes(of: Plan) -> dict[str, str]:
    """The nodes of each fragment."""
    return {str(f.name): format_selector(f.nodes) for f in of.fragments}


def test_boxes_on_the_same_nodes_stay_one_fragment() -> None:
    """Whether the network or each of them declares it; but then none is moved."""
    plain = planned(CHAIN % ("", "", ""))
    assert nodes(plain) == {"many": ""}
    assert nodes(planned(CHAIN % ("", "", ""), "placement: {nodes: zone=a}")) == {"many": "zone=a"}
    everywhere = planned(CHAIN % ("", "", ""), "placement: {nodes: zone=a}")
    assert fragment(everywhere, "many").boxes == fragment(plain, "many").boxes
    declared = planned(CHAIN % (IN_A, IN_A, IN_A))
    assert nodes(declared) == {"many": "zone=a"}
    assert [box.name for box in fragment(declared, "many").boxes] == ["moving", "counts", "many"]


def test_a_box_on_other_nodes_ends_a_fragment_before_and_behind_it() -> None:
    """And no filter moves across the border."""
    assert nodes(planned(CHAIN % ("", IN_B, ""))) == {"moving": "", "counts": "zone=b", "many": ""}
    assert nodes(planned(CHAIN % (IN_A, "", ""))) == {"moving": "zone=a", "many": ""}
    found = planned(CHAIN % ("", "", IN_A), "placement: {nodes: zone=b}")
    assert nodes(found) == {"counts": "zone=b", "many": "zone=a"}


def test_aggregates_with_nodes_of_their_own_are_not_merged() -> None:
    """Nor with the nodes of an output; with those of the network they are."""
    head = "placement: {nodes: zone=a}"
    assert nodes(planned(MERGED % ("", "", ""), head)) == {"both": "zone=a"}
    every = {"high": "zone=a", "low": "zone=a", "both": "zone=a"}
    assert nodes(planned(MERGED % (IN_A, IN_A, IN_A))) == every
    found = planned(MERGED % (IN_A, IN_B, ""))
    assert nodes(found) == {"high": "zone=a", "low": "zone=b", "both": ""}


def test_a_placement_of_an_output_is_that_of_its_box() -> None:
    """The boxes above it keep theirs."""
    head = "outputs: {many: {topic: x, placement: {nodes: zone=a}}}"
    assert nodes(planned(CHAIN % ("", "", ""), head)) == {"counts": "", "many": "zone=a"}


def test_a_filter_with_nodes_of_its_output_is_not_moved() -> None:
    """It would be computed on the nodes of the box that it is moved before."""
    boxes = CHAIN % ("", IN_B, "")
    head = "outputs: {many: {topic: x, placement: {nodes: zone=b}}}"
    assert nodes(planned(boxes, head)) == {"moving": "", "many": "zone=b"}


def test_the_branches_of_a_route_have_its_nodes() -> None:
    """The boxes behind have theirs."""
    boxes = """
  r: {route: s, to: {x: speed > 0}, otherwise: y, placement: {nodes: zone=a}}
  d: {filter: x, where: speed > 5}
"""
    assert nodes(planned(boxes)) == {"x": "zone=a", "y": "zone=a", "d": ""}


def test_boxes_apart_are_fragments_that_name_each_other() -> None:
    """Both of them, also in the middle of a chain."""
    found = planned(CHAIN % ("", "", ""), "placement: {apart: [counts, many]}")
    assert {str(f.name): f.apart for f in found.fragments} == {
        "counts": ("many",),
        "many": ("counts",),
    }
    pairs = planned(CHAIN % ("", "", ", placement: {apart: [moving, counts]}"))
    assert {str(f.name): f.apart for f in pairs.fragments} == {
        "moving": ("many",),
        "counts": ("many",),
        "many": ("counts", "moving"),
    }


def test_another_place_is_another_version_and_restarts_nothing() -> None:
    """The digest of a plan has it, that of a fragment does not."""
    here = planned(CHAIN % ("", "", ""))
    there = planned(CHAIN % ("", "", ""), "placement: {nodes: zone=a}")
    assert plan_digest(here) != plan_digest(there)
    old, new = fragment(here, "many"), fragment(there, "many")
    assert (old.nodes, new.nodes) != (EVERY_NODE, EVERY_NODE)
    assert fragment_digest(old) == fragment_digest(new)
    assert state_digest(old) == state_digest(new)
    assert differences(old, new) == ("new: nodes `zone=a`",)
    assert state_differences(old, new) == ()


def test_without_a_placement_digests_are_what_they_were() -> None:
    """An upgrade of this program is no new version of a network."""
    digest = plan_digest(planned("\n  m: {filter: s, where: speed > 0}\n"))
    assert digest == "1:6ca036901da2065be01b0ee113159e4c18e2beae8fe4abaf19a5dc5d3f7af6da"
