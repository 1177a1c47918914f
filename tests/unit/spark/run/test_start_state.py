"""The state that a lane starts from: the furthest one that this node reaches."""

import json
import logging
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pipeline.checkpoint_store.store import CheckpointStore
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset
from pipeline.lanes.start.decision import Continue, Rebuild, SkipToEnd, Start
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.commit_marker import CommitMarker, Judged
from pipeline.markers.positions import Positions
from pipeline.spark.run.checkpoint_copies import CheckpointCopies, RunningCheckpoint
from pipeline.spark.run.checkpoints import Checkpoints, copied_facts
from pipeline.spark.run.handover import FollowedQuery, FollowedState
from pipeline.spark.run.start_state import StartState
from pipeline.system_clock import SystemClock
from tests.memory_objects import MemoryObjects
from tests.unit.spark.run.test_checkpoints import FRAGMENT, LIFE, LOWERED, ONE, SPARK
from tests.unit.spark.run.test_lane_settings import settings

NAMES = FRAGMENT.names.stable
OWN = replace(settings(None), fragment=FRAGMENT, life=LIFE, epoch=Epoch(3))
STEP = 10


def plan_of(batch: int) -> str:
    """Spark's plan of a batch; ten records of each partition in a batch."""
    end = STEP * (batch + 1)
    source = json.dumps({"sightings-topic": {"0": end, "1": end}})
    return f'v1\n{{"batchWatermarkMs":{end}}}\n{source}\n{source}'


def written(folder: Path, last: int) -> Path:
    """A checkpoint after a batch."""
    for batch in range(last + 1):
        for log in ("offsets", "commits"):
            (folder / log).mkdir(parents=True, exist_ok=True)
            (folder / log / str(batch)).write_text(plan_of(batch))
    (folder / "state").mkdir(exist_ok=True)
    (folder / "state/1.zip").write_text(f"state of {last}")
    return folder


def ends(batch: int) -> Positions:
    """Where a batch ends."""
    at = SimpleNamespace(plan=plan_of(batch), incarnation=ONE, batch=BatchId(batch))
    facts = copied_facts(cast("Any", at), LOWERED)
    assert facts is not None
    assert facts.state is not None
    return facts.state.end


def marker(batch: int, needed: int = -1) -> CommitMarker:
    """The last marker; a rebuild reads from the end of a batch on."""
    request = StartRequest(Epoch(2), "digest", stateful=True, on_change=None, place="here")
    begin = {at: Offset(0) for at in ends(0)}
    return replace(
        first_marker(request, ONE, begin, Millis(0)),
        batch=BatchId(batch),
        end=ends(batch),
        needed=ends(needed) if needed >= 0 else begin,
        eviction_ms=Millis(STEP * (batch + 1)),
        judged=Judged(1, 0, late=False, refused=0, failed=0),
    )


@dataclass
class Left:
    """What a standby of this node has left."""

    folder: Path
    incarnation: Incarnation = ONE

    def query(self, *_: object) -> FollowedQuery | None:
        """It has no query."""
        return None

    def state(self) -> FollowedState:
        """Its folder."""
        return FollowedState(self.folder, self.incarnation, OWN.version)


