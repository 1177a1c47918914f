"""as_of: each row of a stream with what a table said of its keys at its own event time."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pipeline.builder.options import Duration, Limit
from pipeline.builder.streams import Box, Stream, add_box, said


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
) -> Box:
    """Give each row the latest one of a table that is not after it.

    Args:
        name: the box's name.
        left: the rows.
        right: the table: rows that hold from their event time on, until the next one of their key.
        on: columns that must be equal: those that both sides have, or left ones → right ones.
        within: how far before the left row, in event time, what holds for it may lie.
        how: whether rows for which nothing holds are dropped (inner, if left out) or not (left).
        select: names of columns → expressions, in which `left.x` and `right.x` name a side; or a
            list of columns. All columns, if left out.
        key: the columns that make the Kafka key of its output; those of `on`, if left out.
        dead_letters: how many rows that cannot be computed are borne; all, if left out.
    """
    sides = {"left": left, "right": right}
    content = {"as_of": said({**sides, "on": on, "within": within, "how": how}), "select": select}
    return add_box(name, sides, content, key=key, dead_letters=dead_letters)
