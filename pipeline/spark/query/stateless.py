"""Queries without state: their rows, and the metrics of their batches; see `kinds.py`.

Without user functions each record becomes a row, a result or a reason why there is none, from which
it is counted: see `Lowered.counted`. With them, Spark observes the records.
"""

from collections.abc import Callable

from pyarrow import Table
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis
from pipeline.lanes.left_out import LeftOut
from pipeline.spark.query import hidden, places
from pipeline.spark.query.counted import COLUMNS, counted
from pipeline.spark.query.emitting.encoded import encoded
from pipeline.spark.query.emitting.observing import good, judged_once, walked
from pipeline.spark.query.emitting.ports import united
from pipeline.spark.query.emitting.sifted import CARRIED, sifted
from pipeline.spark.query.emitting.steps import KEPT, with_steps
from pipeline.spark.query.lowered import Lowered, Path
from pipeline.spark.query.metrics import BatchMetrics
from pipeline.spark.query.observed import Observations, observed
from pipeline.spark.query.optimised import optimised
from pipeline.spark.query.readers import Reader


def emit(
    lowered: Lowered,
    reader: Reader,
    left_out: tuple[LeftOut, ...],
    settled_ms: Millis | None,
) -> DataFrame:
    """As of `QueryKind`; a row with a reason is a record without a result.

    If it is unfit, its value contains its first bytes. Only if `Lowered.counted` there are such
    rows; then all rows have the columns of `counted.py` as well. There is no state, so nothing is
    rebuilt and nothing is settled.
    """
    del left_out, settled_ms
    raw = {source.input: reader(source) for source in lowered.sources}
    if not lowered.counted:
        rows = united(lowered, lambda p: _called(raw[p.source], lowered, p))["only"]
        return optimised(encoded(rows, lowered, F.unix_millis(hidden.EVENT_TIME)))
    rows = united(lowered, lambda p: _counted(raw[p.source], lowered, p))["only"]
    at_ms, unread = F.col(hidden.EVENT_MS), F.col(hidden.UNREAD)
    return optimised(encoded(rows, lowered, at_ms, unread, COLUMNS))


def metrics(
    lowered: Lowered, rows: Table | None, observations: Callable[[], Observations]
) -> BatchMetrics:
    """As of `QueryKind`."""
    if not lowered.counted:
        return observed(observations(), lowered)
    if rows is None:
        raise BrokenInvariantError("a batch is counted from its rows, and there are none")
    return counted(rows, lowered)


def event_ms(lowered: Lowered) -> str:
    """As of `QueryKind`."""
    return hidden.EVENT_MS if lowered.counted else f"unix_millis({hidden.EVENT_TIME})"


def _counted(raw: DataFrame, lowered: Lowered, path: Path) -> DataFrame:
    """A row for each record of a path."""
    rows, added = places.with_hidden(sifted(raw, lowered, path), lowered, path)
    return with_steps(rows, path.steps, (*places.passed(lowered), *added, *CARRIED), KEPT)


def _called(raw: DataFrame, lowered: Lowered, path: Path) -> DataFrame:
    """The results of a path with user functions."""
    rows, added = places.with_hidden(judged_once(raw, lowered, path), lowered, path)
    return good(walked(rows, path, (*places.passed(lowered), *added)))
