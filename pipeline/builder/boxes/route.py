"""route: sends each record to the first of several streams whose condition is true."""

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
from pipeline.builder.streams import Box, Branches, Stream, add_box


def route(
    name: str,
    stream: Stream,
    *,
    to: Mapping[str, str],
    otherwise: str | None = None,
    key: Sequence[str] | None = None,
    dead_letters: Limit | None = None,
    pace: Duration | None = None,
    placement: Placement | None = None,
    reliability: Reliability | ReliabilityMode | None = None,
    priority: PriorityLevel | None = None,
    availability: Availability | Duration | None = None,
) -> Mapping[str, Box]:
    """Send each record to the first stream whose condition is true; returns the streams by name.

    Args:
        name: the box's name.
        stream: its input.
        to: names of streams → conditions, Spark SQL expressions over the columns of `stream`; the
            first that is true decides.
        otherwise: the stream of the records for which none is true; they are dropped, if left out.
        key: the columns that make the Kafka key of all of them; the input's, if left out.
        dead_letters: how many records that cannot be evaluated are accepted; all, if left out.
        pace: the least time between two batches; the network's, if left out.
        placement: the nodes that it may run on; the network's, if left out.
        reliability: how another node goes on if its own one fails; the network's, if left out.
        priority: whether it runs if there is not room for all; the network's, if left out.
        availability: when tentative results are preferred to none; the network's, if left out.
    """
    content = {"route": stream, "to": to, "otherwise": otherwise}
    box = add_box(
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
    names = [*to] if otherwise is None else [*to, otherwise]
    return Branches(name, box.draft, names)
