"""States that followers leave to the next ones, and followers on a full disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from pipeline.agent import follower_thread
from pipeline.agent.effects import Follow
from pipeline.errors import BrokenInvariantError, UnavailableError
from pipeline.ids import NetworkLife, NetworkVersion
from pipeline.lanes.follower_phases import FollowerPhase
from pipeline.spark.run.disk import full
from tests.unit.agent.performers import Node
from tests.unit.agent.test_followers import followed, more_than, phases, standing_by, until


@pytest.fixture
def node() -> Iterator[Node]:
    """A node that follows a fragment of another one."""
    with followed() as node:
        yield node


def test_a_follower_begins_again_from_the_state_that_it_has_left(node: Node) -> None:
    """Not after a failure after which the state may be another one."""
    standing_by(node)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    node.followers[0].raises.append(UnavailableError("Kafka is down"))
    until(lambda: len(node.followers) == 2, "another follower")
    assert node.followers[0].before is None
    assert node.followers[1].before == node.followers[0].followed
    assert not node.followers[0].discarded.is_set()
    node.followers[1].raises.append(BrokenInvariantError("it contradicts itself"))
    until(node.followers[1].discarded.is_set, "the state is removed")


def test_a_deploy_gives_the_state_to_the_follower_of_the_new_version(node: Node) -> None:
    """Whether it is of use says the start of that."""
    following = standing_by(node)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    record = replace(following.deployed.record, version=NetworkVersion(2))
    newer = replace(following, deployed=replace(following.deployed, record=record))
    node.performer.perform(Follow((newer,)))
    until(lambda: len(node.followers) == 2, "another follower")
    assert node.followers[1].before == node.followers[0].followed
    assert node.followers[0].stopped.is_set()
    assert not node.followers[0].discarded.is_set()
    life = replace(newer.deployed.network, life=NetworkLife("another"))
    node.performer.perform(
        Follow((replace(newer, deployed=replace(newer.deployed, network=life)),))
    )
    until(lambda: len(node.followers) == 3, "a follower in another life")
    assert node.followers[2].before is None
    until(node.followers[1].discarded.is_set, "the state is removed")


def test_a_redrive_topic_ends_no_follower(node: Node) -> None:
    """It is read once the owner reads it."""
    following = standing_by(node)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    record = following.deployed.record
    ids = tuple(sorted((*record.topic_ids, (following.deployed.names.redrive, "id"))))
    later = replace(following.deployed, record=replace(record, topic_ids=ids))
    node.performer.perform(Follow((replace(following, deployed=later),)))
    assert not node.followers[0].ends.is_set()
    assert len(node.followers) == 1


def test_a_state_that_waits_for_its_next_follower_is_removed_with_the_last_one(node: Node) -> None:
    """The node is no secondary any more before that one has begun."""
    following = standing_by(node)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    node.followers[0].hangs = True
    record = replace(following.deployed.record, version=NetworkVersion(2))
    newer = replace(following, deployed=replace(following.deployed, record=record))
    node.performer.perform(Follow((newer,)))
    node.performer.perform(Follow(()))
    node.followers[0].stopped.set()
    until(node.followers[0].discarded.is_set, "the state is removed")
    assert len(node.followers) == 1


def test_a_follower_on_a_full_disk_rests(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    """One error says so; it is begun again from the log after a while, until there is room."""
    with patched(DISK_FULL_S=0.05):
        standing_by(node)
        until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
        for number in (1, 2, 3):
            node.levels.append(False)
            node.followers[-1].leaves_nothing = True
            node.followers[-1].raises.append(full("No space left on device", "/data/epoch-2.1-n2"))
            until(partial(more_than, node.followers, number), "another follower")
            assert node.followers[-1].before is None
    errors = [one for one in caplog.records if one.levelname == "ERROR"]
    assert len(errors) == 1
    assert "/data/epoch-2.1-n2: the disk is full" in errors[0].getMessage()
    assert phases(node) != [FollowerPhase.DISCARDED]
    (standby,) = node.performer._context.followers.standbys()
    assert "the disk is full" in standby.problem


@contextmanager
def patched(**values: float) -> Iterator[None]:
    """Other waiting times of a follower's thread."""
    before = {name: getattr(follower_thread, name) for name in values}
    for name, value in values.items():
        setattr(follower_thread, name, value)
    yield
    for name, value in before.items():
        setattr(follower_thread, name, value)
