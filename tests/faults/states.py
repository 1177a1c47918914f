"""Checkpoints at rest: how far they are, and the rows of their states, by Spark's own reader."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.ids import NO_EPOCH, Offset, TopicName
from pipeline.names import FragmentNames
from tests.faults.history import words

Stores = Mapping[str, Counter[str]]
"""State store → its rows as JSON; a row may be there several times."""
_HEAD = 2
"""Lines of an offset file before those of the sources."""


@dataclass(frozen=True, slots=True)
class At:
    """A checkpoint after its last committed batch.

    Args:
        batch: its number, which a follower counts by itself.
        ends: topic and partition → the next offset to read.
        watermark_ms: in force in it.
    """

    batch: int
    ends: Mapping[tuple[str, int], int]
    watermark_ms: int

    def is_like(self, other: "At") -> bool:
        """Whether both have the same positions and watermark, and so should have the same state."""
        return (dict(self.ends), self.watermark_ms) == (dict(other.ends), other.watermark_ms)


def covers(
    reached: Mapping[tuple[str, int], int], ends: Mapping[TopicName, Mapping[int, Offset]]
) -> bool:
    """Whether positions, by topic and partition, are behind all records before some ends."""
    return all(
        reached.get((topic, partition), 0) >= end
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    )


def folder_of(checkpoints: Path, names: FragmentNames) -> Path | None:
    """The checkpoint of a fragment with the newest commit, of a lane or a follower; None: none."""
    parent = (checkpoints / names.stable.checkpoint(NO_EPOCH)).parent
    found = []
    for folder in parent.glob("epoch-*"):
        with suppress(OSError):
            found.append(((folder / "commits").stat().st_mtime_ns, folder))
    return max(found, default=(0, None))[1]


def reached(folder: Path | None) -> At | None:
    """How far a checkpoint is, which may be changed meanwhile; None: nowhere, or not known now."""
    if folder is None:
        return None
    with suppress(OSError):
        commits = folder / "commits"
        done = [int(path.name) for path in commits.iterdir() if path.name.isdecimal()]
        if done:
            return offsets_in(max(done), (folder / "offsets" / str(max(done))).read_text())
    return None


def offsets_in(batch: int, text: str) -> At:
    """Read an offset file of Spark. Of a topic that two sources read the lower end counts."""
    lines = text.splitlines()
    ends: dict[tuple[str, int], int] = {}
    for line in lines[_HEAD:]:
        read = json.loads(line) if line.startswith("{") else {}
        for topic, partitions in read.items():
            for number, offset in partitions.items():
                place = topic, int(number)
                ends[place] = min(offset, ends.get(place, offset))
    return At(batch, ends, json.loads(lines[1])["batchWatermarkMs"])


def copied(folder: Path, to: Path) -> Path:
    """Copy a checkpoint at rest; Spark may remove files of older batches meanwhile."""
    with suppress(shutil.Error):
        shutil.copytree(folder, to)
    return to


def stores(spark: SparkSession, folder: Path, batch: int) -> Stores:
    """All rows of the state after a batch."""
    # State stores report to a coordinator, which Spark starts with its manager of queries.
    assert spark.streams.active == []
    metadata = spark.read.format("state-metadata").load(str(folder)).collect()
    found: dict[str, Counter[str]] = {}
    for operator, store in sorted({(one.operatorId, one.stateStoreName) for one in metadata}):
        rows = (
            spark.read.format("statestore")
            .option("batchId", batch)
            .option("operatorId", operator)
            .option("storeName", store)
            .load(str(folder))
        )
        texts = rows.select(F.to_json(F.struct("key", "value")).alias("row")).collect()
        found[f"{operator}/{store}"] = Counter(one.row for one in texts)
    return found


def differences(one: Stores, other: Stores) -> Iterator[str]:
    """How two states differ, as multisets of rows."""
    for store in sorted(one.keys() | other.keys()):
        left, right = one.get(store, Counter()), other.get(store, Counter())
        for which, rows in (("the owner", left - right), ("the follower", right - left)):
            if rows:
                text = words(sorted(rows.elements()))
                yield f"store {store}: {rows.total()} rows of {which} alone: {text}"
