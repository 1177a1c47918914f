import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.ids import FragmentId, FragmentName, NetworkId, NetworkName, Offset, ParticipantId
from pipeline.ids import TopicName as Topic
from pipeline.names import FragmentNames
from tests.faults.states import copied, covers, differences, folder_of, offsets_in, reached

NAMES = FragmentNames(
    FragmentId(NetworkId(ParticipantId("local"), NetworkName("net")), FragmentName("counts"))
)
PARENT = "local/net/counts/stable-0"


def offset_file(watermark_ms: int, *sources: dict[str, dict[str, int]]) -> str:
    """As Spark writes it; `{}`: a source that has read nothing."""
    head = ["v1", json.dumps({"batchWatermarkMs": watermark_ms, "conf": {}})]
    return "\n".join([*head, *(json.dumps(one) if one else "-" for one in sources)])


def checkpoint(folder: Path, committed: int, text: str) -> None:
    """A checkpoint with one more batch that is planned only."""
    for name, last in (("commits", committed), ("offsets", committed + 1)):
        (folder / name).mkdir(parents=True)
        for number in range(last + 1):
            (folder / name / str(number)).write_text(text if number == committed else "later")
    (folder / "commits" / f".{committed}.crc").write_text("")


def test_an_offset_file_has_the_positions_of_all_its_sources() -> None:
    """Of a topic that two of them read, the one that is further behind counts."""
    text = offset_file(7, {"a": {"0": 3, "1": 5}}, {}, {"b": {"0": 1}}, {"a": {"0": 4, "1": 2}})
    at = offsets_in(9, text)
    assert (at.batch, at.watermark_ms) == (9, 7)
    assert dict(at.ends) == {("a", 0): 3, ("a", 1): 2, ("b", 0): 1}


def test_checkpoints_are_alike_by_positions_and_watermark() -> None:
    """The number of the batch is another one for a follower."""
    at = offsets_in(9, offset_file(7, {"a": {"0": 3}}))
    assert at.is_like(replace(at, batch=2))
    assert not at.is_like(replace(at, watermark_ms=8))
    assert not at.is_like(replace(at, ends={("a", 0): 4}))


@pytest.mark.parametrize(("ends", "found"), [({0: 3}, True), ({0: 4}, False), ({1: 1}, False)])
def test_positions_cover_ends(ends: dict[int, int], *, found: bool) -> None:
    """A partition that is not known was not read."""
    wanted = {Topic("a"): {partition: Offset(end) for partition, end in ends.items()}}
    assert covers({("a", 0): 3}, wanted) is found


def test_the_newest_checkpoint_counts_up_to_its_last_commit(tmp_path: Path) -> None:
    """Whether it is a lane's or a follower's; a planned batch is not in the state."""
    assert folder_of(tmp_path, NAMES) is None
    assert reached(None) is None
    checkpoint(tmp_path / PARENT / "epoch-00000001", 3, offset_file(1, {"a": {"0": 1}}))
    follower = tmp_path / PARENT / "epoch-00000002.1-node1"
    checkpoint(follower, 12, offset_file(2, {"a": {"0": 2}}))
    found = folder_of(tmp_path, NAMES)
    assert found == follower
    assert reached(found) == offsets_in(12, offset_file(2, {"a": {"0": 2}}))
    assert reached(copied(follower, tmp_path / "copy")) == reached(found)


def test_states_differ_by_rows_and_by_how_often_these_are_there() -> None:
    """Each side names the rows that the other one lacks."""
    one = {"0/default": Counter({"a": 2, "b": 1}), "1/left": Counter({"c": 1})}
    assert list(differences(one, one)) == []
    other = {"0/default": Counter({"a": 1, "d": 1}), "1/left": Counter({"c": 1})}
    assert list(differences(one, other)) == [
        "store 0/default: 2 rows of the owner alone: a; b",
        "store 0/default: 1 rows of the follower alone: d",
    ]
    assert list(differences({}, {"1/left": Counter({"c": 1})})) == [
        "store 1/left: 1 rows of the follower alone: c"
    ]
