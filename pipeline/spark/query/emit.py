"""Emission of a lowered plan as DataFrame calls: one short function per part, no decisions.

Event time follows the plan of each batch alone: the runner of the query sets its watermark. Spark
takes the largest value of a column as a watermark of its own; so that column is far in the past.
"""

from collections.abc import Callable
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.types import StructType

from pipeline.ids import Millis, SchemaId, StreamName
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.left_out import LeftOut
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.windows import WINDOW_END, WINDOW_START
from pipeline.spark.query import counted, hidden, places, result_ids, sessions
from pipeline.spark.query.emitting import decoded
from pipeline.spark.query.emitting.as_of import as_of_rows
from pipeline.spark.query.emitting.deduplicated import deduplicated
from pipeline.spark.query.emitting.joined import joined
from pipeline.spark.query.emitting.judged import judged
from pipeline.spark.query.emitting.record_filter import (
    is_for,
    is_sent_again,
    record_filter,
)
from pipeline.spark.query.emitting.sifted import CARRIED, sifted
from pipeline.spark.query.emitting.skipped import is_skipped
from pipeline.spark.query.explode import exploded
from pipeline.spark.query.functions import called, checksums
from pipeline.spark.query.hidden import Failed
from pipeline.spark.query.lowered import (
    AsOfCore,
    Call,
    Check,
    DeduplicateCore,
    Encoding,
    Explode,
    GroupCore,
    JoinCore,
    Keep,
    Lowered,
    Path,
    Project,
    Source,
    Step,
)
from pipeline.spark.query.optimised import optimised
from pipeline.spark.query.placing import BY_KEY
from pipeline.spark.query.readers import Reader
from pipeline.spark.query.sql import any_failed, quoted
from schemas import wire

_FAR_PAST_S = -9_000_000_000
_PAST = "1900-01-01"
SOURCE_METRICS = "source_"
PATH_METRICS = "path_"


def emit(
    lowered: Lowered,
    reader: Reader,
    left_out: tuple[LeftOut, ...] = (),
    settled_ms: Millis | None = None,
) -> DataFrame:
    """Emit the whole query: rows of (key, value, timestamp_ms, partition, reason), and id if any.

    `left_out` are records to exclude from the results of a stateful fragment, in a rebuild.
    `settled_ms` is the lane's promise before the query began. `reason` is null in a result. Else
    the row is a result that could not be computed, and `value` contains its inputs as JSON; or, if
    `Lowered.counted`, a record without a result, and `value` contains its first bytes if it is
    unfit: then all rows have the columns of `counted.py` as well.
    """
    raw = {source.input: reader(source) for source in lowered.sources}
    core = lowered.core
    if core is None:
        ports = _ports(lowered, lambda p: _passed(raw[p.source], lowered, p))
        rows = _encoded(ports["only"], lowered)
        return optimised(rows) if lowered.counted else rows

    def port(path: Path, *, observed: bool = True) -> DataFrame:
        kept = _without(raw[path.source], path.source, path.name, left_out)
        return _port(kept, lowered, path, observed=observed)

    ports = _ports(lowered, port)
    match core:
        case GroupCore(window=SessionWindow()):
            in_time = sessions.in_time(ports["only"], raw[lowered.leaves[-1]])
            results = _grouped(in_time, core, ids=lowered.ids)
        case GroupCore():
            results = _grouped(ports["only"], core, ids=lowered.ids)
        case JoinCore():
            results = joined(ports["left"], ports["right"], core, settled_ms, ids=lowered.ids)
        case AsOfCore():
            results = as_of_rows(ports["left"], ports["right"], core, settled_ms, ids=lowered.ids)
        case DeduplicateCore():
            seen = _ports(lowered, partial(port, observed=False))
            results = deduplicated(ports["only"], seen["only"], core, settled_ms)
    return _encoded(_after(results, lowered), lowered)


