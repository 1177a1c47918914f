"""Lowering of `top`: the columns of a row as one value, the best of a group, and a row for each.

Rows of a group have a total order: by the compared value, then by event time, then by their place
in the log. So the result is independent of batch boundaries.
"""

from pipeline.network.boxes.top import RANK, Top
from pipeline.network.boxes.windows import WINDOW_END, WINDOW_START
from pipeline.spark.query import hidden
from pipeline.spark.query.boxes.stateful import LoweredBox
from pipeline.spark.query.lowered import Explode, GroupCore, Keep, Project
from pipeline.spark.query.sql import checks, quoted

_ORDER, _ROW, _ROWS, _AT = "__order", "__row_columns", "__rows", "__at"


def lower(box: Top) -> LoweredBox:
    """Groups, order and columns; the best rows of each window and group; the columns again."""
    selected = ", ".join(f"{c.expression.sql} AS {quoted(c.name)}" for c in box.select)
    groups = tuple((group.name, group.expression.sql) for group in box.by)
    before = Project(
        (*groups, (_ORDER, box.ordered_by.sql), (_ROW, f"struct({selected})")),
        checks((*(c.expression for c in (*box.by, *box.select)), box.ordered_by)),
    )
    best = "max_by" if box.highest else "min_by"
    place = f"{_ORDER}, {hidden.EVENT_TIME}, {hidden.POSITION}"
    core = GroupCore(
        by=tuple(group.name for group in box.by),
        functions=((_ROWS, f"{best}({_ROW}, struct({place}), {box.rows})"),),
        window=box.window,
        positions=True,
    )
    passed = (*(group.name for group in box.by), WINDOW_START, WINDOW_END)
    after = Project(
        (
            *((name, quoted(name)) for name in passed),
            (RANK, f"{_AT} + 1"),
            *((c.name, f"{_ROWS}.{quoted(c.name)}") for c in box.select),
        ),
        (),
    )
    return LoweredBox(
        (before, Keep(f"{_ORDER} IS NOT NULL", ())), core, (Explode(_ROWS, _AT), after)
    )
