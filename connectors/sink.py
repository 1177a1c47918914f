"""The contract of a sink: what stores results at the other end, together with a marker. Pure.

A runner reads a topic and hands over batches. The marker of a batch says up to where the topic was
read. Whoever starts asks the target for its marker and goes on from there, so a sink that fulfils
the obligations below has each row exactly once, whatever ends in between.

1. **Rows and marker together.** The target has either all rows of a batch and its marker, or
   neither, for every reader and after every crash.
2. **The marker is in the target**, not beside the process: a target that is restored from a backup
   has the marker that fits its rows.
3. **One writer.** `open` excludes every older writer of the same connector: after it has returned,
   no batch of theirs is stored any more; a `write` of theirs raises `FencedError`.
4. **Open decides.** After a crash in `write`, `open` completes the batch or removes every trace of
   it before it returns the marker.
5. **A failure is not an answer.** After `write` has raised anything, the runner opens the sink
   anew, and believes the marker alone.
6. **Bounded.** A write ends within its deadline, or raises `RetryError`.
7. **Bad rows are data.** A change that the target does not accept is handed to `refuse` before the
   batch is stored; it stops no other one. Only what concerns all rows is raised.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pipeline.clock import Deadline
from pipeline.ids import Offset, TopicId
from schemas.json_value import JsonObject


@dataclass(frozen=True, slots=True)
class Marker:
    """What a target has.

    Args:
        number: of the batch; the first is 1.
        topic_id: Kafka's id of the topic that was read.
        positions: per partition the next offset to read.
    """

    number: int
    topic_id: TopicId
    positions: Mapping[int, Offset]


@dataclass(frozen=True, slots=True)
class Result:
    """A row.

    Args:
        fields: as in JSON.
        partition: where it is in the topic, with `offset`.
        offset: the same.
        id: that of the record, or else its topic, partition and offset.
        corrects: whether it takes the place of an earlier result with this id.
    """

    fields: JsonObject
    partition: int
    offset: Offset
    id: str
    corrects: bool = False


@dataclass(frozen=True, slots=True)
class Removal:
    """An earlier result does not count any more: that with this id."""

    partition: int
    offset: Offset
    id: str


Change: TypeAlias = Result | Removal


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes, in the order of each partition, and the marker behind them, stored together."""

    changes: tuple[Change, ...]
    marker: Marker


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """A change that the target does not accept.

    Args:
        change: one of the batch.
        reason: one of the words in the documentation of the sink.
        message: one sentence.
    """

    change: Change
    reason: str
    message: str


Refuse: TypeAlias = Callable[[Sequence[RefusedChange]], None]
"""Keeps changes as dead letters; when it returns, they are kept."""


class Sink(Protocol):
    """A sink; the module explains its obligations. Not thread-safe."""

    def open(self, deadline: Deadline) -> Marker | None:
        """Exclude older writers; the marker of the last batch that is stored. None: nothing is.

        Raises:
            BrokenInvariantError: what is stored is damaged.
            RetryError, UnavailableError: the target did not answer in time.
        """

    def write(self, batch: Batch, refuse: Refuse, deadline: Deadline) -> None:
        """Store a batch with its marker, whose number is one above that of the last one.

        Raises:
            FencedError: a newer writer has opened the target.
            RefusedError: the target accepts no row as it is now.
            RetryError, UnavailableError: it is not known whether the batch is stored.
        """

    def close(self) -> None:
        """Close all connections and files. May be repeated."""
