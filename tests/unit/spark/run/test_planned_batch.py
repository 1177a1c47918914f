"""Files of a planned batch in a checkpoint."""

import json
from pathlib import Path

import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.ids import BatchId, Millis, Offset, StreamName
from pipeline.markers.positions import InputPartition, Positions
from pipeline.spark.query.lower import lower
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.planned_batch import offsets_of, plan_next_batch, rewrite_batch
from tests.unit.spark.support import fragment, lowering_context

BEFORE = {"batchWatermarkMs": 5, "batchTimestampMs": 6, "conf": {"a": "b"}}


@pytest.fixture(name="lowered")
def of_tolls() -> Lowered:
    """A fragment of the toll network."""
    planned = fragment("tolls")
    return lower(planned, lowering_context(planned))


@pytest.fixture(name="folder")
def with_one_batch(tmp_path: Path) -> Path:
    """A checkpoint with batch 4."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "4").write_text(f"v1\n{json.dumps(BEFORE)}\n{{}}", encoding="utf-8")
    return tmp_path


def ends(lowered: Lowered, offset: int) -> Positions:
    """The same end in both partitions of every topic."""
    return {
        InputPartition(source.input, topic.topic, partition): Offset(offset + partition)
        for source, topic in lowered.origins
        for partition in (0, 1)
    }


def test_the_next_batch_has_the_settings_of_the_last_one(folder: Path, lowered: Lowered) -> None:
    """Its own watermark and time, and one line of ends for each leaf."""
    now_ms, end = Millis(1_700_000_000_000), ends(lowered, 7)
    plan_next_batch(folder, BatchId(5), lowered, end, Millis(60), now_ms)
    version, metadata, *sources = (folder / "offsets" / "5").read_text().splitlines()
    assert version == "v1"
    expected = {**BEFORE, "batchWatermarkMs": 60, "batchTimestampMs": now_ms}
    assert json.loads(metadata) == expected
    assert [json.loads(one) for one in sources] == [
        offsets_of(end, source) for source in lowered.leaves
    ]


def test_a_batch_before_any_event_time_has_the_watermark_0(folder: Path, lowered: Lowered) -> None:
    """As Spark itself writes it."""
    plan_next_batch(folder, BatchId(5), lowered, ends(lowered, 7), None, Millis(1))
    metadata = (folder / "offsets" / "5").read_text().splitlines()[1]
    assert json.loads(metadata)["batchWatermarkMs"] == 0


def test_a_planned_batch_is_never_planned_otherwise(folder: Path, lowered: Lowered) -> None:
    """Spark may have begun it."""
    with pytest.raises(BrokenInvariantError, match="batch 4 is planned already"):
        plan_next_batch(folder, BatchId(4), lowered, ends(lowered, 9), None, Millis(1))


def test_ends_of_a_source_are_those_of_its_own_input() -> None:
    """Two inputs may read one topic."""
    at = InputPartition(StreamName("one"), "t", 10)  # type: ignore[arg-type]
    other = InputPartition(StreamName("two"), at.topic, 10)
    end = {at: Offset(3), other: Offset(8)}
    assert offsets_of(end, StreamName("one")) == {"t": {"10": 3}}
    assert offsets_of(end, StreamName("three")) == {}


def test_the_ends_of_a_batch_are_replaced(folder: Path, lowered: Lowered) -> None:
    """In this folder only: the file may be a link."""
    plan, other = folder / "offsets" / "4", folder / "other"
    other.hardlink_to(plan)
    (folder / "offsets" / ".4.crc").write_text("of the file before", encoding="utf-8")
    rewrite_batch(folder, BatchId(4), lowered, ends(lowered, 7))
    _version, settings, *sources = plan.read_text(encoding="utf-8").splitlines()
    assert json.loads(settings) == BEFORE
    assert len(sources) == len(lowered.leaves)
    assert other.read_text(encoding="utf-8").splitlines()[2] == "{}"
    assert not (folder / "offsets" / ".4.crc").exists()
