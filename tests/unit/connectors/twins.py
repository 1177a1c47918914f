"""A source and a sink in memory, that fulfil their contracts, and a clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from connectors.conformance.crashing import Steps
from connectors.sink import Batch, Change, Marker, Refuse, RefusedChange, Result
from connectors.source import Chunk, Limit, Position, Positions, Refused, Row, SplitId
from pipeline.clock import Deadline
from pipeline.errors import FencedError
from pipeline.ids import ConnectorName, Millis
from schemas.avro import parse
from schemas.json_value import JsonObject

NAME = ConnectorName("tried")
SCHEMA = parse('{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}')


class TickingClock:
    """Time passes only in sleep."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def now_ms(self) -> Millis:
        """Wall time."""
        return Millis(1_700_000_000_000 + int(self.passed_s * 1_000))

    def monotonic_s(self) -> float:
        """Seconds that have passed."""
        return self.passed_s

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.passed_s += seconds


def row(n: int) -> Row:
    """A record."""
    return Row({"n": n}, f"{n}".encode(), f"row {n}")


def refused(n: int) -> Refused:
    """What is none."""
    return Refused(f"bad {n}".encode(), f"row {n}", "bad", "it is bad")


@dataclass(slots=True)
class MemorySource:
    """Records in memory: the position is a number."""

    splits_of: dict[SplitId, Sequence[Row | Refused]]
    acknowledged: list[Positions] = field(default_factory=list)

    def splits(self, known: Positions) -> Sequence[SplitId]:
        """All of them."""
        del known
        return tuple(self.splits_of)

    def read(self, split: SplitId, position: Position | None, limit: Limit) -> Chunk:
        """Those from a number on."""
        rows = self.splits_of[split]
        start = 0 if position is None else int(str(position["next"]))
        end, size = start, 0
        while end < len(rows) and end - start < limit.records:
            size += len(rows[end].raw)
            if end > start and size > limit.size_bytes:
                break
            end += 1
        return Chunk(tuple(rows[start:end]), {"next": end}, end < len(rows))

    def stored(self, positions: Positions) -> None:
        """Remember them."""
        self.acknowledged.append(positions)

    def close(self) -> None:
        """Nothing to close."""


@dataclass(slots=True)
class MemoryTarget:
    """Rows, and the marker that belongs to them; `writer` may write, and one row is refused."""

    rows: list[JsonObject] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    marker: Marker | None = None
    writer: object = None
    refuses: JsonObject | None = None


@dataclass(slots=True, eq=False)
class MemorySink:
    """Stores rows and marker in one assignment."""

    target: MemoryTarget
    step: Callable[[], None] = field(default_factory=Steps)

    def open(self, deadline: Deadline) -> Marker | None:
        """Become the writer."""
        del deadline
        self.step()
        self.target.writer = self
        self.step()
        return self.target.marker

    def write(self, batch: Batch, refuse: Refuse, deadline: Deadline) -> None:
        """Store a batch."""
        del deadline
        self.step()
        if self.target.writer is not self:
            raise FencedError("another sink has opened the target", place="memory")
        rows = [one for one in batch.changes if isinstance(one, Result)]
        unfit = [one for one in rows if one.fields == self.target.refuses]
        refuse([RefusedChange(one, "unfit", "it does not fit") for one in unfit])
        self.step()
        self.target.rows += [one.fields for one in rows if one not in unfit]
        self.target.changes += batch.changes
        self.target.marker = batch.marker
        self.step()

    def close(self) -> None:
        """Nothing to close."""