def _ports(lowered: Lowered, rows_of: Callable[[Path], DataFrame]) -> dict[str, DataFrame]:
    """The rows of each port, united over its paths."""
    ports: dict[str, DataFrame] = {}
    for path in lowered.paths:
        rows = rows_of(path)
        ports[path.port] = ports[path.port].unionByName(rows) if path.port in ports else rows
    return ports


def emit_path(
    lowered: Lowered, path: Path, reader: Reader, left_out: tuple[LeftOut, ...] = ()
) -> DataFrame:
    """Emit one path over a batch's ranges, with the original records, for inspection.

    `left_out`: records to exclude.
    """
    source = lowered.source(path.source)
    raw = _without(reader(source), source.input, path.name, left_out)
    rows = judged(raw, source, _paths_filter(source, path))
    # Spark pushes no filter below an observation. It would push one on the reason, and repeat the
    # expression of the reason at each use: possibly more than fits into memory.
    rows = rows.observe("judged", F.count(F.lit(1)))
    return _with_steps(rows, path.steps, hidden.ORIGINAL, which=True)


def unknown_schemas(
    source: Source, reader: Reader, left_out: tuple[LeftOut, ...] = ()
) -> DataFrame:
    """Count schemas in a batch's ranges that the query was not planned with.

    In the form of `emitting.decoded.unknown`.
    """
    return decoded.unknown(_without(reader(source), source.input, "", left_out), source)


# --- source ---------------------------------------------------------------------------------


def _without(
    raw: DataFrame, stream: StreamName, port: str, left_out: tuple[LeftOut, ...]
) -> DataFrame:
    """Exclude the records that an earlier incarnation left out on this path."""
    rows = [
        (one.at.topic, one.at.partition, int(one.offset))
        for one in left_out
        if one.at.input == stream and one.port in {"", port}
    ]
    if not rows:
        return raw
    columns = ["topic", "partition", "offset"]
    gone = raw.sparkSession.createDataFrame(rows, "topic string, partition int, offset bigint")
    return raw.join(F.broadcast(gone), columns, "left_anti")


def _judged_once(raw: DataFrame, lowered: Lowered, path: Path) -> DataFrame:
    """Validated records, observed on the first path of the source.

    The first path also observes records redriven to other paths, and then drops them.
    """
    source = lowered.source(path.source)
    others = lowered.others(path) if path.first else ()
    rows = judged(raw, source, _paths_filter(source, path, *others))
    if not path.first:
        return _unskipped(rows, source, lowered)
    rows = _unskipped(_observed(rows, source, lowered), source, lowered)
    if not others:
        return rows
    return rows.where(~is_sent_again(source) | is_for(("", path.name)))


def _unskipped(rows: DataFrame, source: Source, lowered: Lowered) -> DataFrame:
    """Drop records whose event time was settled before their source was first read."""
    skipped = is_skipped(source, lowered.shape)
    return rows if skipped is None else rows.where(~skipped)


def _paths_filter(source: Source, *paths: Path) -> Column:
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


# --- paths ----------------------------------------------------------------------------------


def _passed(raw: DataFrame, lowered: Lowered, path: Path) -> DataFrame:
    """The valid rows of one path through stateless boxes."""
    if lowered.counted:
        rows, added = places.with_hidden(sifted(raw, lowered, path), lowered, path)
        carried = (*_passed_columns(lowered), *added, *CARRIED)
        return _with_steps(rows, path.steps, carried, keep_all=True)
    rows = _judged_once(raw, lowered, path)
    rows, added = places.with_hidden(rows, lowered, path)
    carried = (*_passed_columns(lowered), *added)
    return _good(_walked(rows, path, carried))


def _good(rows: DataFrame) -> DataFrame:
    """Drop invalid rows."""
    return rows.where(F.col(hidden.REASON).isNull() & F.col(hidden.EVENT_TIME).isNotNull())


