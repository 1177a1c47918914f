"""Emission of a lowered plan as DataFrame calls: one short function per part, no decisions.

A whole query is emitted by its kind; parts of it again, for inspection.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.ids import Millis
from pipeline.lanes.left_out import LeftOut
from pipeline.spark.query import hidden
from pipeline.spark.query.emitting import decoded
from pipeline.spark.query.emitting.judged import judged
from pipeline.spark.query.emitting.observing import paths_filter
from pipeline.spark.query.emitting.steps import with_steps
from pipeline.spark.query.emitting.without import without
from pipeline.spark.query.kinds import kind_of
from pipeline.spark.query.lowered import Lowered, Path, Source
from pipeline.spark.query.readers import Reader


def emit(
    lowered: Lowered,
    reader: Reader,
    left_out: tuple[LeftOut, ...] = (),
    settled_ms: Millis | None = None,
) -> DataFrame:
    """Emit a whole query, as of `QueryKind`.

    `reason` is null in a result; what a row with a reason is depends on the kind.
    """
    return kind_of(lowered).emit(lowered, reader, left_out, settled_ms)


def emit_path(
    lowered: Lowered, path: Path, reader: Reader, left_out: tuple[LeftOut, ...] = ()
) -> DataFrame:
    """Emit one path over a batch's ranges, with the original records, for inspection.

    `left_out`: records to exclude.
    """
    source = lowered.source(path.source)
    raw = without(reader(source), source.input, path.name, left_out)
    rows = judged(raw, source, paths_filter(source, path))
    # Spark pushes no filter below an observation. It would push one on the reason, and repeat the
    # expression of the reason at each use: possibly more than fits into memory.
    rows = rows.observe("judged", F.count(F.lit(1)))
    carried = (*hidden.ORIGINAL, hidden.EVENT_TIME)
    return with_steps(rows, path.steps, carried, which=True)


def unknown_schemas(
    source: Source, reader: Reader, left_out: tuple[LeftOut, ...] = ()
) -> DataFrame:
    """Count schemas in a batch's ranges that the query was not planned with.

    In the form of `emitting.decoded.unknown`.
    """
    return decoded.unknown(without(reader(source), source.input, "", left_out), source)
