"""Copies of the checkpoint of a running lane, and what a start gets of them."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from pipeline.checkpoint_store.manifest import CheckpointCopy
from pipeline.checkpoint_store.store import CheckpointStore
from pipeline.errors import EnvironmentProblem, MedusaError, UnavailableError
from pipeline.ids import BatchId, Epoch, Incarnation, NetworkId, NetworkLife
from pipeline.lanes.start.facts import CheckpointFacts
from pipeline.markers.commit_marker import NO_BATCH
from pipeline.spark.run.checkpoint_copies import KEPT_S, CheckpointCopies, RunningCheckpoint
from pipeline.spark.run.checkpoint_fetch import StalledError, Wanted, fetch_at_once
from pipeline.spark.run.checkpoints import IDENTITY, Checkpoints, copied_facts
from pipeline.system_clock import SystemClock
from tests.memory_objects import MemoryObjects
from tests.unit.deploy.twins import TwinClock
from tests.unit.spark.run.test_checkpoints import FRAGMENT, LIFE, LOWERED, OFFSETS, ONE, SPARK

NAMES = FRAGMENT.names.stable
ID = FRAGMENT.names.id
EVERY_MS = 1_000


class Lane:
    """A lane that writes its checkpoint, batch by batch, and what is copied of it."""

    def __init__(self, root: Path, epoch: int = 1, objects: MemoryObjects | None = None) -> None:
        self.objects = objects or MemoryObjects()
        self.store = CheckpointStore(self.objects)
        self.folder = root / f"epoch-{epoch}"
        self.clock = TwinClock()
        self.is_destroyed = False
        self.asked: list[tuple[NetworkId, NetworkLife]] = []
        self.copies = CheckpointCopies(self.store, self.clock, "node1", self.is_deployed)
        self.epoch = Epoch(epoch)
        self.running = RunningCheckpoint(NAMES, LIFE, self.epoch, ONE, self.folder, SPARK)
        self.copies.begin(self.running)

    def is_deployed(self, network: NetworkId, life: NetworkLife) -> bool:
        """Whether its network is in the catalog."""
        self.asked.append((network, life))
        return not self.is_destroyed

    def writes(self, batch: int) -> None:
        """Write a batch, and remove what is old."""
        for log in ("offsets", "commits"):
            (self.folder / log).mkdir(parents=True, exist_ok=True)
            (self.folder / log / str(batch)).write_text(OFFSETS)
        state = self.folder / "state/0/0"
        state.mkdir(parents=True, exist_ok=True)
        (state / f"{batch + 1}_{batch}.changelog").write_text(f"changes of {batch}")
        (self.folder / IDENTITY).write_text("whose it is")
        (state / f"{batch - 5}_{batch - 6}.changelog").unlink(missing_ok=True)

    def copy(self) -> CheckpointCopy:
        """Copy it, once that is due."""
        self.clock.sleep(EVERY_MS / 1_000)
        found = self.copies.copy(ID, EVERY_MS)
        assert found is not None
        return found


def paths(copy: CheckpointCopy) -> set[str]:
    """The paths of its files."""
    return {one.path for one in copy.files}


def wanted(epoch: int = 1, incarnation: str = ONE, life: str = LIFE, spark: str = SPARK) -> Wanted:
    """What a start after this epoch wants."""
    return Wanted(NAMES, NetworkLife(life), Incarnation(incarnation), Epoch(epoch), spark)


def test_a_copy_has_what_a_query_needs_to_go_on(tmp_path: Path) -> None:
    """The newest two entries of the logs, the state, and not the identity of the folder."""
    lane = Lane(tmp_path)
    for batch in range(4):
        lane.writes(batch)
    (lane.folder / "offsets/4").write_text(OFFSETS)  # planned, and not executed
    copy = lane.copy()
    logs = {f"{log}/{batch}" for log in ("offsets", "commits") for batch in (2, 3)}
    state = {f"state/0/0/{batch + 1}_{batch}.changelog" for batch in range(4)}
    assert paths(copy) == logs | state
    assert (copy.batch, copy.epoch, copy.incarnation, copy.spark) == (3, 1, ONE, SPARK)
    assert lane.store.newest(NAMES, Epoch(1)) == copy
    assert not list(tmp_path.glob("copy-*"))


def test_only_what_has_changed_is_sent(tmp_path: Path) -> None:
    """Nothing, as long as no batch was written; what two copies do not have is removed."""
    lane = Lane(tmp_path)
    lane.writes(0)
    first = lane.copy()
    lane.clock.sleep(2)
    assert lane.copies.copy(ID, EVERY_MS) is None
    lane.objects.sent.clear()
    lane.writes(1)
    lane.copy()
    names = [key.rpartition("/")[2] for key in lane.objects.sent]
    assert names[-1] == "copy.json"
    assert len(names) == 2  # the logs have the content of those before
    for batch in range(2, 12):
        lane.writes(batch)
        last = lane.copy()
        lane.clock.sleep(KEPT_S)
    before = lane.objects.content.keys()
    assert not first.objects <= {key.rpartition("/")[2] for key in before}
    assert {key.rpartition("/")[2] for key in before} - {"copy.json"} >= last.objects
    assert len(before) <= 2 * len(last.objects)


def test_a_copy_that_fails_is_made_again(tmp_path: Path) -> None:
    """The last one stays; what was sent before the failure may be sent again."""
    lane = Lane(tmp_path)
    lane.writes(0)
    first = lane.copy()
    lane.writes(1)
    lane.objects.fails_after = 1
    lane.clock.sleep(1)
    with pytest.raises(UnavailableError):
        lane.copies.copy(ID, EVERY_MS)
    assert lane.store.newest(NAMES, Epoch(1)) == first
    lane.objects.fails_after = None
    assert lane.copy().batch == 1


def test_what_does_not_run_is_not_copied(tmp_path: Path) -> None:
    """Neither before its first batch, nor after its end; another epoch's end is not its own."""
    lane = Lane(tmp_path)
    assert lane.copies.copy(ID, EVERY_MS) is None
    lane.writes(0)
    lane.copies.end(NAMES, Epoch(0))
    lane.copy()
    lane.writes(1)
    lane.copies.end(NAMES, Epoch(1))
    lane.clock.sleep(1)
    assert lane.copies.copy(ID, EVERY_MS) is None


