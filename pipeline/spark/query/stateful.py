"""Queries with state: their rows, and the metrics of their batches; see `kinds.py`.

Event time follows the plan of each batch alone: the runner of the query sets its watermark. Spark
takes the largest value of a column as a watermark of its own; so that column is far in the past.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from pyarrow import Table
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.types import StructType

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis
from pipeline.lanes.left_out import LeftOut
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.spark.query import hidden, places, sessions
from pipeline.spark.query.emitting.as_of import as_of_rows
from pipeline.spark.query.emitting.deduplicated import deduplicated
from pipeline.spark.query.emitting.encoded import encoded
from pipeline.spark.query.emitting.grouped import grouped
from pipeline.spark.query.emitting.joined import joined
from pipeline.spark.query.emitting.judged import judged
from pipeline.spark.query.emitting.observing import (
    good,
    identified_columns,
    judged_once,
    paths_filter,
    unskipped,
    walked,
)
from pipeline.spark.query.emitting.ports import united
from pipeline.spark.query.emitting.steps import with_steps
from pipeline.spark.query.emitting.without import without
from pipeline.spark.query.lowered import (
    AsOfCore,
    DeduplicateCore,
    GroupCore,
    JoinCore,
    Lowered,
    Path,
    Source,
)
from pipeline.spark.query.metrics import BatchMetrics
from pipeline.spark.query.observed import Observations, observed
from pipeline.spark.query.optimised import optimised
from pipeline.spark.query.readers import Reader
from pipeline.spark.query.sql import any_failed, quoted

_FAR_PAST_S: Final = -9_000_000_000
_PAST: Final = "1900-01-01"


def emit(
    lowered: Lowered,
    reader: Reader,
    left_out: tuple[LeftOut, ...],
    settled_ms: Millis | None,
) -> DataFrame:
    """As of `QueryKind`; a row with a reason is a result that could not be computed.

    Its value contains its inputs as JSON.
    """
    raw = {source.input: reader(source) for source in lowered.sources}

    def port(path: Path, *, observed: bool = True) -> DataFrame:
        kept = without(raw[path.source], path.source, path.name, left_out)
        return _port(kept, lowered, path, observed=observed)

    ports, core = united(lowered, port), lowered.core
    match core:
        case GroupCore(window=SessionWindow()):
            in_time = sessions.in_time(ports["only"], raw[lowered.leaves[-1]])
            results = grouped(in_time, core, ids=lowered.ids)
        case GroupCore():
            results = grouped(ports["only"], core, ids=lowered.ids)
        case JoinCore():
            results = joined(ports["left"], ports["right"], core, settled_ms)
        case AsOfCore():
            results = as_of_rows(ports["left"], ports["right"], core, settled_ms)
        case DeduplicateCore():
            seen = united(lowered, partial(port, observed=False))
            results = deduplicated(ports["only"], seen["only"], core, settled_ms)
        case None:
            raise BrokenInvariantError("a query without a stateful box is planned as one with it")
    at_ms, failed_on = F.unix_millis(hidden.EVENT_TIME), F.col(hidden.FAILED_ON)
    more = places.row_columns(lowered) if lowered.names_rows else ()
    return optimised(encoded(_after(results, lowered), lowered, at_ms, failed_on, more))


def metrics(
    lowered: Lowered, rows: Table | None, observations: Callable[[], Observations]
) -> BatchMetrics:
    """As of `QueryKind`: Spark has observed the records."""
    del rows
    return observed(observations(), lowered)


def event_ms(lowered: Lowered) -> str:
    """As of `QueryKind`."""
    del lowered
    return f"unix_millis({hidden.EVENT_TIME})"


def _port(raw: DataFrame, lowered: Lowered, path: Path, *, observed: bool) -> DataFrame:
    """One port of the stateful box: valid rows only, under boundary-driven event time."""
    source = lowered.source(path.source)
    if observed:
        rows = judged_once(raw, lowered, path)
    else:
        rows = judged(raw, source, paths_filter(source, path))
        rows = unskipped(rows, source, lowered)
    rows, added = places.with_hidden(rows, lowered, path)
    carried = (*added, *places.passed(lowered))
    rows = _boundary_driven(rows, source, identified_columns(carried, path))
    return good(walked(rows, path, carried, observed=observed))


def _boundary_driven(rows: DataFrame, source: Source, carried: tuple[str, ...]) -> DataFrame:
    """The rows under a watermark that only the plan of a batch moves.

    Every column is wrapped in a condition on the watermark's column, which always holds, so that
    Spark pushes no filter below the watermark. There it would repeat the expression of the reason
    at each use, as in `emit_path`.
    """
    far_past = F.lit(_FAR_PAST_S).cast("timestamp")
    rows = rows.withColumn(hidden.WATERMARK, far_past).withWatermark(hidden.WATERMARK, "0 seconds")
    holds = F.col(hidden.WATERMARK) < F.lit(_PAST).cast("timestamp")
    passed = [*(c.name for c in source.columns), *carried, hidden.REASON]
    marked = F.when(holds, F.col(hidden.EVENT_TIME)).alias(
        hidden.EVENT_TIME, metadata={"spark.watermarkDelayMs": 0}
    )
    return rows.select(*[F.when(holds, F.col(quoted(c))).alias(c) for c in passed], marked)


def _after(rows: DataFrame, lowered: Lowered) -> DataFrame:
    """Apply steps to results. A failed result is kept as JSON of its inputs."""
    failed_on = F.lit(None).cast("string")
    if lowered.names_rows:  # the core may have rejected the version of a redriven row
        failed_on = F.when(F.col(hidden.REASON).isNotNull(), _inputs_json(rows, lowered))
    rows = rows.withColumn(hidden.FAILED_ON, failed_on)
    ids = (hidden.ID,) if lowered.ids else ()
    row = (hidden.RECORD, hidden.HELD, hidden.ANSWERED) if lowered.names_rows else ()
    carried = (hidden.FAILED_ON, *places.passed(lowered), *ids, *row, hidden.EVENT_TIME)
    for step in lowered.after:
        failed = any_failed(step)
        if failed is not None:
            failed_on = F.when(F.expr(failed), _inputs_json(rows, lowered))
            rows = rows.withColumn(hidden.FAILED_ON, F.coalesce(F.col(hidden.FAILED_ON), failed_on))
        rows = with_steps(rows, (step,), carried, which=True)
    return rows


def _inputs_json(rows: DataFrame, lowered: Lowered) -> Column:
    """The inputs of a result as JSON, with hidden columns only if they have a label."""
    names = dict(lowered.labels)
    shown = [c for c in rows.columns if c in names or not c.startswith(hidden.PREFIX)]
    values = F.struct(*[_visible(rows, name).alias(names.get(name, name)) for name in shown])
    return F.to_json(values, {"ignoreNullFields": "false"})


def _visible(rows: DataFrame, name: str) -> Column:
    """A column; of a side of a join without its hidden fields."""
    kind, value = rows.schema[name].dataType, F.col(quoted(name))
    fields = kind.names if isinstance(kind, StructType) else []
    unseen = [field for field in fields if field.startswith(hidden.PREFIX)]
    return value.dropFields(*unseen) if unseen else value
