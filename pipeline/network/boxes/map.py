"""map: computes new columns from the columns of each row."""

from dataclasses import dataclass

from pipeline.ids import BoxName, StreamName
from pipeline.network.model import Computed
from pipeline.network.types import Columns


@dataclass(frozen=True, slots=True)
class Map:
    """`{map: STREAM, select: {COLUMN: EXPRESSION, …}}`; one row in, one row out."""

    name: BoxName
    input: StreamName
    select: tuple[Computed, ...]
    columns: Columns
    event_time_column: str | None
    key: tuple[str, ...] = ()

    kind = "map"
    stateful = False

    @property
    def inputs(self) -> tuple[StreamName, ...]:
        """The one stream it reads."""
        return (self.input,)
