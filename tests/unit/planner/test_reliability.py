"""Reliability in a plan."""

from dataclasses import replace

import pytest

from pipeline.planner.changes import Action
from pipeline.planner.describe import differences, state_differences
from pipeline.planner.diff import changes
from pipeline.planner.digest import fragment_digest, plan_digest, state_digest
from pipeline.planner.explain import explain
from pipeline.planner.plan import Plan
from pipeline.planner.planner import plan
from pipeline.planner.state import KeptState
from pipeline.planner.upgrade import between, words
from pipeline.reliability import (
    AMNESIA,
    UPSTREAM_BACKUP,
    with_active_standbys,
    with_passive_standbys,
)
from tests.unit.planner.networks import OWNER, tolls
from tests.unit.planner.passes.test_share_box_settings import MERGED, MOVED, fragment, planned
from tests.unit.planner.test_diff import LIFE, PLAN, deployed

NONE, ONE, THREE = (
    ", reliability: upstream_backup",
    ", reliability: active_standby",
    ", reliability: {mode: active_standby, secondaries: 3}",
)
FOLLOWED = "reliability: active_standby"
CHAIN = """
  moving: {filter: s, where: speed > 0%s}
  counts: {aggregate: moving, by: [road], compute: {n: count(*)}%s}
  many: {filter: counts, where: n > 5%s}
"""
ROUTE = """
  r: {route: s, to: {x: speed > 0}, otherwise: y%s}
  d: {deduplicate: x, by: [car], within: 1s%s}
"""


def followers(of: Plan) -> dict[str, int]:
    """The number of nodes that are to follow each fragment."""
    return {str(f.name): f.reliability.active_standbys for f in of.fragments}


@pytest.mark.parametrize(
    ("head", "boxes", "secondaries"),
    [
        ("", ("", "", ""), 0),
        ("", (NONE, NONE, NONE), 0),
        (FOLLOWED, ("", "", ""), 1),
        (FOLLOWED, (NONE, "", NONE), 1),
        (FOLLOWED, (NONE, NONE, NONE), 0),
        ("", ("", ONE, ""), 1),
        ("", (THREE, ONE, NONE), 3),
        (FOLLOWED, ("", "", THREE), 3),
    ],
)
def test_a_fragment_has_the_strictest_of_its_boxes(
    head: str, boxes: tuple[str, str, str], secondaries: int
) -> None:
    """A box without one has the network's; none is cut off for it, and a moved one counts."""
    plain, found = planned(CHAIN % ("", "", "")), planned(CHAIN % boxes, head)
    assert followers(found) == {"many": secondaries}
    assert fragment(found, "many").boxes == fragment(plain, "many").boxes


def test_each_fragment_has_its_own() -> None:
    """A box that is copied counts in both."""
    boxes = """
  moving: {filter: s, where: speed > 0%s}
  cars: {map: moving, select: [car]}
  once: {deduplicate: moving, by: [car], within: 1s%s}
  all: {deduplicate: s, by: [car], within: 1s}
"""
    assert followers(planned(boxes % ("", THREE))) == {"cars": 0, "once": 3, "all": 0}
    assert followers(planned(boxes % (ONE, ""))) == {"cars": 1, "once": 1, "all": 0}
    assert followers(planned(boxes % (NONE, NONE), FOLLOWED)) == {"cars": 1, "once": 0, "all": 1}


def test_merged_and_moved_boxes_count() -> None:
    """They are merged and moved as without one."""
    assert followers(planned(MERGED % ("", ONE, ""))) == {"both": 1}
    assert followers(planned(MERGED % (NONE, NONE, NONE), FOLLOWED)) == {"both": 0}
    assert followers(planned(MOVED % (ONE, "", "", THREE))) == {"some": 1, "these": 3}


def test_that_of_an_output_is_that_of_its_box() -> None:
    """Also if its filter has moved; it is stricter or less strict than the network's."""
    strict = f"outputs: {{many: {{topic: x{THREE}}}}}"
    assert followers(planned(CHAIN % ("", NONE, ""), strict)) == {"many": 3}
    less = f"{FOLLOWED}\noutputs: {{many: {{topic: x{NONE}}}}}"
    assert followers(planned(CHAIN % (NONE, NONE, ""), less)) == {"many": 0}
    assert followers(planned(CHAIN % (NONE, "", ""), less)) == {"many": 1}
    moved = f"outputs: {{some: {{topic: x{THREE}}}}}"
    assert followers(planned(MOVED % ("", "", "", ""), moved)) == {"some": 3, "these": 0}


def test_the_branches_of_a_route_have_its_own_or_that_of_their_outputs() -> None:
    """The boxes behind have theirs."""
    assert followers(planned(ROUTE % (ONE, ""))) == {"y": 1, "d": 1}
    assert followers(planned(ROUTE % ("", ONE))) == {"y": 0, "d": 1}
    of_x = f"outputs: {{x: {{topic: x{THREE}}}}}"
    assert followers(planned(ROUTE % ("", ""), of_x)) == {"x": 3, "y": 0, "d": 0}
    less = f"{FOLLOWED}\noutputs: {{x: {{topic: x{NONE}}}}}"
    assert followers(planned(ROUTE % ("", ""), less)) == {"x": 0, "y": 1, "d": 1}


def test_pace_and_limit_are_those_without_it() -> None:
    """The output of a branch is no box that declares no pace."""
    boxes = "  r: {route: s, to: {x: speed > 0}, otherwise: y, pace: 100ms}\n"
    outputs = f"pace: 1s\noutputs: {{x: {{topic: x{ONE}}}, y: {{topic: y}}}}"
    assert {f.pace_ms for f in planned(boxes, outputs).fragments} == {100}