def test_a_copy_is_made_as_often_as_asked_and_first_when_a_batch_was_written(
    tmp_path: Path,
) -> None:
    """What the lane has found there when it began may be damaged: no batch has read it yet."""
    lane = Lane(tmp_path)
    lane.writes(0)
    lane.copies.begin(lane.running)
    assert lane.copies.copy(ID, EVERY_MS) is None
    lane.writes(1)
    assert lane.copies.copy(ID, EVERY_MS) is not None
    lane.writes(2)
    assert lane.copies.copy(ID, EVERY_MS) is None
    lane.clock.sleep(EVERY_MS / 1_000)
    assert lane.copies.copy(ID, EVERY_MS) is not None
    lane.writes(3)
    lane.copies.begin(lane.running)  # another start: its first copy is due at once
    lane.writes(4)
    assert lane.copies.copy(ID, EVERY_MS) is not None


def test_copies_of_a_damaged_state_are_discarded(tmp_path: Path) -> None:
    """And none is made of it."""
    lane = Lane(tmp_path)
    lane.writes(0)
    lane.copy()
    lane.writes(1)
    lane.copies.discard(lane.running)
    lane.clock.sleep(1)
    assert lane.copies.copy(ID, EVERY_MS) is None
    assert lane.store.newest(NAMES, Epoch(1)) is None


def test_a_copy_of_a_lane_that_ends_meanwhile_is_none(tmp_path: Path) -> None:
    """Its state may turn out to be damaged just then."""
    lane = Lane(tmp_path)
    lane.writes(0)

    class Ending(MemoryObjects):
        def send(self, key: str, source: Path) -> None:
            super().send(key, source)
            lane.copies.discard(lane.running)

    lane.copies.store = CheckpointStore(Ending())
    lane.clock.sleep(1)
    assert lane.copies.copy(ID, EVERY_MS) is None
    assert lane.copies.store.newest(NAMES, Epoch(1)) is None


