"""filter: keeps the rows for which a condition is true; false and null drop a row."""

from dataclasses import dataclass

from pipeline.ids import BoxName, StreamName
from pipeline.network.model import Expression
from pipeline.network.types import Columns


@dataclass(frozen=True, slots=True)
class Filter:
    """`{filter: STREAM, where: CONDITION}`; columns, key and event time pass unchanged."""

    name: BoxName
    input: StreamName
    where: Expression
    columns: Columns
    event_time_column: str | None
    key: tuple[str, ...] = ()

    kind = "filter"
    stateful = False

    @property
    def inputs(self) -> tuple[StreamName, ...]:
        """The one stream it reads."""
        return (self.input,)
