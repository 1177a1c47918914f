"""aggregate: one row for each window and group."""

from collections.abc import Mapping, Sequence

from pipeline.builder.options import (
    Availability,
    Duration,
    Limit,
    Placement,
    PriorityLevel,
    Reliability,
    ReliabilityMode,
    Session,
    Size,
    Window,
)
from pipeline.builder.streams import Box, Stream, add_box


def aggregate(
    name: str,
    stream: Stream,
    *,
    compute: Mapping[str, str],
    by: Mapping[str, str] | Sequence[str] | None = None,
    window: Duration | Window | None = None,
    session: Duration | Session | None = None,
    key: Sequence[str] | None = None,
    dead_letters: Limit | None = None,
    pace: Duration | None = None,
    state_limit: Size | None = None,
    placement: Placement | None = None,
    reliability: Reliability | ReliabilityMode | None = None,
    priority: PriorityLevel | None = None,
    availability: Availability | Duration | None = None,
) -> Box:
    """Compute one row for each window and group, when event time passes the window's end.

    Args:
        name: the box's name.
        stream: its input.
        compute: names of columns → expressions with aggregate functions, such as `avg(speed)`.
        by: the groups: columns of `stream`, or names → expressions; one group, if left out.
        window: the windows, or the size of tumbling windows; the network's, if left out.
        session: instead of windows, sessions, or the gap between them.
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
        "aggregate": stream,
        "window": window,
        "session": session,
        "by": by,
        "compute": compute,
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