class _Destroying(MemoryObjects):
    """The network is destroyed while one object is being written."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self.when, self.lane = when, cast("Lane", None)

    def write(self, key: str, content: bytes) -> None:
        """See `Objects`."""
        if key.endswith(self.when) and not self.lane.is_destroyed:
            self.lane.copies.end(NAMES, self.lane.epoch)
            self.lane.is_destroyed = True
            self.content.clear()
        super().write(key, content)


@pytest.mark.parametrize("when", ["copy.json", ""])
def test_a_copy_of_a_network_that_is_destroyed_meanwhile_is_removed(
    when: str, tmp_path: Path
) -> None:
    """`destroy` waits for the lane, and not for its copy: at its first object, or at its list."""
    objects = _Destroying(when)
    objects.lane = lane = Lane(tmp_path, objects=objects)
    lane.writes(0)
    lane.clock.sleep(1)
    lane.copies.copy(ID, EVERY_MS)
    assert lane.is_destroyed
    assert objects.sent
    assert objects.content == {}
    assert lane.asked == [(ID.network, LIFE)]


def test_a_copy_of_a_lane_that_ends_stays_if_its_network_is_there(tmp_path: Path) -> None:
    """It was paused, or moved: the next start uses it. One that runs is not asked for."""
    lane = Lane(tmp_path)
    lane.writes(0)
    lane.copy()
    assert lane.asked == []
    objects = _Destroying("copy.json")
    objects.lane = ending = Lane(tmp_path / "ending", objects=objects)
    ending.writes(0)
    ending.clock.sleep(1)
    ending.copies._is_deployed = lambda *_: True
    assert ending.copies.copy(ID, EVERY_MS) is not None
    assert ending.store.newest(NAMES, Epoch(1)) is not None


def test_a_node_that_stops_begins_no_copy(tmp_path: Path) -> None:
    """What was copied stays."""
    lane = Lane(tmp_path)
    lane.writes(0)
    copy = lane.copy()
    lane.writes(1)
    lane.clock.sleep(1)
    lane.copies.close()
    assert lane.copies.copy(ID, EVERY_MS) is None
    assert lane.store.newest(NAMES, Epoch(1)) == copy


def test_the_first_copy_of_an_owner_removes_those_before(tmp_path: Path) -> None:
    """And one that was fenced damages nothing that the new owner has written."""
    old = Lane(tmp_path)
    old.writes(0)
    old.copy()
    new = Lane(tmp_path, epoch=2, objects=old.objects)
    new.writes(0)
    copy = new.copy()
    assert {key.split("/")[-2] for key in old.objects.content} == {"epoch-00000002"}
    old.writes(1)
    old.copy()
    assert new.store.newest(NAMES, Epoch(2)) == copy


def test_the_first_copy_of_an_owner_sends_only_what_it_has_changed(tmp_path: Path) -> None:
    """It begins from the files of the owner before; also if the list of that one is damaged."""
    old = Lane(tmp_path)
    for batch in range(3):
        old.writes(batch)
    old.copy()
    for epoch, damaged in ((2, False), (3, True)):
        new = Lane(tmp_path, epoch=epoch, objects=old.objects)
        for batch in range(3):
            new.writes(batch)
        new.copies.begin(new.running)
        new.writes(3)
        if damaged:
            key = next(key for key in old.objects.content if key.endswith("copy.json"))
            old.objects.content[key] = b"damage"
        old.objects.sent.clear()
        old.objects.copied.clear()
        copy = new.copy()
        files = [key for key in old.objects.sent if not key.endswith("copy.json")]
        everything = len(copy.objects)
        assert len(files) == (everything if damaged else 1)
        assert len(old.objects.copied) == (0 if damaged else everything - 1)
        assert {key.split("/")[-2] for key in old.objects.content} == {f"epoch-{epoch:08}"}
        beside, stop = tmp_path / f"here/epoch-{epoch}", threading.Event()
        assert fetch_at_once(new.store, wanted(epoch), NO_BATCH, beside, SystemClock(), stop)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """It is an error of the machine, and the lane runs on."""
    lane = Lane(tmp_path)
    lane.writes(0)
    (tmp_path / "copy-node1").write_text("in the way")
    with pytest.raises(EnvironmentProblem, match="copy-node1: the checkpoint cannot be copied"):
        lane.copies.copy(ID, EVERY_MS)


def test_a_start_takes_the_newest_copy(tmp_path: Path) -> None:
    """Its folder is a checkpoint of the lane, from which it can begin."""
    lane = Lane(tmp_path / "there")
    lane.writes(0)
    lane.writes(1)
    copy = lane.copy()
    beside, stop = tmp_path / "here/epoch-2", threading.Event()
    found = fetch_at_once(lane.store, wanted(), NO_BATCH, beside, SystemClock(), stop)
    assert found is not None
    assert found[0] == copy
    checkpoints = Checkpoints(tmp_path / "own", NAMES, LIFE, SPARK)
    facts = checkpoints.take(Epoch(2), found[1], ONE, LOWERED)
    assert isinstance(facts, CheckpointFacts)
    assert (facts.committed, facts.followed) == (1, True)


@pytest.mark.parametrize(
    "other",
    [
        wanted(incarnation="two"),
        wanted(life="another"),
        wanted(spark="5.0.0"),
        wanted(epoch=20),
    ],
)
def test_a_copy_of_something_else_is_of_no_use(other: Wanted, tmp_path: Path) -> None:
    """Of another lane, network or engine; or none of a late epoch."""
    lane = Lane(tmp_path)
    lane.writes(0)
    lane.copy()
    assert wanted().newest(lane.store) is not None
    assert other.newest(lane.store) is None


def test_a_copy_that_does_not_fit_is_not_fetched(tmp_path: Path) -> None:
    """Its list says where its state ends; one of an earlier version says nothing."""
    lane = Lane(tmp_path / "there")
    lane.writes(0)
    copy = lane.copy()
    facts = copied_facts(copy, LOWERED)
    assert facts is not None
    assert facts.state is not None
    assert (facts.incarnation, facts.committed, facts.followed) == (ONE, 0, True)
    assert sorted(facts.state.end.values()) == [5, 7]
    assert copied_facts(replace(copy, plan=""), LOWERED) is None
    assert copied_facts(replace(copy, plan="v1\n{"), LOWERED) is None
    asked = list[CheckpointCopy]()
    assert replace(wanted(), fits=lambda one: not asked.append(one)).newest(lane.store) == copy  # type: ignore[func-returns-value]
    assert asked == [copy]
    assert replace(wanted(), fits=lambda _: False).newest(lane.store) is None


def test_files_of_an_older_checkpoint_are_not_fetched(tmp_path: Path) -> None:
    """By their content: another file of that name is."""
    lane = Lane(tmp_path / "there")
    for batch in range(3):
        lane.writes(batch)
    copy = lane.copy()
    beside, stop = tmp_path / "here/epoch-2", threading.Event()
    had = "state/0/0/1_0.changelog"
    for path, content in ((had, "changes of 0"), ("state/0/0/2_1.changelog", "changes of 9")):
        (beside / path).parent.mkdir(parents=True, exist_ok=True)
        (beside / path).write_text(content)
    digests = {one.path: one.sha256 for one in copy.files}
    lane.objects.content = {
        key: content
        for key, content in lane.objects.content.items()
        if not key.endswith(digests[had])
    }
    found = fetch_at_once(lane.store, wanted(), NO_BATCH, beside, SystemClock(), stop)
    assert found is not None
    for number in range(3):
        path = f"state/0/0/{number + 1}_{number}.changelog"
        assert (found[1] / path).read_text() == f"changes of {number}"


def test_a_copy_that_is_not_newer_is_not_fetched(tmp_path: Path) -> None:
    """The node has a state of that batch."""
    lane = Lane(tmp_path / "there")
    lane.writes(0)
    lane.copy()
    beside, stop = tmp_path / "here/epoch-2", threading.Event()
    assert fetch_at_once(lane.store, wanted(), BatchId(0), beside, SystemClock(), stop) is None
    assert not beside.parent.exists()


def test_a_copy_with_a_damaged_file_is_removed_again(tmp_path: Path) -> None:
    """The start goes on without it."""
    lane = Lane(tmp_path / "there")
    lane.writes(0)
    lane.copy()
    key = next(key for key in lane.objects.content if not key.endswith("copy.json"))
    lane.objects.content[key] = b"damage"
    beside, stop = tmp_path / "here/epoch-2", threading.Event()
    with pytest.raises(MedusaError, match="has another content"):
        fetch_at_once(lane.store, wanted(), NO_BATCH, beside, SystemClock(), stop)
    assert list(beside.parent.iterdir()) == []


class _Hanging(MemoryObjects):
    """Never delivers a file, as a folder whose server is gone."""

    def __init__(self, *, lists: bool) -> None:
        super().__init__()
        self.lists = lists
        self.released, self.waits = threading.Event(), threading.Event()

    def read(self, key: str) -> bytes | None:
        """See `Objects`."""
        if not self.lists or not key.endswith("copy.json"):
            self.waits.set()
            self.released.wait(60)
        return super().read(key)


class _Hasty(SystemClock):
    """A clock on which nothing is delivered for long."""

    def __init__(self) -> None:
        self.calls = 0

    def monotonic_s(self) -> float:
        """A second later with each call."""
        self.calls += 1
        return float(self.calls)


@pytest.mark.parametrize("lists", [True, False])
def test_a_store_that_hangs_does_not_hold_a_start(lists: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """After a while it goes on; what is delivered later is removed."""
    objects = _Hanging(lists=True)
    lane = Lane(tmp_path / "there", objects=objects)
    lane.writes(0)
    lane.copy()
    objects.lists = lists
    beside, stop = tmp_path / "here/epoch-2", threading.Event()
    with pytest.raises(StalledError, match="has delivered nothing for 10 s"):
        fetch_at_once(lane.store, wanted(), NO_BATCH, beside, _Hasty(), stop)
    objects.released.set()


def test_a_stop_ends_the_wait_for_a_store(tmp_path: Path) -> None:
    """Without an error."""
    objects = _Hanging(lists=False)
    stop = threading.Event()
    stop.set()
    store, beside = CheckpointStore(objects), tmp_path / "here/epoch-2"
    assert fetch_at_once(store, wanted(), NO_BATCH, beside, SystemClock(), stop) is None
    objects.released.set()
