"""filter: keeps the rows for which a condition is true."""

from collections.abc import Sequence

from pipeline.builder.options import (
    Availability,
    Duration,
    Limit,
    Placement,
    PriorityLevel,
    Reliability,
    ReliabilityMode,
)
from pipeline.builder.streams import Box, Stream, add_box


def filter(  # noqa: A001 - the kind's name
    name: str,
    stream: Stream,
    *,
    where: str,
    key: Sequence[str] | None = None,
    dead_letters: Limit | None = None,
    pace: Duration | None = None,
    placement: Placement | None = None,
    reliability: Reliability | ReliabilityMode | None = None,
    priority: PriorityLevel | None = None,
    availability: Availability | Duration | None = None,
) -> Box:
    """Keep the rows for which a condition is true; false and null drop a row.

    Args:
        name: the box's name.
        stream: its input.
        where: the condition, a Spark SQL expression over the columns of `stream`.
        key: the columns that make the Kafka key of its output; the input's, if left out.
        dead_letters: how many rows that cannot be computed are accepted; all, if left out.
        pace: the least time between two batches; the network's, if left out.
        placement: the nodes that it may run on; the network's, if left out.
        reliability: how another node goes on if its own one fails; the network's, if left out.
        priority: whether it runs if there is not room for all; the network's, if left out.
        availability: when tentative results are preferred to none; the network's, if left out.
    """
    content = {"filter": stream, "where": where}
    return add_box(
        name,
        {"stream": stream},
        content,
        key=key,
        dead_letters=dead_letters,
        pace=pace,
        placement=placement,
        reliability=reliability,
        priority=priority,
        availability=availability,
    )
