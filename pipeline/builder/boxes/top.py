"""top: the rows of each window and group with the highest, or lowest, value of an expression."""

from collections.abc import Mapping, Sequence

from pipeline.builder.options import (
    Availability,
    Duration,
    Limit,
    Placement,
    PriorityLevel,
    Reliability,
    ReliabilityMode,
    Size,
    Window,
)
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
    pace: Duration | None = None,
    state_limit: Size | None = None,
    placement: Placement | None = None,
    reliability: Reliability | ReliabilityMode | None = None,
    priority: PriorityLevel | None = None,
    availability: Availability | Duration | None = None,
) -> Box:
    """Rank the rows of each window and group, when event time passes the window's end.

    Args:
        name: the box's name.
        stream: its input.
        rows: maximum number of output rows per window and group.
        highest: an expression: the rows with its highest values are emitted. This or `lowest`.
        lowest: an expression: the rows with its lowest values are emitted.
        by: the groups: columns of `stream`, or names → expressions; one group, if left out.
        select: columns of `stream`, or names → expressions; all except the groups, if left out.
        window: the windows, or the size of tumbling windows; the network's, if left out.
        key: the columns that make the Kafka key of its output; the groups, if left out.
        dead_letters: how many rows that cannot be computed are accepted; all, if left out.
        pace: the least time between two batches; the network's, if left out.
        state_limit: the size of the state at which no more input is read; the network's, if left
            out.
        placement: the nodes that it may run on; the network's, if left out.
        reliability: how another node goes on if its own one fails; the network's, if left out.
        priority: whether it runs if there is not room for all; the network's, if left out.
        availability: when tentative results are preferred to none; the network's, if left out.
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
    return add_box(
        name,
        {"stream": stream},
        content,
        key=key,
        dead_letters=dead_letters,
        pace=pace,
        state_limit=state_limit,
        placement=placement,
        reliability=reliability,
        priority=priority,
        availability=availability,
    )
