"""join: pairs of rows of two streams with equal keys whose event times lie close together."""

from dataclasses import dataclass

from pipeline.ids import BoxName, StreamName
from pipeline.network.model import Computed
from pipeline.network.types import Columns


@dataclass(frozen=True, slots=True)
class TimeBound:
    """`lower_ms <= left event time - right event time <= upper_ms`, both ends included."""

    lower_ms: int
    upper_ms: int


@dataclass(frozen=True, slots=True)
class Join:
    """`{join: {left: A, right: B, on: [COLUMN, …], within: BOUND}, select: {…}}`, inner.

    `on` holds pairs (left column, right column) compared with `=`; a null key matches nothing.
    `select` expressions read `left`.`x` and `right`.`x`. The event time of a pair is the later of
    the two; the key is the left `on` columns, as far as they are selected, unless declared.
    """

    name: BoxName
    left: StreamName
    right: StreamName
    on: tuple[tuple[str, str], ...]
    bound: TimeBound
    select: tuple[Computed, ...]
    columns: Columns
    event_time_column: str | None
    key: tuple[str, ...] = ()

    kind = "join"
    stateful = True

    @property
    def inputs(self) -> tuple[StreamName, ...]:
        """Left, then right."""
        return (self.left, self.right)