def test_another_reliability_is_another_version_and_restarts_nothing() -> None:
    """The digest of a plan has it, those of a fragment and its state do not."""
    plans = [planned(CHAIN % ("", of, "")) for of in ("", ONE, THREE)]
    assert len({plan_digest(one) for one in plans}) == 3
    old, new, _ = (fragment(one, "many") for one in plans)
    assert fragment_digest(old) == fragment_digest(new)
    assert state_digest(old) == state_digest(new)
    changed = "changed: reliability `upstream_backup` → `active_standby, 1 secondary`"
    assert differences(old, new) == (changed,)
    assert state_differences(old, new) == ()
    assert [one.reasons for one in between(plans[0], plans[1])] == [(changed,)]
    assert words(plans[0], plans[1]) == "changed many"
    assert between(plans[1], plans[1]) == ()


def test_the_default_leaves_digests_as_they_were() -> None:
    """An upgrade of this program is no new version of a network."""
    digest = plan_digest(planned(f"\n  m: {{filter: s, where: speed > 0{NONE}}}\n"))
    assert digest == "1:6ca036901da2065be01b0ee113159e4c18e2beae8fe4abaf19a5dc5d3f7af6da"


def test_a_deploy_of_another_reliability_keeps_fragments() -> None:
    """It names the change of each, in both directions."""
    followed = plan(replace(tolls(), reliability=with_active_standbys(2)), OWNER)
    found = changes(followed, PLAN, deployed())
    up = "changed: reliability `upstream_backup` → `active_standby, 2 secondaries`"
    assert {(item.action, item.reasons) for item in found.fragments} == {(Action.KEEP, (up,))}
    assert (found.pending, found.restarts, found.disturbing) == (True, 0, ())
    current = deployed()
    two = with_active_standbys(2)
    fragments = tuple(replace(one, reliability=two) for one in current.fragments)
    current = replace(current, fragments=fragments, digest=plan_digest(followed))
    found = changes(PLAN, followed, current)
    down = "changed: reliability `active_standby, 2 secondaries` → `upstream_backup`"
    assert {(item.action, item.reasons) for item in found.fragments} == {(Action.KEEP, (down,))}
    assert found.pending
    assert not changes(followed, followed, current).pending


def test_how_often_a_checkpoint_is_copied_is_part_of_a_plan() -> None:
    """It changes the version of the network, and no fragment."""
    plans = [
        plan(replace(tolls(), reliability=with_passive_standbys(1, every_ms)), OWNER)
        for every_ms in (10_000, 20_000)
    ]
    assert plan_digest(plans[0]) != plan_digest(plans[1])
    change = (
        "changed: reliability `passive_standby, 1 secondary, a checkpoint every 10s` → "
        "`passive_standby, 1 secondary, a checkpoint every 20s`"
    )
    assert {item.reasons for item in between(plans[0], plans[1])} == {(change,)}


def test_it_is_no_reason_why_a_state_does_not_fit() -> None:
    """The refusal names what differs in the state alone."""
    was, *_ = PLAN.fragments
    assert was.reliability == UPSTREAM_BACKUP
    states = {was.name: KeptState("1:another", LIFE)}
    settled = replace(tolls(), pace_ms=500, reliability=with_active_standbys(1))
    (item, *_) = changes(plan(settled, OWNER), PLAN, replace(deployed(), states=states)).fragments
    assert item.refused
    assert any("reliability" in line for line in item.reasons)
    assert not [line for line in item.details if "reliability" in line]


STATES = """
  counts: {aggregate: s, by: [road], window: 1m, compute: {n: count(*)}%s}
  busy: {filter: counts, where: n > 1}
  sums: {aggregate: busy, by: [road], window: 1m, compute: {n: sum(n)}}
  last: {filter: sums, where: n > 5}
"""
FORGETS = "reliability: amnesia\noutputs: {sums: {topic: sums}, last: {topic: last}}"


def test_only_the_last_fragments_with_state_leave_results_out() -> None:
    """What a fragment with state reads is complete; a note says so. Fragments without lose none."""
    found = planned(STATES % "", FORGETS)
    modes = {str(one.name): one.reliability for one in found.fragments}
    assert modes == {"busy": UPSTREAM_BACKUP, "sums": AMNESIA, "last": AMNESIA}
    assert found.notes[-1] == (
        "busy has upstream_backup instead of amnesia, since sums keeps state of its results, and "
        "would be wrong without some of them"
    )


def test_a_stricter_mode_of_one_box_is_that_of_its_fragment() -> None:
    """Amnesia is the least strict."""
    found = planned(CHAIN % ("", NONE, ""), "reliability: amnesia")
    assert [one.reliability for one in found.fragments] == [UPSTREAM_BACKUP]
    assert [one.reliability for one in planned(CHAIN % ("", ONE, "")).fragments] != [AMNESIA]


def test_what_amnesia_leaves_out_is_explained() -> None:
    """With the price, for the longest time; a fragment without state has none to lose."""
    text = explain(planned(STATES % "", FORGETS))
    assert "for up to 1m of event time; costs nothing before" in text
    assert "stable records are exact and final once written; those in a gap are left out" in text
    assert "amnesia: it has no state to lose; another node goes on from its positions" in text
    assert "may fail     0 nodes without losing its state, all but one in all" in text


def test_amnesia_restarts_nothing_and_is_part_of_a_plan() -> None:
    """As the other modes."""
    found = plan(replace(tolls(), reliability=AMNESIA), OWNER)
    assert plan_digest(found) != plan_digest(PLAN)
    assert changes(found, PLAN, deployed()).restarts == 0
