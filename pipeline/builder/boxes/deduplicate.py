"""deduplicate: drops a row if another row with the same key precedes it within a duration."""

from collections.abc import Sequence

from pipeline.builder.options import (
    Availability,
    Duration,
    Limit,
    Placement,
    PriorityLevel,
    Reliability,
    ReliabilityMode,
    Size,
)
from pipeline.builder.streams import Box, Stream, add_box


def deduplicate(
    name: str,
    stream: Stream,
    *,
    by: Sequence[str],
    within: Duration,
    key: Sequence[str] | None = None,
    dead_letters: Limit | None = None,
    pace: Duration | None = None,
    state_limit: Size | None = None,
    placement: Placement | None = None,
    reliability: Reliability | ReliabilityMode | None = None,
    priority: PriorityLevel | None = None,
    availability: Availability | Duration | None = None,
) -> Box:
    """Drop a row if another row with equal columns precedes it within a duration.

    Args:
        name: the box's name.
        stream: its input.
        by: the columns of `stream` in which repeated rows are equal.
        within: how far before it, in event time, the other row may be.
        key: the columns that make the Kafka key of its output; the input's, if left out.
        dead_letters: how many rows that cannot be computed are accepted; all, if left out.
        pace: the least time between two batches; the network's, if left out.
        state_limit: the size of the state at which no more input is read; the network's, if left
            out.
        placement: the nodes that it may run on; the network's, if left out.
        reliability: how another node goes on if its own one fails; the network's, if left out.
        priority: whether it runs if there is not room for all; the network's, if left out.
        availability: when tentative results are preferred to none; the network's, if left out.
    """
    content = {"deduplicate": stream, "by": by, "within": within}
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
