"""map: computes new columns, one row for each."""

from collections.abc import Mapping, Sequence

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


def map(  # noqa: A001 - the kind's name
    name: str,
    stream: Stream,
    *,
    select: Mapping[str, str] | Sequence[str],
    key: Sequence[str] | None = None,
    dead_letters: Limit | None = None,
    pace: Duration | None = None,
    placement: Placement | None = None,
    reliability: Reliability | ReliabilityMode | None = None,
    priority: PriorityLevel | None = None,
    availability: Availability | Duration | None = None,
) -> Box:
    """Compute new columns, one row for each.

    Args:
        name: the box's name.
        stream: its input.
        select: names of columns → Spark SQL expressions over the columns of `stream`; or a list of
            columns that keep their names.
        key: the columns that make the Kafka key of its output; the input's, if left out.
        dead_letters: how many rows that cannot be computed are accepted; all, if left out.
        pace: the least time between two batches; the network's, if left out.
        placement: the nodes that it may run on; the network's, if left out.
        reliability: how another node goes on if its own one fails; the network's, if left out.
        priority: whether it runs if there is not room for all; the network's, if left out.
        availability: when tentative results are preferred to none; the network's, if left out.
    """
    content = {"map": stream, "select": select}
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
