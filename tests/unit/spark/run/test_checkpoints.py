import json
import shutil
from pathlib import Path

import pytest

from pipeline.errors import EnvironmentProblem
from pipeline.ids import Epoch, Incarnation, NetworkLife, NodeId, ParticipantId
from pipeline.lanes.start.facts import CheckpointFacts, Unusable
from pipeline.markers.commit_marker import NO_BATCH
from pipeline.spark.query.lower import lower
from pipeline.spark.run.checkpoints import (
    FORMAT_VERSION,
    TRIES,
    Checkpoints,
    FollowerFolder,
    remove_followed,
)
from pipeline.spark.run.linking import Disk, LocalDisk
from tests.unit.spark.support import fragment, lowering_context

FRAGMENT = fragment("tow_dispatch")
LOWERED = lower(FRAGMENT, lowering_context(FRAGMENT))
SPARK = "4.0.0"
ONE = Incarnation("one")
LIFE = NetworkLife("life")
WHOLE = {"incarnation": ONE, "life": LIFE, "spark": SPARK}
SOURCE = '{"sightings-topic":{"0":5,"1":7}}\n'
OFFSETS = f'v1\n{{"batchWatermarkMs":0}}\n{SOURCE}{SOURCE}'
"""Both sides of the join read the same source: it stands twice."""


def _checkpoints(root: Path, life: str = LIFE, disk: Disk | None = None) -> Checkpoints:
    return Checkpoints(root, FRAGMENT.names.stable, NetworkLife(life), SPARK, disk)


