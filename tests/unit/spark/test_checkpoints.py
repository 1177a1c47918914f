import json
from pathlib import Path

import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Epoch, Incarnation
from pipeline.spark.checkpoints import Checkpoints, read_facts
from pipeline.spark.lower import lower
from tests.unit.spark.support import fragment, surroundings

FRAGMENT = fragment("tow_dispatch")
LOWERED = lower(FRAGMENT, surroundings(FRAGMENT))
OFFSETS = 'v1\n{"batchWatermarkMs":0}\n{"sightings-topic":{"0":5,"1":7}}\n'


def _spark_wrote(folder: Path, planned: int, committed: int) -> None:
    for name, last in (("offsets", planned), ("commits", committed)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for batch in range(last + 1):
            (folder / name / str(batch)).write_text(OFFSETS)
    (folder / "state" / "0").mkdir(parents=True)
    (folder / "state" / "0" / "1.zip").write_bytes(b"state")
    (folder / "state" / "0" / ".1.zip.crc").write_bytes(b"sum")


def test_a_new_epoch_links_what_the_last_one_left(tmp_path: Path) -> None:
    """The new folder has the same facts, and what happens to the old one does not touch it."""
    checkpoints = Checkpoints(tmp_path, FRAGMENT.names)
    first = checkpoints.create(Epoch(1), Incarnation("one"), "digest", None)
    _spark_wrote(first, planned=3, committed=2)
    second = checkpoints.create(
        Epoch(2), Incarnation("one"), "digest", checkpoints.newest(Epoch(2))
    )
    (first / "state" / "0" / "1.zip").unlink()
    found = read_facts(second, LOWERED)
    assert found is not None
    facts, digest = found
    assert (facts.incarnation, facts.committed, digest) == ("one", 2, "digest")
    assert facts.planned is not None
    assert facts.planned.batch == 3
    assert sorted(facts.planned.end.values()) == [5, 7]
    assert (second / "state" / "0" / "1.zip").read_bytes() == b"state"
    assert not (second / "state" / "0" / ".1.zip.crc").exists()


def test_half_a_copy_does_not_count(tmp_path: Path) -> None:
    """The identity is written last: a folder without one is passed over."""
    checkpoints = Checkpoints(tmp_path, FRAGMENT.names)
    first = checkpoints.create(Epoch(1), Incarnation("one"), "digest", None)
    checkpoints.folder(Epoch(2)).mkdir()
    assert checkpoints.newest(Epoch(3)) == first
    assert read_facts(checkpoints.folder(Epoch(2)), LOWERED) is None


def test_old_epochs_are_removed(tmp_path: Path) -> None:
    """The last epoch's folder stays beside the present one; older ones go."""
    checkpoints = Checkpoints(tmp_path, FRAGMENT.names)
    for epoch in range(1, 5):
        checkpoints.create(Epoch(epoch), Incarnation("one"), "digest", None)
    assert sorted(p.name for p in checkpoints.folder(Epoch(1)).parent.iterdir()) == [
        "epoch-00000003",
        "epoch-00000004",
    ]


@pytest.mark.parametrize("damage", ["identity", "offsets"])
def test_damage_is_named_with_the_folder(tmp_path: Path, damage: str) -> None:
    """A file that cannot be understood stops the start; nothing is guessed."""
    folder = Checkpoints(tmp_path, FRAGMENT.names).create(
        Epoch(1), Incarnation("one"), "digest", None
    )
    _spark_wrote(folder, planned=0, committed=0)
    if damage == "identity":
        (folder / "medusa.json").write_text("{")
    else:
        (folder / "offsets" / "0").write_text("v1\n{}\nnot json\n")
    with pytest.raises(BrokenInvariantError, match=str(folder)):
        read_facts(folder, LOWERED)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    """A checkpoint of a later version says so."""
    folder = Checkpoints(tmp_path, FRAGMENT.names).create(
        Epoch(1), Incarnation("one"), "digest", None
    )
    (folder / "medusa.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(BrokenInvariantError, match="format 2"):
        read_facts(folder, LOWERED)
