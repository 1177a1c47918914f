"""Followers of the fragments that move to this node, and of those that it is a secondary of."""

from collections.abc import Iterator
from dataclasses import replace

from pipeline.agent.effects import Follow, Following
from pipeline.agent.events import CatalogRead, Event, PlanMade
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import NodeState
from pipeline.errors import MedusaError
from pipeline.ids import FragmentId, stable_lane


def follow(state: NodeState, event: Event) -> tuple[NodeState, Effects]:
    """Follow these fragments, once they are planned, if they have changed; forget others."""
    if not isinstance(event, CatalogRead | PlanMade):
        return state, ()
    shared = state.shared
    found = tuple(_followings(state))
    gone = shared.gone if isinstance(event, CatalogRead) else frozenset[FragmentId]()
    if not gone and [_seen(one) for one in found] == [_seen(one) for one in shared.followed]:
        return state, ()
    return replace(state, shared=replace(shared, followed=found)), (Follow(found, gone),)


def _followings(state: NodeState) -> Iterator[Following]:
    """The fragments to follow, by name; each once, though it may have both purposes.

    The follower of one that this node owns by now stays until its lane runs: the answer of the
    claim may have been lost, so that the lane has not taken it yet.
    """
    shared = state.shared
    moving = {one.id: (one, transfer) for one, transfer in shared.moving_here}
    standing = {one.id: (one, is_begun) for one, is_begun in shared.standing_by}
    followed = {one.deployed.id: one for one in shared.followed}
    for fragment in sorted(moving.keys() | standing.keys() | followed.keys()):
        one, transfer = moving.get(fragment, (None, None))
        other, is_begun = standing.get(fragment, (None, False))
        deployed = one or other
        if deployed is None:
            if _is_starting(state, fragment):
                yield replace(followed[fragment], is_begun=False)
            continue
        failure = shared.plans.failed.get(deployed.version)
        planned = failure or shared.plans.fragment(deployed)
        before = followed.get(fragment)
        if planned is not None:
            is_begun = is_begun or transfer is not None
            yield Following(deployed, planned, transfer, other is not None, is_begun)
        elif before is not None and before.deployed.network.life == deployed.network.life:
            # Until the new version is planned, so that its follower begins from this state.
            stands_by = other is not None
            yield replace(before, transfer=transfer, is_standby=stands_by, is_begun=False)


def _is_starting(state: NodeState, fragment: FragmentId) -> bool:
    """Whether this node owns a fragment that is to run, and that does not run yet."""
    one, lane = state.shared.assigned.get(fragment), state.lanes.get(stable_lane(fragment))
    owns = one is not None and one.owner is not None and one.owner.node == state.shared.node
    return owns and one is not None and one.running and (lane is None or lane.running is None)


def _seen(one: Following) -> tuple[object, ...]:
    """What a follower depends on: neither how far its move is, nor when its owner has claimed."""
    asked = None if one.transfer is None else one.transfer.as_asked
    is_planned, every_ms = not isinstance(one.fragment, MedusaError), one.checkpoint_every_ms
    return one.lane, one.epoch, asked, is_planned, one.is_standby, one.is_begun, every_ms
