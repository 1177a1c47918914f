"""top: the few rows of each window and group that have the highest, or the lowest, of something."""

from collections.abc import Mapping, Sequence

from pipeline.builder.options import Duration, Limit, Window
from pipeline.builder.streams import Box, Stream, add_box


def top(
    name: str,
    stream: Stream,
    *,
    rows: int,
    highest: str | None = None,
    lowest: str | None = None,
    by: Mapping[str, str] | Sequence[str] | None = None,
    select: Mapping[str, str] | Sequence[str] | None = None,
    window: Duration | Window | None = None,
    key: Sequence[str] | None = None,
    dead_letters: Limit | None = None,
) -> Box:
    """Rank the rows of each window and group, when event time has passed the window's end.

    Args:
        name: the box's name.
        stream: what it reads.
        rows: how many rows of each window and group come out, at most.
        highest: an expression: the rows for which it is highest come out. This or `lowest`.
        lowest: an expression: the rows for which it is lowest come out.
        by: the groups: columns of `stream`, or names → expressions; one group, if left out.
        select: columns of `stream`, or names → expressions; all that are no group, if left out.
        window: the windows, or the size of windows end to end; the network's, if left out.
        key: the columns that make the Kafka key of its output; the groups, if left out.
        dead_letters: how many rows that cannot be computed are borne; all, if left out.
    """
    content = {
        "top": stream,
        "rows": rows,
        "highest": highest,
        "lowest": lowest,
        "window": window,
        "by": by,
        "select": select,
    }
    return add_box(name, {"stream": stream}, content, key=key, dead_letters=dead_letters)
