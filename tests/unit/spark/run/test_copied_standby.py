"""A secondary that has copies of a checkpoint, step by step."""

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.checkpoint_store.store import CheckpointStore
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, NodeId
from pipeline.lanes.follower_phases import FollowerCourse, FollowerEvent, FollowerPhase
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import Judged
from pipeline.spark.run.copied_standby import CopiedStandby
from pipeline.spark.run.query_runner import StoppingError
from tests.memory_objects import MemoryObjects
from tests.unit.catalog.support import fragment as record
from tests.unit.kafka import with_topics
from tests.unit.spark.run.test_checkpoint_copies import Lane
from tests.unit.spark.run.test_checkpoints import FRAGMENT, ONE, SPARK
from tests.unit.spark.run.test_lane_settings import settings

PHASE = FollowerPhase
REQUEST = StartRequest(Epoch(1), "digest", stateful=True, on_change=None, place="")
LAST = first_marker(REQUEST, ONE, {}, Millis(0))
JUDGED = Judged(1, 0, late=False, refused=0, failed=0)


class World:
    """An owner with its markers, the store, and the standby on another node."""

    def __init__(self, root: Path, *, store: bool = True) -> None:
        self.objects = MemoryObjects()
        self.owner = Lane(root / "owner", objects=self.objects)
        self.clock = self.owner.clock
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
        judged = JUDGED if batch >= 0 else None
        marker = replace(LAST, batch=BatchId(batch), incarnation=incarnation, judged=judged)
        marker = replace(marker, written_at_ms=self.clock.now_ms())
        self.kafka.append(FRAGMENT.names.markers, b"marker", encode_marker(marker))

    def looks(self) -> FollowerPhase:
        """The standby looks for a copy; returns its phase."""
        self.standby._look_or_wait()
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
    assert world.standby.reached.at_ms is None
    assert world.standby.reached.state_bytes > 0
    copied_ms = world.clock.now_ms() - 1_000_000
    world.writes(1)
    assert world.looks() is PHASE.CATCHING_UP
    assert world.standby.reached.at_ms == copied_ms
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
    world.owner.writes(1)
    world.marks(1, Incarnation("two"))
    world.owner.copy()
    assert world.looks() is PHASE.LEVEL


def test_what_has_not_run_has_no_copy(tmp_path: Path) -> None:
    """There is nothing to copy before its first batch, and something after that."""
    world = World(tmp_path)
    assert world.looks() is PHASE.BUILDING
    assert world.standby.problem.endswith("the fragment has not run yet")
    world.marks(-1)
    assert world.looks() is PHASE.WAITING
    assert world.standby.problem == ""
    world.writes(0)
    world.owner.copy()
    assert world.looks() is PHASE.LEVEL


def test_a_node_without_a_store_says_what_to_set(tmp_path: Path) -> None:
    """`status` shows it as the standby's problem."""
    world = World(tmp_path, store=False)
    world.writes(0)
    assert world.looks() is PHASE.BUILDING
    assert world.standby.problem.startswith("store.url: this node has no checkpoint store")


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
    assert world.looks() is PHASE.CATCHING_UP
    assert "has another content" in world.standby.problem
    world.objects.failing = True
    assert world.looks() is PHASE.CATCHING_UP
    assert "it does not answer" in world.standby.problem
    assert world.standby.followed == before
    assert before is not None
    assert world.folders() == [before.folder]


def test_it_has_what_it_has_although_a_fetch_hangs(tmp_path: Path) -> None:
    """A lane that starts takes it; what is fetched after that is removed."""
    world = World(tmp_path)
    world.writes(0)
    world.owner.copy()
    world.looks()
    before = world.standby.followed
    world.writes(1)
    world.owner.copy()
    hangs, released = threading.Event(), threading.Event()

    def read(key: str) -> bytes | None:
        if not key.endswith("copy.json"):
            hangs.set()
            released.wait(60)
        return world.objects.content.get(key)

    world.objects.read = read  # type: ignore[method-assign]
    thread = threading.Thread(target=world.standby.run, daemon=True)
    thread.start()
    assert hangs.wait(60)
    world.standby.request_stop()
    assert world.standby.followed == before
    assert before is not None
    assert before.folder.exists()
    released.set()
    thread.join(60)
    assert world.folders() == [before.folder]
    assert world.standby.followed == before


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
