"""Lateness as a column: the rows that Spark drops as late, for inspection.

A stateful query drops a row at or below the watermark of the previous batch; an aggregate compares
the end of the row's window. If only some of its overlapping windows have ended, the row is dropped
from those alone.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.ids import Millis
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.network.boxes.shape import Shape, Windowed
from pipeline.network.boxes.windows import SlidingWindow, Window
from pipeline.spark.query import hidden


def how_late(shape: Shape, late_ms: Millis) -> Column:
    """`Reason.LATE` or `PARTLY_LATE` of a late row; else null.

    Args:
        shape: of the fragment.
        late_ms: the event time up to which everything was closed.
    """
    at = F.unix_millis(hidden.EVENT_TIME)
    if not isinstance(shape, Windowed):
        return F.when(at <= late_ms, Reason.LATE.value)
    window = shape.window
    late = F.when(_last_end(window, at + window.size_ms) <= late_ms, Reason.LATE.value)
    if not isinstance(window, SlidingWindow):
        return late
    first_end = _last_end(window, at) + window.slide_ms
    return late.when(first_end <= late_ms, Reason.PARTLY_LATE.value)


def _last_end(window: Window, at: Column) -> Column:
    """As in `pipeline/boundaries/windows.py`."""
    return at - F.pmod(at - window.offset_ms - window.size_ms, F.lit(window.slide_ms))