def _port(raw: DataFrame, lowered: Lowered, path: Path, *, observed: bool) -> DataFrame:
    """One port of the stateful box: valid rows only, under boundary-driven event time."""
    source = lowered.source(path.source)
    if observed:
        rows = _judged_once(raw, lowered, path)
    else:
        rows = judged(raw, source, _paths_filter(source, path))
        rows = _unskipped(rows, source, lowered)
    rows, added = places.with_hidden(rows, lowered, path)
    carried = (*added, *_passed_columns(lowered))
    identified = _identified(carried, path)
    rows = _boundary_driven(rows, source, identified)
    return _good(_walked(rows, path, carried, observed=observed))


def _passed_columns(lowered: Lowered) -> tuple[str, ...]:
    """Columns of a record that place a result with the record's key."""
    return hidden.PASSED if lowered.keeps_key else ()


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


def _with_steps(
    rows: DataFrame,
    steps: tuple[Step, ...],
    carried: tuple[str, ...],
    *,
    which: bool = False,
    keep_all: bool = False,
) -> DataFrame:
    """Apply stateless steps; a row that fails in one is set aside, with the failure if `which`.

    `keep_all`: a record without a result stays as a row with that reason; its time is in `carried`.
    """
    time = () if keep_all else (hidden.EVENT_TIME,)
    always = (*carried, *time, hidden.REASON)
    for step in steps:
        reason = F.col(hidden.REASON)
        failed = any_failed(step)
        if failed is not None:
            failure = _which(step.checks) if which else F.lit(Reason.EVALUATION_FAILED.value)
            reason = F.coalesce(reason, F.when(F.expr(failed), failure))
        match step:
            case Keep() if keep_all:
                left_out = F.when(~F.coalesce(F.expr(step.where), F.lit(False)), hidden.NO_RESULT)
                rows = rows.withColumn(hidden.REASON, F.coalesce(reason, left_out))
            case Keep():
                rows = rows.withColumn(hidden.REASON, reason)
                rows = rows.where(F.expr(step.where) | F.col(hidden.REASON).isNotNull())
            case Project():
                columns = [F.expr(sql).alias(name) for name, sql in step.columns]
                kept = [F.col(name) for name in always if name != hidden.REASON]
                rows = rows.select(*kept, reason.alias(hidden.REASON), *columns)
            case Call():
                rows = called(rows, step, always)
            case Explode():
                rows = exploded(rows, step, keep_all=keep_all)
    return rows


def _which(checks: tuple[Check, ...]) -> Column:
    """The first failed check of a failed row."""
    *before, last = checks
    found = F.lit(_failure(last))
    for check in reversed(before):
        found = F.when(F.expr(check.failed), _failure(check)).otherwise(found)
    return found


def _failure(check: Check) -> str:
    return str(Failed(check.origin.box, check.origin.field, check.text))


def _identified(carried: tuple[str, ...], path: Path) -> tuple[str, ...]:
    """The carried columns of a path, with the place of the record if functions need it."""
    return tuple(dict.fromkeys((*carried, *hidden.PLACE))) if path.calls else carried


def _walked(
    rows: DataFrame, path: Path, carried: tuple[str, ...], *, observed: bool = True
) -> DataFrame:
    """The rows after the steps of a path; counts failures, if any step can fail.

    They are counted before a record can become several rows.
    """
    identified = _identified(carried, path)
    rows = _with_steps(rows, path.as_records, identified)
    if observed and (path.calls or any(step.checks for step in path.steps)):
        failed = F.col(hidden.REASON).startswith(Reason.EVALUATION_FAILED.value)
        which = [checksums().alias("failed")] if path.calls else []
        counted = F.count(F.when(failed, 1)).alias("bad")
        rows = rows.observe(f"{PATH_METRICS}{path.name}", counted, *which)
        rows = rows.drop(*(set(identified) - set(carried)))
    return _with_steps(rows, path.as_rows, carried)


# --- cores and results ----------------------------------------------------------------------


