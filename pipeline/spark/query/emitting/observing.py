"""Records and failures of a batch, counted by Spark while it executes the batch.

For queries of which records do not become rows; `observed.py` reads the metrics.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.spark.query import hidden
from pipeline.spark.query.emitting.judged import judged
from pipeline.spark.query.emitting.record_filter import is_for, is_sent_again, record_filter
from pipeline.spark.query.emitting.skipped import is_skipped
from pipeline.spark.query.emitting.steps import with_steps
from pipeline.spark.query.functions import checksums
from pipeline.spark.query.lowered import Lowered, Path, Source
from pipeline.spark.query.observed import PATH_METRICS, SOURCE_METRICS


def judged_once(raw: DataFrame, lowered: Lowered, path: Path) -> DataFrame:
    """Validated records, observed on the first path of the source.

    The first path also observes records redriven to other paths, and then drops them.
    """
    source = lowered.source(path.source)
    others = lowered.others(path) if path.first else ()
    rows = judged(raw, source, paths_filter(source, path, *others))
    if not path.first:
        return unskipped(rows, source, lowered)
    rows = unskipped(_observed(rows, source, lowered), source, lowered)
    if not others:
        return rows
    return rows.where(~is_sent_again(source) | is_for(("", path.name)))


def unskipped(rows: DataFrame, source: Source, lowered: Lowered) -> DataFrame:
    """Drop records whose event time was settled before their source was first read."""
    skipped = is_skipped(source, lowered.shape)
    return rows if skipped is None else rows.where(~skipped)


def paths_filter(source: Source, *paths: Path) -> Column:
    """Filter for the records of some paths."""
    return record_filter(source, tuple(path.name for path in paths))


def _observed(rows: DataFrame, source: Source, lowered: Lowered) -> DataFrame:
    """Observe counts and progress of a source, reported once per batch.

    Metrics are computed row by row, outside of the compiled plan; so each is as simple as possible.
    """
    topic, partition = F.col(hidden.TOPIC), F.col(hidden.PARTITION)
    reason, time_ms = F.col(hidden.REASON), F.col(hidden.EVENT_MS)
    own, again = topic == source.data.topic, is_sent_again(source)
    skipped = is_skipped(source, lowered.shape)
    settled = [] if skipped is None else [F.count(F.when(skipped, 1)).alias("skipped")]
    rows = rows.withColumns(
        {
            hidden.PROGRESS: F.when(own & reason.isNull(), time_ms),
            hidden.REDRIVEN: F.when(again & reason.isNull(), time_ms),
        }
    )
    return rows.observe(
        f"{SOURCE_METRICS}{source.input}",
        F.count(F.lit(1)).alias("rows"),
        F.count(reason).alias("bad"),
        F.max(F.when(reason == hidden.UNKNOWN_SCHEMA, F.hex(hidden.HANDLE))).alias("unknown"),
        F.max(hidden.REDRIVEN).alias("redriven"),
        *settled,
        *[
            F.max(F.when(partition == p, F.col(hidden.PROGRESS))).alias(f"partition_{p}")
            for p in range(source.data.partitions)
        ],
    )


def good(rows: DataFrame) -> DataFrame:
    """Drop invalid rows."""
    return rows.where(F.col(hidden.REASON).isNull() & F.col(hidden.EVENT_TIME).isNotNull())


def identified_columns(carried: tuple[str, ...], path: Path) -> tuple[str, ...]:
    """The carried columns of a path, with the place of the record if functions need it."""
    return tuple(dict.fromkeys((*carried, *hidden.PLACE))) if path.calls else carried


def walked(
    rows: DataFrame, path: Path, carried: tuple[str, ...], *, observed: bool = True
) -> DataFrame:
    """The rows after the steps of a path; counts failures, if any step can fail.

    They are counted before a record can become several rows.
    """
    identified = identified_columns(carried, path)
    rows = with_steps(rows, path.as_records, (*identified, hidden.EVENT_TIME))
    if observed and (path.calls or any(step.checks for step in path.steps)):
        failed = F.col(hidden.REASON).startswith(Reason.EVALUATION_FAILED.value)
        which = [checksums().alias("failed")] if path.calls else []
        counted = F.count(F.when(failed, 1)).alias("bad")
        rows = rows.observe(f"{PATH_METRICS}{path.name}", counted, *which)
        rows = rows.drop(*(set(identified) - set(carried)))
    return with_steps(rows, path.as_rows, (*carried, hidden.EVENT_TIME))
