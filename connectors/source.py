"""The contract of a source: what reads records at the other end, and how far it has read. Pure.

A source does not write: its runner writes records, dead letters and positions in one Kafka
transaction, and asks the source again only after that. So a source that fulfils the obligations
below is read exactly once, whatever ends in between.

1. **Splits.** A source consists of splits, each with records in an order: a file, a table. The id
   of a split is the same in every process, and is never used for another one.
2. **Positions.** A position says where the next record of a split begins. It is a JSON object,
   and belongs to its source alone. The position of a chunk lies directly behind the last record
   of the chunk: no record is between two chunks, and none is in both.
3. **Repeatable.** Reading from a position gives the same records as before, in any process, as
   often as it is asked. If the other end has changed what lies behind or before a position, the
   source raises `SourceChangedError`; it never returns something else silently.
4. **Nothing is taken.** Reading changes nothing at the other end. What must be acknowledged there
   is acknowledged in `stored`, which comes after the transaction, may come twice, and may not
   come at all before the process ends.
5. **Bounded.** A chunk is not larger than its limit, except that it may have one record. A call
   does not wait for records: it returns what is there.
6. **Bad records are data.** What cannot be converted is returned as `Refused`, with its bytes, in
   its place among the others. Only what concerns the whole source is raised.
7. **Nothing before it is asked.** A constructor opens nothing; state about a split is built from
   its position alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

from pipeline.errors import InputError
from schemas.json_value import JsonObject
from schemas.logical import Native

SplitId = NewType("SplitId", str)
Position = JsonObject
Positions = Mapping[SplitId, Position]


class SourceChangedError(InputError):
    """The other end has changed what was read already, so no position in it means anything."""

    code = "source-changed"


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that a chunk may contain; at least one record is always permitted."""

    records: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Row:
    """A record.

    Args:
        fields: values as in JSON, to be converted by the schema of the topic.
        raw: what it was made from, byte for byte, for a dead letter.
        place: where it was, for people: `file a.csv, line 3`.
    """

    fields: Mapping[str, Native]
    raw: bytes
    place: str


@dataclass(frozen=True, slots=True)
class Refused:
    """What is no record.

    Args:
        raw: its bytes; the first ones, if it is too large for a record of Kafka.
        place: where it was, for people.
        reason: one of the words in the documentation of the source.
        message: one sentence.
    """

    raw: bytes
    place: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of a split that follow each other.

    Args:
        records: in their order; empty if there is none now.
        position: behind the last one.
        more: whether there are more now.
    """

    records: tuple[Row | Refused, ...]
    position: Position
    more: bool


class Source(Protocol):
    """A source; the module explains its obligations. Not thread-safe.

    Every method may raise `UnavailableError` or `RetryError`, after which it is asked again.
    """

    def splits(self, known: Positions) -> Sequence[SplitId]:
        """The splits that may have records now, in the order in which to read them.

        Args:
            known: the positions of all splits that have been read.
        """

    def read(self, split: SplitId, position: Position | None, limit: Limit) -> Chunk:
        """The next records of a split.

        Args:
            split: one of those that `splits` returned last.
            position: where to begin; None: at its beginning.
            limit: of the chunk.

        Raises:
            SourceChangedError: the position does not mean anything any more.
        """

    def stored(self, positions: Positions) -> None:
        """All records before these positions are in their topic, for good."""

    def close(self) -> None:
        """Close all connections and files. May be repeated."""
