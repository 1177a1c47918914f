"""Priorities in a plan."""

from dataclasses import replace

import pytest

from pipeline.planner.changes import Action
from pipeline.planner.describe import differences, state_differences
from pipeline.planner.diff import changes
from pipeline.planner.digest import fragment_digest, plan_digest, state_digest
from pipeline.planner.explain import explain
from pipeline.planner.plan import Plan
from pipeline.planner.planner import plan
from pipeline.planner.upgrade import between
from pipeline.priority import Priority
from tests.unit.planner.networks import OWNER, tolls
from tests.unit.planner.passes.test_share_box_settings import fragment, planned
from tests.unit.planner.test_diff import PLAN, deployed

HIGH, NORMAL, LOW = (f", priority: {one.value}" for one in Priority)
CHAIN = """
  moving: {filter: s, where: speed > 0%s}
  counts: {aggregate: moving, by: [road], compute: {n: count(*)}%s}
  many: {filter: counts, where: n > 5%s}
"""
ROUTE = """
  r: {route: s, to: {x: speed > 0}, otherwise: y%s}
  d: {deduplicate: s, by: [car], within: 1s%s}
"""


def priorities(of: Plan) -> dict[str, str]:
    """The priority of each fragment."""
    return {str(f.name): f.priority.value for f in of.fragments}


@pytest.mark.parametrize(
    ("head", "boxes", "priority"),
    [
        ("", ("", "", ""), "normal"),
        ("priority: low", ("", "", ""), "low"),
        ("priority: high", (LOW, NORMAL, LOW), "normal"),
        ("priority: low", (LOW, "", HIGH), "high"),
        ("", (LOW, "", LOW), "normal"),
        ("", (LOW, LOW, LOW), "low"),
        ("outputs: {many: {topic: x, priority: high}}", (LOW, LOW, ""), "high"),
        ("priority: high\noutputs: {many: {topic: x, priority: low}}", (LOW, LOW, ""), "low"),
    ],
)
def test_a_fragment_has_the_highest_of_its_boxes(
    head: str, boxes: tuple[str, str, str], priority: str
) -> None:
    """A box without one has that of its output, or else the network's; none is cut off for it."""
    plain, found = planned(CHAIN % ("", "", "")), planned(CHAIN % boxes, head)
    assert priorities(found) == {"many": priority}
    assert fragment(found, "many").boxes == fragment(plain, "many").boxes


def test_the_branches_of_a_route_have_its_own_or_that_of_their_outputs() -> None:
    """Another fragment has its own."""
    outputs = "outputs: {x: {topic: x%s}, y: {topic: y}}"
    assert priorities(planned(ROUTE % (HIGH, ""), outputs % "")) == {
        "x": "high",
        "y": "high",
        "d": "normal",
    }
    assert priorities(planned(ROUTE % ("", LOW), outputs % HIGH)) == {
        "x": "high",
        "y": "normal",
        "d": "low",
    }


def test_another_priority_is_another_version_and_restarts_nothing() -> None:
    """The digest of a plan has it, those of a fragment and its state do not."""
    plans = [planned(CHAIN % ("", of, "")) for of in ("", HIGH, LOW)]
    assert len({plan_digest(one) for one in plans[:2]}) == 2
    assert plan_digest(plans[2]) == plan_digest(plans[0])  # the other boxes are normal
    old, new, _ = (fragment(one, "many") for one in plans)
    assert fragment_digest(old) == fragment_digest(new)
    assert state_digest(old) == state_digest(new)
    changed = "changed: priority `normal` → `high`"
    assert differences(old, new) == (changed,)
    assert state_differences(old, new) == ()
    assert [one.reasons for one in between(plans[0], plans[1])] == [(changed,)]
    assert between(plans[1], plans[1]) == ()


def test_the_default_leaves_digests_as_they_were() -> None:
    """An upgrade of this program is no new version of a network."""
    digest = plan_digest(planned(f"\n  m: {{filter: s, where: speed > 0{NORMAL}}}\n"))
    assert digest == plan_digest(planned("\n  m: {filter: s, where: speed > 0}\n"))
    assert digest == "1:6ca036901da2065be01b0ee113159e4c18e2beae8fe4abaf19a5dc5d3f7af6da"


def test_a_deploy_of_another_priority_keeps_fragments() -> None:
    """It names the change of each, in both directions."""
    urgent = plan(replace(tolls(), priority=Priority.HIGH), OWNER)
    found = changes(urgent, PLAN, deployed())
    up = "changed: priority `normal` → `high`"
    assert {(item.action, item.reasons) for item in found.fragments} == {(Action.KEEP, (up,))}
    assert (found.pending, found.restarts, found.disturbing) == (True, 0, ())
    current = deployed()
    fragments = tuple(replace(one, priority=Priority.HIGH) for one in current.fragments)
    current = replace(current, fragments=fragments, digest=plan_digest(urgent))
    found = changes(PLAN, urgent, current)
    down = "changed: priority `high` → `normal`"
    assert {(item.action, item.reasons) for item in found.fragments} == {(Action.KEEP, (down,))}
    assert not changes(urgent, urgent, current).pending


def test_explain_has_it_unless_it_is_the_default() -> None:
    """With what it means."""
    texts = {
        one: explain(planned(CHAIN % ("", "", ""), f"priority: {one}"))
        for one in ("high", "normal", "low")
    }
    assert "priority     high: if the nodes have no room for all" in texts["high"]
    assert "priority     low: if the nodes have no room for all" in texts["low"]
    assert "priority" not in texts["normal"]
