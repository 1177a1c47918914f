"""Followers of a node that only have copies of checkpoints, and what is remembered of others."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pipeline.agent.effects import Follow, Following
from pipeline.catalog.records import OwnerRecord
from pipeline.ids import Epoch, FragmentName, Millis
from pipeline.lanes.follower_phases import FollowerPhase
from tests.unit.agent.performers import DEPLOYED, MOVING, NETWORK, PLAN, Node
from tests.unit.agent.test_followers import SOURCE, followed, moved, phases, standing_by, until


@pytest.fixture
def node() -> Iterator[Node]:
    """As `followed`."""
    with followed() as node:
        yield node


def test_a_copy_waits_for_no_turn(node: Node) -> None:
    """It computes nothing, so it neither waits for followers nor lets them wait."""
    node.levels.append(False)
    moved(node)
    until(lambda: len(node.followers) == 1, "a follower")
    until(node.followers[0].runs.is_set, "its turn")
    other = replace(DEPLOYED.record, fragment=FragmentName("other"))
    record = replace(other, passive_standbys=1, checkpoint_every_ms=1_000)
    owner = OwnerRecord(SOURCE.node, NETWORK.participant, Epoch(1), Millis(0), Millis(0))
    one = replace(DEPLOYED, record=record, owner=owner)
    copied = Following(one, PLAN.fragments[0], None, is_standby=True)
    node.performer.perform(Follow((node.performer._context.followers._wanted[MOVING], copied)))
    until(lambda: len(node.followers) == 2, "a copy")
    until(node.followers[1].runs.is_set, "no turn")


def test_a_copy_is_reported_with_its_problem(node: Node) -> None:
    """It goes on by itself: neither begun again nor discarded."""
    standing_by(node, every_ms=1_000)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    node.followers[0].problem = "the store does not answer"
    (standby,) = node.performer._context.followers.standbys()
    assert standby.problem == "the store does not answer"
    assert len(node.followers) == 1


def test_a_copy_is_left_at_once_although_its_fetch_hangs(node: Node) -> None:
    """What it has is complete; the lane that starts does not wait for more."""
    standing_by(node, every_ms=1_000)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    (hanging,) = node.followers
    hanging.hangs = True
    found = node.performer._context.followers.take(MOVING, Epoch(2))
    assert found is not None
    assert found.state() == hanging.followed
    assert hanging.ends.is_set()
    hanging.hangs = False


def test_nothing_is_remembered_of_a_fragment_that_is_gone(node: Node) -> None:
    """Neither its last follower, whose folder is removed, nor what was claimed of it."""
    standing_by(node)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    followers = node.performer._context.followers
    node.performer.perform(Follow((), frozenset({MOVING})))
    until(node.followers[0].discarded.is_set, "the end")
    assert followers._left == {}
    assert followers.take(MOVING, Epoch(2)) is None
    followers.hold(MOVING)
    node.performer.perform(Follow((), frozenset({MOVING})))
    assert followers._claimed == {MOVING: Epoch(2)}
    followers.let_go(MOVING)
    node.performer.perform(Follow((), frozenset({MOVING})))
    assert followers._claimed == {}
