"""Plans a batch of a query, by writing the files that Spark writes before a batch.

A query with `offsets/N` but no `commits/N` in its checkpoint runs batch N up to exactly those ends,
under the watermark in that file. Rows are late by the watermark of the previous batch, which batch
0 does not have: so it drops nothing, closes the windows below the watermark and keeps the other
rows.
"""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline.errors import BrokenInvariantError
from pipeline.ids import BatchId, Millis, Offset, StreamName, TopicName
from pipeline.markers.positions import Positions
from pipeline.spark.query.lowered import Lowered
from schemas.json_value import JsonObject, object_of

_VERSION = "v1"
_PARTITIONS = "spark.sql.shuffle.partitions"


def plan_first_batch(
    spark: SparkSession,
    folder: Path,
    lowered: Lowered,
    end: Positions,
    watermark_ms: Millis | None,
    now_ms: Millis,
) -> None:
    """Write batch 0 into a checkpoint folder without batches.

    Raises:
        OSError: it cannot be written.
    """
    identify(folder)
    (folder / "offsets").mkdir(parents=True, exist_ok=True)
    metadata = _metadata(spark, watermark_ms or Millis(0), now_ms)
    _write(folder, BatchId(0), metadata, lowered, end)


def identify(folder: Path) -> None:
    """Give the query of a checkpoint folder an id of its own.

    A session runs one query of an id: the start of another one ends it. The file may be a link to
    that of another folder, so it is replaced.

    Raises:
        OSError: it cannot be written.
    """
    metadata = folder / "metadata"
    for one in (metadata, _checksum(metadata)):
        one.unlink(missing_ok=True)
    identity = uuid.uuid5(uuid.NAMESPACE_URL, folder.as_uri())
    metadata.write_text(_json({"id": str(identity)}), encoding="utf-8")


def plan_next_batch(
    folder: Path,
    batch: BatchId,
    lowered: Lowered,
    end: Positions,
    watermark_ms: Millis | None,
    now_ms: Millis,
) -> None:
    """Write the batch after the last one of a checkpoint; its settings are those of that.

    Raises:
        OSError: it cannot be written, or the last one cannot be read.
        BrokenInvariantError: there is such a batch already.
    """
    offsets = folder / "offsets"
    if (offsets / str(batch)).exists():
        raise BrokenInvariantError(f"batch {batch} is planned already", place=str(folder))
    _version, before, *_ = (offsets / str(batch - 1)).read_text(encoding="utf-8").splitlines()
    metadata = {
        **object_of(json.loads(before)),
        "batchWatermarkMs": int(watermark_ms or 0),
        "batchTimestampMs": int(now_ms),
    }
    _write(folder, batch, metadata, lowered, end)


def rewrite_batch(folder: Path, batch: BatchId, lowered: Lowered, end: Positions) -> None:
    """Write the ends of a batch that was executed anew; its settings stay.

    A query that starts there begins at these ends. The file may be a link to that of another
    folder, so it is replaced.

    Raises:
        OSError: it cannot be read or written.
    """
    plan = folder / "offsets" / str(batch)
    _version, settings, *_ = plan.read_text(encoding="utf-8").splitlines()
    _checksum(plan).unlink(missing_ok=True)
    _write(folder, batch, object_of(json.loads(settings)), lowered, end)


def withdraw_batch(folder: Path, batch: BatchId) -> bool:
    """Remove the plan of a batch that was not executed to its end; False if there is none.

    Each attempt at a batch has state files of its own, so what a failed one has left is not read.

    Raises:
        OSError: it cannot be removed.
    """
    plan = folder / "offsets" / str(batch)
    if not plan.exists() or (folder / "commits" / str(batch)).exists():
        return False
    plan.unlink()
    _checksum(plan).unlink(missing_ok=True)  # of the file as Spark wrote it
    return True


def offsets_of(end: Positions, source: StreamName) -> Mapping[TopicName, Mapping[str, Offset]]:
    """The ends of one source, in the form of Spark's Kafka offsets."""
    offsets: dict[TopicName, dict[str, Offset]] = {}
    for at in sorted(end):
        if at.input == source:
            offsets.setdefault(at.topic, {})[str(at.partition)] = end[at]
    return offsets


def _write(
    folder: Path, batch: BatchId, metadata: JsonObject, lowered: Lowered, end: Positions
) -> None:
    lines = [_VERSION, _json(metadata)]
    lines += [_json(offsets_of(end, source)) for source in lowered.leaves]
    # Renamed when it is complete, as Spark does: a process may be killed at any time.
    unfinished = folder / "offsets" / f".{batch}.tmp"
    unfinished.write_text("\n".join(lines), encoding="utf-8")
    unfinished.replace(folder / "offsets" / str(batch))


def _metadata(spark: SparkSession, watermark_ms: Millis, now_ms: Millis) -> JsonObject:
    """Watermark, time and the settings that a checkpoint pins, as Spark itself writes them."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - the only way to the engine's objects
    assert jvm is not None, "a classic session has a JVM"  # noqa: S101
    streaming = jvm.org.apache.spark.sql.execution.streaming
    conf = spark._jsparkSession.conf()  # noqa: SLF001 - the same
    metadata = streaming.checkpointing.OffsetSeqMetadata.apply(watermark_ms, now_ms, conf)
    plain: JsonObject = json.loads(str(metadata.json()))
    # Spark sets this one in a running query's own session only.
    pinned = object_of(plain["conf"])
    return {**plain, "conf": {**pinned, _PARTITIONS: spark.conf.get(_PARTITIONS)}}


def _checksum(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
