"""as_of: join of each row of a stream with the version of a table at the row's event time."""

from collections.abc import Mapping, Sequence
from typing import Literal

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
from pipeline.builder.streams import Box, Stream, add_box, present


def as_of(
    name: str,
    left: Stream,
    right: Stream,
    *,
    on: Mapping[str, str] | Sequence[str],
    within: Duration,
    how: Literal["inner", "left"] | None = None,
    select: Mapping[str, str] | Sequence[str] | None = None,
    key: Sequence[str] | None = None,
    dead_letters: Limit | None = None,
    pace: Duration | None = None,
    state_limit: Size | None = None,
    placement: Placement | None = None,
    reliability: Reliability | ReliabilityMode | None = None,
    priority: PriorityLevel | None = None,
    availability: Availability | Duration | None = None,
) -> Box:
    """Join each row with the latest row of a table that is not after it.

    Args:
        name: the box's name.
        left: the rows.
        right: the table: rows that are valid from their event time until the next one of their key.
        on: columns that must be equal: those that both sides have, or left ones → right ones.
        within: how far before the left row, in event time, its match may be.
        how: whether rows without a match are dropped (inner, if left out) or not (left).
        select: names of columns → expressions, in which `left.x` and `right.x` name a side; or a
            list of columns. All columns, if left out.
        key: the columns that make the Kafka key of its output; those of `on`, if left out.
        dead_letters: how many rows that cannot be computed are accepted; all, if left out.
        pace: the least time between two batches; the network's, if left out.
        state_limit: the size of the state at which no more input is read; the network's, if left
            out.
        placement: the nodes that it may run on; the network's, if left out.
        reliability: how another node goes on if its own one fails; the network's, if left out.
        priority: whether it runs if there is not room for all; the network's, if left out.
        availability: when tentative results are preferred to none; the network's, if left out.
    """
    sides = {"left": left, "right": right}
    join = present({**sides, "on": on, "within": within, "how": how})
    content = {"as_of": join, "select": select}
    return add_box(
        name,
        sides,
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