def _spark_wrote(folder: Path, planned: int, committed: int) -> None:
    for name, last in (("offsets", planned), ("commits", committed)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for batch in range(last + 1):
            (folder / name / str(batch)).write_text(OFFSETS)
    (folder / "state" / "0").mkdir(parents=True, exist_ok=True)
    (folder / "state" / "0" / "1.zip").write_bytes(b"state")
    (folder / "state" / "0" / ".1.zip.crc").write_bytes(b"sum")


def _made(checkpoints: Checkpoints, epoch: int, incarnation: str = ONE) -> Path:
    folder = checkpoints.empty(Epoch(epoch))
    checkpoints.complete(Epoch(epoch), Incarnation(incarnation))
    return folder


def test_a_new_epoch_links_the_files_of_the_last_one(tmp_path: Path) -> None:
    """It continues from its own copy; later changes of the old folder do not affect it."""
    checkpoints = _checkpoints(tmp_path)
    first = _made(checkpoints, 1)
    _spark_wrote(first, planned=3, committed=2)
    facts = checkpoints.adopt(Epoch(2), ONE, LOWERED)
    (first / "state" / "0" / "1.zip").unlink()
    assert isinstance(facts, CheckpointFacts)
    assert (facts.incarnation, facts.committed, facts.foreign) == (ONE, 2, "")
    assert facts.planned is not None
    assert facts.planned.batch == 3
    assert sorted(facts.planned.end.values()) == [5, 7]
    second = checkpoints.folder(Epoch(2))
    assert (second / "state" / "0" / "1.zip").read_bytes() == b"state"
    assert not (second / "state" / "0" / ".1.zip.crc").exists()


def test_the_state_of_a_checkpoint_is_that_of_its_last_committed_batch(tmp_path: Path) -> None:
    """With where it ends, and its watermark; if its plan cannot be read, there is none."""
    checkpoints = _checkpoints(tmp_path)
    folder = _made(checkpoints, 1)
    _spark_wrote(folder, planned=3, committed=2)
    other = SOURCE.replace("5", "4")
    plan = folder / "offsets" / "2"
    for text, watermark_ms in (("0", None), ("17", 17)):
        plan.write_text(f'v1\n{{"batchWatermarkMs":{text}}}\n{other}{other}')
        facts = checkpoints.adopt(Epoch(2), ONE, LOWERED)
        assert isinstance(facts, CheckpointFacts)
        assert facts.state is not None
        assert (facts.state.batch, facts.state.watermark_ms) == (2, watermark_ms)
        assert sorted(facts.state.end.values()) == [4, 7]
    for text in ("[]", "{}", '{"batchWatermarkMs":"x"}', "{"):
        plan.write_text(f"v1\n{text}\n{other}{other}")
        facts = checkpoints.adopt(Epoch(2), ONE, LOWERED)
        assert isinstance(facts, CheckpointFacts)
        assert (facts.committed, facts.state) == (2, None)


class ChangingFolder(LocalDisk):
    """Its owner acts before each file is linked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def link(self, source: Path, target: Path) -> None:
        """See `Disk`."""
        self.act()
        super().link(source, target)

    def act(self) -> None:
        """An action of the owner."""


def test_facts_are_those_of_the_copy(tmp_path: Path) -> None:
    """A batch that the owner commits meanwhile is committed only in its own folder."""

    class Committing(ChangingFolder):
        def act(self) -> None:
            _spark_wrote(self.folder, planned=4, committed=3)

    first = _made(_checkpoints(tmp_path), 1)
    _spark_wrote(first, planned=3, committed=2)
    checkpoints = _checkpoints(tmp_path, disk=Committing(first))
    facts = checkpoints.adopt(Epoch(2), ONE, LOWERED)
    assert isinstance(facts, CheckpointFacts)
    assert facts.planned is not None
    assert (facts.committed, facts.planned.batch) == (2, 3)
    copy = checkpoints.folder(Epoch(2))
    assert max(int(path.name) for path in (copy / "commits").iterdir()) == 2
    assert max(int(path.name) for path in (copy / "offsets").iterdir()) == 3


def test_a_constantly_changing_folder_is_not_used(tmp_path: Path) -> None:
    """After some attempts; files linked by one are not part of the next one's copy."""

    class Vanishing(LocalDisk):
        left = 0

        def link(self, source: Path, target: Path) -> None:
            if source.parent.name == "0" and self.left:
                self.left -= 1
                raise FileNotFoundError
            super().link(source, target)

    first, disk = _made(_checkpoints(tmp_path), 1), Vanishing()
    _spark_wrote(first, planned=3, committed=2)
    checkpoints = _checkpoints(tmp_path, disk=disk)
    disk.left = TRIES - 1
    facts = checkpoints.adopt(Epoch(2), ONE, LOWERED)
    assert isinstance(facts, CheckpointFacts)
    assert facts.committed == 2
    disk.left = TRIES
    found = checkpoints.adopt(Epoch(2), ONE, LOWERED)
    assert isinstance(found, Unusable)
    assert "epoch-00000001 has changed each time" in found.why


def test_a_folder_that_is_removed_meanwhile_is_not_used(tmp_path: Path) -> None:
    """Its identity is removed first: a partial folder is never used as a complete one."""

    class Removed(ChangingFolder):
        def act(self) -> None:
            (self.folder / "medusa.json").unlink(missing_ok=True)

    first = _made(_checkpoints(tmp_path), 1)
    _spark_wrote(first, planned=3, committed=2)
    found = _checkpoints(tmp_path, disk=Removed(first)).adopt(Epoch(2), ONE, LOWERED)
    assert isinstance(found, Unusable)
    assert "no checkpoint of its last life" in found.why


def test_a_partial_copy_does_not_count(tmp_path: Path) -> None:
    """The identity is written last: a folder without one is skipped, and later removed."""
    checkpoints = _checkpoints(tmp_path)
    first = _made(checkpoints, 1)
    _spark_wrote(first, planned=0, committed=0)
    assert isinstance(checkpoints.adopt(Epoch(2), ONE, LOWERED), CheckpointFacts)
    shutil.rmtree(checkpoints.folder(Epoch(2)) / "commits")
    facts = checkpoints.adopt(Epoch(3), ONE, LOWERED)
    assert isinstance(facts, CheckpointFacts)
    assert facts.committed == 0
    checkpoints.complete(Epoch(3), ONE)
    assert not checkpoints.folder(Epoch(2)).exists()
    assert first.exists()


def test_the_newest_folder_of_an_incarnation_is_found(tmp_path: Path) -> None:
    """Others of that fragment, and folders of later epochs, are ignored."""
    checkpoints = _checkpoints(tmp_path)
    for epoch, incarnation in ((1, "one"), (2, "two")):
        _spark_wrote(_made(checkpoints, epoch, incarnation), planned=epoch, committed=epoch)

    def committed(incarnation: str, epoch: int) -> int | None:
        found = checkpoints.adopt(Epoch(epoch), Incarnation(incarnation), LOWERED)
        return found.committed if isinstance(found, CheckpointFacts) else None

    assert committed("one", 3) == 1
    assert committed("two", 3) == 2
    assert committed("three", 3) is None


def test_a_folder_of_another_life_is_ignored(tmp_path: Path) -> None:
    """The network was destroyed and deployed again: no marker is a first start then."""
    before, now = _checkpoints(tmp_path, "before"), _checkpoints(tmp_path, "now")
    _spark_wrote(_made(before, 5), planned=3, committed=3)
    assert isinstance(before.any(Epoch(6)), CheckpointFacts)
    assert isinstance(now.any(Epoch(6)), Unusable)
    assert isinstance(now.adopt(Epoch(6), ONE, LOWERED), Unusable)
    _made(now, 6)
    assert not before.folder(Epoch(5)).exists()
    found = now.any(Epoch(7))
    assert isinstance(found, CheckpointFacts)
    assert found.incarnation == ONE


def test_folders_of_old_epochs_are_removed(tmp_path: Path) -> None:
    """The last epoch's folder is kept next to the present one."""
    checkpoints = _checkpoints(tmp_path)
    for epoch in range(1, 5):
        _made(checkpoints, epoch)
    assert sorted(p.name for p in checkpoints.folder(Epoch(1)).parent.iterdir()) == [
        "epoch-00000003",
        "epoch-00000004",
    ]


def _of_follower(root: Path, epoch: int, node: str = "b") -> Checkpoints:
    own = FollowerFolder(NodeId(node), Epoch(epoch), number=1)
    return Checkpoints(root, FRAGMENT.names.stable, LIFE, SPARK, follower=own)


def test_a_lane_goes_on_in_the_folder_of_a_follower(tmp_path: Path) -> None:
    """The next owner continues from it as from any other, and removes what is older."""
    checkpoints, follower = _checkpoints(tmp_path), _of_follower(tmp_path, 2)
    _made(checkpoints, 1)
    folder = follower.empty(Epoch(2))
    _spark_wrote(folder, planned=3, committed=3)
    facts = follower.of_follower(Epoch(2), ONE, LOWERED)
    assert isinstance(facts, CheckpointFacts)
    assert (facts.followed, facts.committed) == (True, 3)
    assert checkpoints.adopt(Epoch(3), Incarnation("two"), LOWERED) == checkpoints.adopt(
        Epoch(3), Incarnation("three"), LOWERED
    )  # it is no lane's yet
    follower.complete(Epoch(2), Incarnation("two"))
    facts = checkpoints.adopt(Epoch(3), Incarnation("two"), LOWERED)
    assert isinstance(facts, CheckpointFacts)
    assert (facts.followed, facts.committed) == (False, 3)
    checkpoints.complete(Epoch(3), Incarnation("two"))
    assert not checkpoints.folder(Epoch(1)).exists()
    follower.set_aside(Epoch(2), Incarnation("two"))
    assert isinstance(checkpoints.adopt(Epoch(3), Incarnation("two"), LOWERED), Unusable)


def test_a_follower_that_began_under_an_earlier_owner_is_taken_over(tmp_path: Path) -> None:
    """The owner has started again meanwhile; what it removes does not concern the follower."""
    owner, follower = _checkpoints(tmp_path), _of_follower(tmp_path, 2)
    folder = follower.empty(Epoch(2))
    _spark_wrote(folder, planned=3, committed=3)
    for epoch in range(1, 8):
        _made(owner, epoch)
    assert folder.exists()
    follower.complete(Epoch(8), Incarnation("eight"))
    assert follower.folder(Epoch(8)) == folder
    facts = owner.adopt(Epoch(9), Incarnation("eight"), LOWERED)
    assert isinstance(facts, CheckpointFacts)
    assert (facts.followed, facts.committed) == (False, 3)
    owner.complete(Epoch(9), Incarnation("eight"))
    _made(owner, 10)
    assert not folder.exists()


def test_what_followers_of_a_node_have_left_is_removed(tmp_path: Path) -> None:
    """Nodes may share the folder; and a lane may have one of them now."""
    taken, left, other = (
        _of_follower(tmp_path, 2).empty(Epoch(2)),
        _of_follower(tmp_path, 3).empty(Epoch(3)),
        _of_follower(tmp_path, 3, "c").empty(Epoch(3)),
    )
    _of_follower(tmp_path, 2).complete(Epoch(2), ONE)
    own = _checkpoints(tmp_path).empty(Epoch(3))
    alike = _of_follower(tmp_path, 3, "rack1-b").empty(Epoch(3))
    for epoch in (2, 3):
        _of_follower(tmp_path, epoch).discard()
    others = taken, other, own, alike
    assert [one.exists() for one in (left, *others)] == [False, True, True, True, True]
    again = _of_follower(tmp_path, 4).empty(Epoch(4))
    participant = FRAGMENT.names.stable.lane.fragment.network.participant
    remove_followed(tmp_path, ParticipantId("another"), "b")
    assert again.exists()
    remove_followed(tmp_path, participant, "b")
    assert [one.exists() for one in (again, *others)] == [False, True, True, True, True]


@pytest.mark.parametrize("damage", ["not json", "cut", "a leaf is missing"])
def test_a_damaged_log_is_reported(tmp_path: Path, damage: str) -> None:
    """A malformed file is named; nothing is guessed."""
    checkpoints = _checkpoints(tmp_path)
    folder = _made(checkpoints, 1)
    _spark_wrote(folder, planned=0, committed=0)
    text = {
        "not json": "v1\n{}\nnot json\n",
        "cut": OFFSETS[:20],
        "a leaf is missing": OFFSETS.removesuffix(SOURCE),
    }[damage]
    (folder / "offsets" / "0").write_text(text)
    found = checkpoints.adopt(Epoch(2), ONE, LOWERED)
    assert isinstance(found, Unusable)
    assert "epoch-00000002 cannot be read" in found.why


@pytest.mark.parametrize(
    "text",
    [
        "{",
        json.dumps({"format": FORMAT_VERSION - 1, **WHOLE}),
        json.dumps({"format": FORMAT_VERSION + 1, **WHOLE}),
        json.dumps({"format": FORMAT_VERSION, "incarnation": ONE, "spark": SPARK}),
        json.dumps({"format": FORMAT_VERSION, "incarnation": ONE, "life": LIFE}),
    ],
)
def test_a_folder_with_a_damaged_identity_does_not_count(tmp_path: Path, text: str) -> None:
    """Nor does one in another format."""
    checkpoints = _checkpoints(tmp_path)
    folder = _made(checkpoints, 1)
    (folder / "medusa.json").write_text(text)
    assert isinstance(checkpoints.any(Epoch(2)), Unusable)
    assert isinstance(checkpoints.adopt(Epoch(2), ONE, LOWERED), Unusable)


def test_a_folder_contains_the_engine_that_wrote_it(tmp_path: Path) -> None:
    """It is found and read as far as the format is ours; its use is decided later."""
    checkpoints = _checkpoints(tmp_path)
    folder = _made(checkpoints, 1)
    _spark_wrote(folder, planned=3, committed=2)
    identity = json.loads((folder / "medusa.json").read_text())
    assert identity["spark"] == SPARK
    (folder / "medusa.json").write_text(json.dumps({**identity, "spark": "3.5.1"}))
    facts = checkpoints.adopt(Epoch(2), ONE, LOWERED)
    assert isinstance(facts, CheckpointFacts)
    assert facts.committed == 2
    assert facts.foreign == "Spark 3.5.1 wrote the checkpoint, this is Spark 4.0.0"


def test_a_folder_that_was_set_aside_does_not_count(tmp_path: Path) -> None:
    """It is kept for diagnosis."""
    checkpoints = _checkpoints(tmp_path)
    other = _made(checkpoints, 1, "other")
    for epoch in (2, 3):
        _made(checkpoints, epoch)
    checkpoints.set_aside(Epoch(3), ONE)
    assert isinstance(checkpoints.any(Epoch(4)), Unusable)
    _made(checkpoints, 4, "two")
    assert checkpoints.folder(Epoch(3)).is_dir()
    assert not other.exists()


def test_a_query_that_fails_twice_without_a_batch_between_is_known(tmp_path: Path) -> None:
    """The folder of the next epoch has the note, and a copy for others has not."""
    checkpoints = _checkpoints(tmp_path)
    assert not checkpoints.suspected(Epoch(1), ONE)
    _spark_wrote(_made(checkpoints, 1), planned=3, committed=2)
    assert not checkpoints.suspected(Epoch(1), ONE)
    checkpoints.adopt(Epoch(2), ONE, LOWERED)
    assert checkpoints.suspected(Epoch(2), ONE)  # the folder of epoch 2 has no identity yet
    checkpoints.complete(Epoch(2), ONE)
    assert checkpoints.suspected(Epoch(2), ONE)
    _spark_wrote(checkpoints.folder(Epoch(2)), planned=3, committed=3)
    assert not checkpoints.suspected(Epoch(2), ONE)
    follower = _of_follower(tmp_path, 3)
    follower.link(Epoch(3), checkpoints.folder(Epoch(2)))
    names = {one.name for one in follower.folder(Epoch(3)).iterdir()}
    assert names == {"commits", "offsets", "state"}


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """For example with a file in its place."""
    checkpoints = _checkpoints(tmp_path)
    (tmp_path / FRAGMENT.names.network.participant).write_text("a file")
    with pytest.raises(EnvironmentProblem, match="checkpoint cannot be written"):
        checkpoints.empty(Epoch(1))


def test_the_checkpoint_of_a_follower_is_taken_over(tmp_path: Path) -> None:
    """Linked into the folder of the epoch, again if that start fails; if it is still there."""
    follower = _of_follower(tmp_path, 5)
    source = follower.empty(Epoch(5))
    _spark_wrote(source, planned=53, committed=52)
    lane = _checkpoints(tmp_path)
    _made(lane, 4)
    facts = lane.take(Epoch(5), source, ONE, LOWERED)
    assert isinstance(facts, CheckpointFacts)
    assert (facts.incarnation, facts.committed, facts.followed) == (ONE, 52, True)
    assert facts.state is not None
    assert facts.state.batch == 52
    assert (lane.folder(Epoch(5)) / "state" / "0" / "1.zip").read_bytes() == b"state"
    assert lane.take(Epoch(5), source, ONE, LOWERED) == facts  # the first start has failed
    shutil.rmtree(source)
    gone = lane.take(Epoch(5), source, ONE, LOWERED)
    assert isinstance(gone, Unusable)
    assert "cannot be linked" in gone.why
    follower.empty(Epoch(6))
    follower.discard()
    assert not follower.folder(Epoch(6)).exists()
    assert lane.folder(Epoch(4)).exists()


def test_a_follower_links_the_newest_folder_of_a_lane(tmp_path: Path) -> None:
    """That its owner uses; not one of another incarnation, network or engine."""
    owner = _checkpoints(tmp_path)
    _spark_wrote(_made(owner, 1), planned=1, committed=1)
    newest = _made(owner, 2)
    _spark_wrote(newest, planned=3, committed=2)
    follower = Checkpoints(
        tmp_path,
        FRAGMENT.names.stable,
        LIFE,
        SPARK,
        follower=FollowerFolder.new(NodeId("b"), Epoch(3)),
    )
    assert follower.newest_of(ONE) == newest
    assert follower.newest_of(Incarnation("two")) is None
    assert _checkpoints(tmp_path, life="another").newest_of(ONE) is None
    later = Checkpoints(tmp_path, FRAGMENT.names.stable, LIFE, "5.0.0")
    assert later.newest_of(ONE) is None
    assert follower.link(Epoch(3), newest) == 2
    own = follower.folder(Epoch(3))
    assert own != newest
    assert not (own / "medusa.json").exists()
    facts = follower.of_follower(Epoch(3), ONE, LOWERED)
    assert isinstance(facts, CheckpointFacts)
    assert (facts.committed, facts.followed) == (2, True)


def test_a_folder_without_a_batch_is_linked_as_none(tmp_path: Path) -> None:
    """Nothing can begin from it."""
    owner = _checkpoints(tmp_path)
    empty = _made(owner, 1)
    assert owner.link(Epoch(2), empty) == NO_BATCH
    assert isinstance(owner.take(Epoch(2), empty, ONE, LOWERED), Unusable)
