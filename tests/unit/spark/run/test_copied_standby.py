"""A secondary that has copies of a checkpoint, step by step."""

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.checkpoint_store.store import CheckpointStore
from pipeline.errors import EnvironmentProblem, RetryError, UnavailableError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, NodeId
from pipeline.lanes.follower_phases import FollowerCourse, FollowerEvent, FollowerPhase
from pipeline.lanes.following import NotToFollowError
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.codec import encode_marker
from pipeline.spark.run.copied_standby import CopiedStandby
from pipeline.spark.run.query_runner import StoppingError
from tests.memory_objects import MemoryObjects
from tests.unit.catalog.support import fragment as record
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import with_topics
from tests.unit.spark.run.test_checkpoint_copies import Lane
from tests.unit.spark.run.test_checkpoints import FRAGMENT, ONE, SPARK
from tests.unit.spark.run.test_lane_settings import settings

PHASE = FollowerPhase
REQUEST = StartRequest(Epoch(1), "digest", stateful=True, on_change=None, place="")
LAST = first_marker(REQUEST, ONE, {}, Millis(0))


class World:
    """An owner with its markers, the store, and the standby on another node."""

    def __init__(self, root: Path, *, store: bool = True) -> None:
        self.clock = TwinClock()
        self.objects = MemoryObjects()
        self.owner = Lane(root / "owner", objects=self.objects)
        self.owner.copies._clock = self.clock
        self.kafka = with_topics([FRAGMENT.names.markers], clock=self.clock)
        self.root = root / "standby"
        copies = SimpleNamespace(store=CheckpointStore(self.objects)) if store else None
        host = SimpleNamespace(
            kafka=self.kafka,
            clock=self.clock,
            spark=SimpleNamespace(version=SPARK),
            checkpoints=self.root,
            copies=copies,
        )
        self.course = FollowerCourse("fragment")
        self.course.move(FollowerEvent.BEGUN)
        own = replace(settings(None), fragment=FRAGMENT)
        every = replace(record(), passive_standbys=1, checkpoint_every_ms=10_000)
        self.standby = CopiedStandby(
            own, lambda: None, self.course, every, host=cast("Any", host), node=NodeId("node2")
        )

    def writes(self, batch: int) -> None:
        """The owner writes a batch."""
        self.owner.writes(batch)
        self.marks(batch)

    def marks(self, batch: int, incarnation: Incarnation = ONE) -> None:
        """The owner writes a marker."""
        marker = replace(LAST, batch=BatchId(batch), incarnation=incarnation)
        self.kafka.append(FRAGMENT.names.markers, b"marker", encode_marker(marker))

    def looks(self) -> FollowerPhase:
        """The standby looks for a copy; returns its phase."""
        self.standby._look()
        return self.course.phase

    def folders(self) -> list[Path]:
        """The folders of the standby."""
        return [path for path in self.root.glob("*/*/*/*/*") if path.is_dir()]


def test_it_has_the_newest_copy(tmp_path: Path) -> None:
    """One folder, whose name is that of a follower; a lane takes it as it does that one."""
    world = World(tmp_path)
    world.writes(0)
    assert world.looks() is PHASE.BUILDING
    assert world.standby.followed is None
    for batch in range(3):
        world.writes(batch)
        world.owner.copy()
        assert world.looks() is PHASE.LEVEL
        left = world.standby.followed
        assert left is not None
        assert left.incarnation == ONE
        assert world.folders() == [left.folder]
        assert left.folder.name.endswith("-node2")
        assert (left.folder / "commits" / str(batch)).exists()
    world.standby.discard()
    assert world.folders() == []
    assert world.standby.followed is None


def test_an_old_copy_is_not_level_unless_nothing_has_changed(tmp_path: Path) -> None:
    """An owner without records has nothing to copy; one that cannot copy falls behind."""
    world = World(tmp_path)
    world.writes(0)
    world.owner.copy()
    assert world.looks() is PHASE.LEVEL
    world.clock.sleep(1_000)
    assert world.looks() is PHASE.LEVEL
    world.writes(1)
    assert world.looks() is PHASE.CATCHING_UP
    world.owner.copy()
    assert world.looks() is PHASE.LEVEL


def test_a_copy_of_an_earlier_incarnation_is_none(tmp_path: Path) -> None:
    """Until the owner has made one of its own."""
    world = World(tmp_path)
    world.writes(0)
    world.owner.copy()
    assert world.looks() is PHASE.LEVEL
    world.marks(0, Incarnation("two"))
    assert world.looks() is PHASE.CATCHING_UP
    world.owner.running = replace(world.owner.running, incarnation=Incarnation("two"))
    world.owner.copies.begin(world.owner.running)
    world.owner.copy()
    assert world.looks() is PHASE.LEVEL


def test_what_has_not_run_has_no_copy(tmp_path: Path) -> None:
    """It is tried again."""
    with pytest.raises(NotToFollowError, match="has not run yet"):
        World(tmp_path).looks()


def test_a_node_without_a_store_says_what_to_set(tmp_path: Path) -> None:
    """`status` shows it as the standby's problem."""
    world = World(tmp_path, store=False)
    with pytest.raises(EnvironmentProblem, match=r"store\.url: this node has no checkpoint store"):
        world.looks()


def test_a_store_that_fails_leaves_the_copy(tmp_path: Path) -> None:
    """Also if a copy is damaged: the one before is of use."""
    world = World(tmp_path)
    world.writes(0)
    world.owner.copy()
    world.looks()
    before = world.standby.followed
    world.writes(1)
    copy = world.owner.copy()
    key = next(key for key in world.objects.content if key.endswith(copy.files[-1].sha256))
    world.objects.content[key] = b"damage"
    with pytest.raises(RetryError, match="has another content"):
        world.looks()
    world.objects.failing = True
    with pytest.raises(UnavailableError):
        world.looks()
    assert world.standby.followed == before
    assert before is not None
    assert world.folders() == [before.folder]


def test_a_stop_ends_a_fetch(tmp_path: Path) -> None:
    """The copy that was begun is removed, and it runs no query to be handed over."""
    world = World(tmp_path)
    world.writes(0)
    world.owner.copy()
    world.standby.request_stop()
    with pytest.raises(StoppingError):
        world.looks()
    world.standby.run()
    assert world.folders() == []
    assert world.standby.hand_over(settings(None), LAST, threading.Event()) is None
