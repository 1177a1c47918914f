"""python: a function over the rows of a stream."""

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


def python(
    name: str,
    stream: Stream,
    *,
    function: str,
    columns: Mapping[str, str],
    timeout: Duration | None = None,
    key: Sequence[str] | None = None,
    dead_letters: Limit | None = None,
    pace: Duration | None = None,
    placement: Placement | None = None,
    reliability: Reliability | ReliabilityMode | None = None,
    priority: PriorityLevel | None = None,
    availability: Availability | Duration | None = None,
) -> Box:
    """Compute rows by a pure function from a record batch to a record batch.

    Args:
        name: the box's name.
        stream: its input.
        function: `alerts.py:classify`, a function in a file, relative to the file that is
            deployed; or `package.module:classify`, one that every node can import.
        columns: names of the columns that it returns → types, such as `DECIMAL(10,2)` or `STRING
            NOT NULL`.
        timeout: time limit of one call; 10 s.
        key: the columns that make the Kafka key of its output; the input's, if left out.
        dead_letters: how many rows that cannot be computed are accepted; all, if left out.
        pace: the least time between two batches; the network's, if left out.
        placement: the nodes that it may run on; the network's, if left out.
        reliability: how another node goes on if its own one fails; the network's, if left out.
        priority: whether it runs if there is not room for all; the network's, if left out.
        availability: when tentative results are preferred to none; the network's, if left out.
    """
    content = {"python": stream, "function": function, "columns": columns, "timeout": timeout}
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