def _grouped(rows: DataFrame, core: GroupCore, *, ids: bool) -> DataFrame:
    window = core.window
    if isinstance(window, SessionWindow):
        rows = sessions.with_cut(rows, window)
        times = [sessions.session(window).alias("window"), F.col(sessions.CUT)]
    else:
        lengths = (window.size_ms, window.slide_ms, window.offset_ms)
        times = [F.window(hidden.EVENT_TIME, *(f"{length} milliseconds" for length in lengths))]
    functions = [F.expr(sql).alias(name) for name, sql in core.functions]
    grouped = rows.groupBy(*times, *[F.col(quoted(name)) for name in core.by])
    counted = grouped.agg(*functions) if functions else grouped.agg(F.count("*").alias("__rows"))
    return counted.select(
        *[F.col(quoted(name)) for name in core.by],
        F.col("window.start").alias(WINDOW_START),
        F.col("window.end").alias(WINDOW_END),
        *[F.col(quoted(name)) for name, _ in core.functions],
        F.col("window.end").alias(hidden.EVENT_TIME),
        F.lit(None).cast("string").alias(hidden.REASON),
        *([result_ids.of_window(core).alias(hidden.ID)] if ids else []),
    )


def _after(rows: DataFrame, lowered: Lowered) -> DataFrame:
    """Apply steps to results. A failed result is kept as JSON of its inputs."""
    failed_on = F.lit(None).cast("string")
    if lowered.names_rows:  # the core may have rejected the version of a redriven row
        failed_on = F.when(F.col(hidden.REASON).isNotNull(), _inputs_json(rows, lowered))
    rows = rows.withColumn(hidden.FAILED_ON, failed_on)
    ids = (hidden.ID,) if lowered.ids else ()
    row = (hidden.RECORD, hidden.HELD, hidden.ANSWERED) if lowered.names_rows else ()
    carried = (hidden.FAILED_ON, *_passed_columns(lowered), *ids, *row)
    for step in lowered.after:
        failed = any_failed(step)
        if failed is not None:
            failed_on = F.when(F.expr(failed), _inputs_json(rows, lowered))
            rows = rows.withColumn(hidden.FAILED_ON, F.coalesce(F.col(hidden.FAILED_ON), failed_on))
        rows = _with_steps(rows, (step,), carried, which=True)
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


def _encoded(rows: DataFrame, lowered: Lowered) -> DataFrame:
    """The rows as Kafka records."""
    encoding = lowered.encoding
    value = _wire(encoding.value_id, encoding.value_columns, encoding.value_json)
    own = _own_key(encoding)
    passed = F.col(hidden.KEY) if lowered.keeps_key else F.lit(None).cast("binary")
    key = passed if own is None else own
    place = lowered.keeps_key and own is None
    partition = F.col(hidden.PARTITION) if place else F.lit(BY_KEY)
    reason = F.col(hidden.REASON)
    at_ms = F.col(hidden.EVENT_MS) if lowered.counted else F.unix_millis(hidden.EVENT_TIME)
    if lowered.core is not None or lowered.counted:
        instead = F.col(hidden.UNREAD if lowered.counted else hidden.FAILED_ON).cast("binary")
        value = F.when(reason.isNull(), value).otherwise(instead)
        if own is not None:
            key = F.when(reason.isNull(), key)
    return rows.select(
        key.alias("key"),
        value.alias("value"),
        at_ms.alias("timestamp_ms"),
        partition.cast("int").alias("partition"),
        reason.alias("reason"),
        *([F.col(hidden.ID).cast("binary").alias("id")] if lowered.ids else []),
        *(places.row_columns(lowered) if lowered.names_rows else ()),
        *(counted.COLUMNS if lowered.counted else ()),
    )


def _own_key(encoding: Encoding) -> Column | None:
    """The key computed from the row's columns; None if there is none."""
    if encoding.key_sql is not None:
        return F.expr(encoding.key_sql)
    if encoding.key_json is None or encoding.key_id is None:
        return None
    return _wire(encoding.key_id, encoding.key_columns, encoding.key_json)


def _wire(schema_id: SchemaId, columns: tuple[str, ...], schema_json: str) -> Column:
    """Magic byte, id, Avro body."""
    prefix = F.lit(wire.prefix(schema_id))
    body = to_avro(F.struct(*[F.col(quoted(name)) for name in columns]), schema_json)
    return F.concat(prefix, body)
