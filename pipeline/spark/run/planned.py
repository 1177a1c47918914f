"""Plans the first batch of a query, by writing the files that Spark writes before a batch.

A query with `offsets/0` but no `commits/0` in its checkpoint runs batch 0 up to exactly those ends,
under the watermark in that file. Rows are late by the watermark of the previous batch, which batch
0 does not have: so it drops nothing, closes the windows below the watermark and keeps the other
rows.
"""

import json
import uuid
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline.ids import Millis, Offset, TopicName
from pipeline.markers.positions import Positions
from pipeline.spark.query.lowered import Lowered

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
    """Write batch 0 into an empty checkpoint folder.

    Raises:
        OSError: it cannot be written.
    """
    # Spark identifies a query by this id; the folder of another epoch needs another one.
    identity = uuid.uuid5(uuid.NAMESPACE_URL, folder.as_uri())
    (folder / "metadata").write_text(_json({"id": str(identity)}), encoding="utf-8")
    lines = [_VERSION, _metadata(spark, watermark_ms or Millis(0), now_ms)]
    for source in lowered.leaves:
        offsets: dict[TopicName, dict[str, Offset]] = {}
        for at in sorted(end):
            if at.input == source:
                offsets.setdefault(at.topic, {})[str(at.partition)] = end[at]
        lines.append(_json(offsets))
    offsets_folder = folder / "offsets"
    offsets_folder.mkdir(parents=True)
    (offsets_folder / "0").write_text("\n".join(lines), encoding="utf-8")


def _metadata(spark: SparkSession, watermark_ms: Millis, now_ms: Millis) -> str:
    """Watermark, time and the settings that a checkpoint pins, as Spark itself writes them."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - the only way to the engine's objects
    assert jvm is not None, "a classic session has a JVM"  # noqa: S101
    streaming = jvm.org.apache.spark.sql.execution.streaming
    conf = spark._jsparkSession.conf()  # noqa: SLF001 - the same
    metadata = streaming.checkpointing.OffsetSeqMetadata.apply(watermark_ms, now_ms, conf)
    plain = json.loads(str(metadata.json()))
    # Spark sets this one in a running query's own session only.
    plain["conf"][_PARTITIONS] = spark.conf.get(_PARTITIONS)
    return _json(plain)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