class World:
    """A node that starts a lane under epoch 3."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.objects = MemoryObjects()
        self.store = CheckpointStore(self.objects)
        self.checkpoints = Checkpoints(root / "own", NAMES, LIFE, SPARK)
        copies = CheckpointCopies(self.store, SystemClock(), "node1", lambda *_: True)
        host = SimpleNamespace(
            copies=copies, spark=SimpleNamespace(version=SPARK), clock=SystemClock()
        )
        log = logging.LoggerAdapter(logging.getLogger(__name__), {})
        self.state = StartState(
            OWN, cast("Any", host), self.checkpoints, None, threading.Event(), log
        )

    def has_here(self, batch: int) -> None:
        """A checkpoint of the last owner in the folder that both share."""
        written(self.checkpoints.empty(Epoch(2)), batch)
        self.checkpoints.complete(Epoch(2), ONE)

    def has_left(self, batch: int) -> None:
        """The copy that the standby of this node has."""
        self.state.followed = Left(written(self.root / "left", batch))

    def has_in_store(self, batch: int) -> None:
        """A copy in the store."""
        folder = written(self.root / "theirs/epoch-2", -1 if batch < 0 else 0)
        copies = CheckpointCopies(self.store, SystemClock(), "node2", lambda *_: True)
        copies.begin(RunningCheckpoint(NAMES, LIFE, Epoch(2), ONE, folder, SPARK))
        written(folder, batch)
        assert copies.copy(NAMES.lane.fragment, 1) is not None
        self.objects.fetched.clear()

    def starts(self, last: CommitMarker, *, amnesia: bool = False) -> Start:
        """The start after a marker."""
        request = StartRequest(
            Epoch(3), "digest", stateful=True, on_change=None, place="here", positions=last.end,
            most=1_000_000, amnesia=amnesia,
        )  # fmt: skip
        return self.state.decided(last, last, LOWERED, request)


def since(start: Start) -> int | None:
    """The batch of the state that a start begins from; None: from the log."""
    assert isinstance(start, Rebuild)
    return None if start.since is None else start.since.batch


def test_a_later_checkpoint_here_goes_before_an_older_copy(tmp_path: Path) -> None:
    """The nodes share the folder of checkpoints; the copy of the standby is of no use then."""
    world = World(tmp_path)
    world.has_here(4)
    world.has_left(2)
    found = world.starts(marker(4))
    assert isinstance(found, Continue)
    assert world.state.left is not None
    world.state.drop_left()
    assert not (tmp_path / "left").exists()


def test_of_two_older_states_the_further_one_is_taken(tmp_path: Path) -> None:
    """Whichever has it; the folder of the epoch is that one."""
    for here, left in ((3, 2), (1, 2)):
        world = World(tmp_path / f"{here}")
        world.has_here(here)
        world.has_left(left)
        assert since(world.starts(marker(6))) == max(here, left)
        state = world.checkpoints.folder(Epoch(3)) / "state/1.zip"
        assert state.read_text() == f"state of {max(here, left)}"


def test_a_copy_of_another_incarnation_is_of_no_use(tmp_path: Path) -> None:
    """The store has a newer one, perhaps."""
    world = World(tmp_path)
    world.state.followed = Left(written(tmp_path / "left", 2), Incarnation("two"))
    assert since(world.starts(marker(6))) is None
    world.has_in_store(3)
    assert since(world.starts(marker(6))) == 3


def test_a_copy_that_is_too_old_is_not_fetched(tmp_path: Path) -> None:
    """Its list has its positions: the rebuild needs none of what is before."""
    world = World(tmp_path)
    world.has_in_store(2)
    assert since(world.starts(marker(6, needed=4))) is None
    assert [key for key in world.objects.fetched if not key.endswith("copy.json")] == []
    assert since(world.starts(marker(6, needed=1))) == 2
    assert len(world.objects.fetched) > 1


def test_only_what_is_not_here_is_fetched(tmp_path: Path) -> None:
    """An older checkpoint has the first plans."""
    world = World(tmp_path)
    world.has_here(2)
    world.has_in_store(3)
    assert since(world.starts(marker(6))) == 3
    files = [key for key in world.objects.fetched if not key.endswith("copy.json")]
    copy = world.store.newest(NAMES, Epoch(2))
    assert copy is not None
    assert len(files) < len(copy.files)


def test_with_amnesia_a_level_state_is_taken_although_its_follower_has_no_query(
    tmp_path: Path,
) -> None:
    """As at the end of a move of a lane that has had no batch since its follower was built."""
    world = World(tmp_path)
    world.has_left(4)
    assert since(world.starts(marker(4), amnesia=True)) == 4
    state = world.checkpoints.folder(Epoch(3)) / "state/1.zip"
    assert state.read_text() == "state of 4"
    behind = World(tmp_path / "behind")
    behind.has_left(3)
    assert since(behind.starts(marker(4), amnesia=True)) == 3
    assert isinstance(World(tmp_path / "none").starts(marker(4), amnesia=True), SkipToEnd)
