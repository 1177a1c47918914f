"""flat_map: one row per element of an array."""

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


def flat_map(
    name: str,
    stream: Stream,
    *,
    each: Mapping[str, str],
    select: Mapping[str, str] | Sequence[str],
    at: str | None = None,
    at_most: int | None = None,
    key: Sequence[str] | None = None,
    dead_letters: Limit | None = None,
    pace: Duration | None = None,
    placement: Placement | None = None,
    reliability: Reliability | ReliabilityMode | None = None,
    priority: PriorityLevel | None = None,
    availability: Availability | Duration | None = None,
) -> Box:
    """Make a row for each element of an array; none if it is null or empty.

    Args:
        name: the box's name.
        stream: its input.
        each: one name for an element → the array, a Spark SQL expression over the columns of
            `stream`.
        select: names of columns → expressions over the columns of `stream` and the element; or a
            list of such columns that keep their names.
        at: a name for the element's index in the array, from 0.
        at_most: a record with more elements cannot be computed; 1,000, if left out.
        key: the columns that make the Kafka key of its output; the input's, if left out.
        dead_letters: how many records that cannot be computed are accepted; all, if left out.
        pace: the least time between two batches; the network's, if left out.
        placement: the nodes that it may run on; the network's, if left out.
        reliability: how another node goes on if its own one fails; the network's, if left out.
        priority: whether it runs if there is not room for all; the network's, if left out.
        availability: when tentative results are preferred to none; the network's, if left out.
    """
    content = {"flat_map": stream, "each": each, "at": at, "at_most": at_most, "select": select}
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
