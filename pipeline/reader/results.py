"""What a reader reports, and where it begins."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Tentative:
    """A result that is early, and perhaps incomplete.

    Args:
        id: of the result; the stable one has the same.
        key: as the stable one has it.
        value: as the topic has it.
        timestamp_ms: event time.
        partition: the one in which the stable result will be.
        generation: the attempt that it comes from, as `EPOCH.NUMBER`.
    """

    id: bytes
    key: bytes | None
    value: bytes
    timestamp_ms: int
    partition: int
    generation: str


@dataclass(frozen=True, slots=True)
class Stable:
    """A result that is complete and exact, or a correction of one.

    Args:
        id: None: the output has no ids.
        key: as the topic has it.
        value: as the topic has it.
        timestamp_ms: event time.
        partition: where it is.
        offset: where it is.
        confirms: True: it is equal to the tentative result that counted; False: it replaces that
            one; None: there was none.
        corrects: of a correction, its number for this id, from 1; None: it is none.
    """

    id: bytes | None
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    partition: int
    offset: int
    confirms: bool | None
    corrects: int | None


@dataclass(frozen=True, slots=True)
class Undone:
    """A result that does not count any more, and has no successor.

    Args:
        id: of the result.
        key: of the result.
        timestamp_ms: event time of the result.
        partition: of the result.
        generation: of the tentative result; None: a stable one was deleted by a correction.
        corrects: the number of that correction; None: the result was tentative.
    """

    id: bytes
    key: bytes | None
    timestamp_ms: int
    partition: int
    generation: str | None
    corrects: int | None


class Handler(Protocol):
    """What is done with results. An exception of a method ends `poll`."""

    def on_tentative(self, result: Tentative) -> None:
        """A tentative result counts, in place of an earlier one with its id."""

    def on_stable(self, result: Stable) -> None:
        """A stable result counts, in place of whatever has its id."""

    def on_undo(self, undone: Undone) -> None:
        """A result counts no more."""

    def on_done(self, generation: str) -> None:
        """All tentative results of a generation were confirmed, replaced or undone."""


class Start(Enum):
    """Where a reader begins that has no position."""

    BEGINNING = "beginning"
    """At the oldest result."""
    NOW = "now"
    """With the next result."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a reader goes on: store it together with what was done with the results before it.

    Args:
        topic_id: Kafka's id of the result topic.
        passed_ms: no stable result up to this event time comes after it; None: that is unknown.
        offsets: in the result topic, by partition.
    """

    topic_id: str
    passed_ms: int | None = None
    offsets: Mapping[int, int] = field(default_factory=dict)
