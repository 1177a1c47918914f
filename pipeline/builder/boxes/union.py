"""union: all rows of several streams that have the same columns."""

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
from pipeline.builder.streams import Box, Stream, add_box, mistaken, typed


def union(
    name: str,
    streams: Sequence[Stream],
    *,
    key: Sequence[str] | None = None,
    dead_letters: Limit | None = None,
    pace: Duration | None = None,
    placement: Placement | None = None,
    reliability: Reliability | ReliabilityMode | None = None,
    priority: PriorityLevel | None = None,
    availability: Availability | Duration | None = None,
) -> Box:
    """Merge the rows of several streams, in the order of their arrival.

    Args:
        name: the box's name.
        streams: its inputs: at least two, with the same columns.
        key: the columns that make the Kafka key of its output; the inputs', if left out.
        dead_letters: how many rows that cannot be computed are accepted; all, if left out.
        pace: the least time between two batches; the network's, if left out.
        placement: the nodes that it may run on; the network's, if left out.
        reliability: how another node goes on if its own one fails; the network's, if left out.
        priority: whether it runs if there is not room for all; the network's, if left out.
        availability: when tentative results are preferred to none; the network's, if left out.
    """
    if not isinstance(streams, Sequence):
        message = f"streams of box {name} must be a list of streams, not {typed(streams)}"
        raise mistaken(name, message, "write [stream, other]")
    inputs = {f"streams[{number}]": stream for number, stream in enumerate(streams)}
    return add_box(
        name,
        inputs,
        {"union": streams},
        key=key,
        dead_letters=dead_letters,
        pace=pace,
        placement=placement,
        reliability=reliability,
        priority=priority,
        availability=availability,
    )
