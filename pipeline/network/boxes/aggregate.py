"""aggregate: one row per window and group, when event time has passed the window's end."""

from dataclasses import dataclass

from pipeline.ids import BoxName, StreamName
from pipeline.network.model import Computed, Expression
from pipeline.network.types import Columns, DataType

WINDOW_START = "window_start"
WINDOW_END = "window_end"


@dataclass(frozen=True, slots=True)
class TumblingWindow:
    """Windows of one size, end to end; `[start, end)` with start = offset modulo size, in UTC."""

    size_ms: int
    offset_ms: int


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One call of an aggregate function inside `compute`.

    Args:
        name: the placeholder column that stands for its result in the `compute` expressions.
        function: `count`, `count_distinct`, `sum`, `avg`, `min` or `max`.
        argument: what it aggregates, over the input's columns; None for `count(*)`.
        type: the result's type.
    """

    name: str
    function: str
    argument: Expression | None
    type: DataType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`{aggregate: STREAM, window: 1m, by: [COLUMN, …], compute: {COLUMN: EXPRESSION, …}}`.

    Output columns: the group columns, `window_start`, `window_end` (TIMESTAMP, not null), then the
    computed ones. `compute` expressions are over the group columns, the two window columns and
    the placeholders of `aggregations`. Event time is `window_end`; the key is `by` unless declared.
    """

    name: BoxName
    input: StreamName
    window: TumblingWindow
    by: tuple[Computed, ...]
    aggregations: tuple[Aggregation, ...]
    compute: tuple[Computed, ...]
    columns: Columns
    event_time_column: str | None
    key: tuple[str, ...] = ()

    kind = "aggregate"
    stateful = True

    @property
    def inputs(self) -> tuple[StreamName, ...]:
        """The one stream it reads."""
        return (self.input,)
