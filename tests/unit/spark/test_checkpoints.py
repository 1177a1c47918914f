import json
from pathlib import Path

import pytest

from pipeline.ids import Epoch, Incarnation
from pipeline.lanes.start import CheckpointFacts, Unusable
from pipeline.spark.checkpoints import Checkpoints, read_facts
from pipeline.spark.lower import lower
from tests.unit.spark.support import fragment, surroundings

FRAGMENT = fragment("tow_dispatch")
LOWERED = lower(FRAGMENT, surroundings(FRAGMENT))
SPARK = "4.0.0"
SOURCE = '{"sightings-topic":{"0":5,"1":7}}\n'
OFFSETS = f'v1\n{{"batchWatermarkMs":0}}\n{SOURCE}{SOURCE}'
"""Both sides of the join read the same source: it stands twice."""


def _spark_wrote(folder: Path, planned: int, committed: int) -> None:
    for name, last in (("offsets", planned), ("commits", committed)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for batch in range(last + 1):
            (folder / name / str(batch)).write_text(OFFSETS)
    (folder / "state" / "0").mkdir(parents=True)
    (folder / "state" / "0" / "1.zip").write_bytes(b"state")
    (folder / "state" / "0" / ".1.zip.crc").write_bytes(b"sum")


def _made(checkpoints: Checkpoints, epoch: int, incarnation: str = "one") -> Path:
    folder = checkpoints.empty(Epoch(epoch))
    checkpoints.complete(Epoch(epoch), Incarnation(incarnation))
    return folder


def test_a_new_epoch_links_what_the_last_one_left(tmp_path: Path) -> None:
    """The new folder has the same facts, and what happens to the old one does not touch it."""
    checkpoints = Checkpoints(tmp_path, FRAGMENT.names, SPARK)
    first = _made(checkpoints, 1)
    _spark_wrote(first, planned=3, committed=2)
    second = checkpoints.link(Epoch(2), first)
    checkpoints.complete(Epoch(2), Incarnation("one"))
    (first / "state" / "0" / "1.zip").unlink()
    facts = read_facts(second, LOWERED, SPARK)
    assert isinstance(facts, CheckpointFacts)
    assert (facts.incarnation, facts.committed) == ("one", 2)
    assert facts.planned is not None
    assert facts.planned.batch == 3
    assert sorted(facts.planned.end.values()) == [5, 7]
    assert (second / "state" / "0" / "1.zip").read_bytes() == b"state"
    assert not (second / "state" / "0" / ".1.zip.crc").exists()


def test_half_a_copy_does_not_count(tmp_path: Path) -> None:
    """The identity is written last: a folder without one is passed over."""
    checkpoints = Checkpoints(tmp_path, FRAGMENT.names, SPARK)
    first = _made(checkpoints, 1)
    half = checkpoints.link(Epoch(2), first)
    assert checkpoints.any(Epoch(3)) == first
    assert isinstance(read_facts(half, LOWERED, SPARK), Unusable)


def test_the_newest_folder_of_an_incarnation_is_found(tmp_path: Path) -> None:
    """Others of that fragment, and folders of later epochs, are nothing to it."""
    checkpoints = Checkpoints(tmp_path, FRAGMENT.names, SPARK)
    _made(checkpoints, 1)
    second = _made(checkpoints, 2, "two")
    assert checkpoints.of(Incarnation("two"), Epoch(3)) == second
    assert checkpoints.of(Incarnation("one"), Epoch(3)) == checkpoints.folder(Epoch(1))
    assert checkpoints.of(Incarnation("two"), Epoch(2)) is None
    assert checkpoints.of(Incarnation("three"), Epoch(3)) is None


def test_old_epochs_are_removed(tmp_path: Path) -> None:
    """The last epoch's folder stays beside the present one; older ones go."""
    checkpoints = Checkpoints(tmp_path, FRAGMENT.names, SPARK)
    for epoch in range(1, 5):
        _made(checkpoints, epoch)
    assert sorted(p.name for p in checkpoints.folder(Epoch(1)).parent.iterdir()) == [
        "epoch-00000003",
        "epoch-00000004",
    ]


@pytest.mark.parametrize("damage", ["identity", "offsets", "cut", "version"])
def test_a_damaged_folder_says_so(tmp_path: Path, damage: str) -> None:
    """A file that cannot be understood is named; nothing is guessed."""
    folder = _made(Checkpoints(tmp_path, FRAGMENT.names, SPARK), 1)
    _spark_wrote(folder, planned=0, committed=0)
    match damage:
        case "identity":
            (folder / "medusa.json").write_text("{")
        case "version":
            (folder / "medusa.json").write_text(json.dumps({"format": 2, "incarnation": "one"}))
        case "cut":
            (folder / "offsets" / "0").write_text(OFFSETS[:20])
        case _:
            (folder / "offsets" / "0").write_text("v1\n{}\nnot json\n")
    found = read_facts(folder, LOWERED, SPARK)
    assert isinstance(found, Unusable)
    assert folder.name in found.why


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"spark": SPARK}, ""),
        ({"spark": "3.5.1"}, "Spark 3.5.1 wrote the checkpoint, this is Spark 4.0.0"),
        ({}, "an unknown Spark wrote the checkpoint, this is Spark 4.0.0"),
    ],
)
def test_a_folder_says_which_engine_wrote_it(
    tmp_path: Path, told: dict[str, str], why: str
) -> None:
    """It is found and read as far as that is ours; whether to go on with it is decided later."""
    checkpoints = Checkpoints(tmp_path, FRAGMENT.names, SPARK)
    folder = _made(checkpoints, 1)
    assert json.loads((folder / "medusa.json").read_text())["spark"] == SPARK
    _spark_wrote(folder, planned=3, committed=2)
    (folder / "medusa.json").write_text(json.dumps({"format": 1, "incarnation": "one", **told}))
    assert checkpoints.of(Incarnation("one"), Epoch(2)) == folder
    facts = read_facts(folder, LOWERED, SPARK)
    assert isinstance(facts, CheckpointFacts)
    assert (facts.committed, facts.foreign) == (2, why)


def test_a_folder_that_was_set_aside_counts_no_more(tmp_path: Path) -> None:
    """It stays for whoever wants to look at it."""
    checkpoints = Checkpoints(tmp_path, FRAGMENT.names, SPARK)
    other = _made(checkpoints, 1, "other")
    for epoch in (2, 3):
        _made(checkpoints, epoch)
    checkpoints.set_aside(Epoch(3))
    assert checkpoints.any(Epoch(4)) is None
    assert checkpoints.folder(Epoch(3)).is_dir()
    assert not other.exists()
