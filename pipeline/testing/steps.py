"""The steps of a test, ready to run: every record is encoded or typed. Pure."""

from dataclasses import dataclass

from pipeline.ids import Millis, StreamName
from pipeline.testing.compare import Expected


@dataclass(frozen=True, slots=True)
class Sent:
    """A record for a stream; `value` is in the wire format."""

    value: bytes
    key: bytes | None
    partition: int
    timestamp_ms: Millis


@dataclass(frozen=True, slots=True)
class Send:
    """Send records to a stream; all of them are read and computed before the next step."""

    stream: StreamName
    records: tuple[Sent, ...]


@dataclass(frozen=True, slots=True)
class Advance:
    """No later external record is at or below this time."""

    to_ms: Millis


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes without records."""

    ms: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Event time advances until no state is left."""


@dataclass(frozen=True, slots=True)
class Expect:
    """The records of a stream since the last step of this kind."""

    stream: StreamName
    records: tuple[Expected, ...]
    in_order: bool
    place: str


@dataclass(frozen=True, slots=True)
class ExpectDeadLetters:
    """The dead letters since the last step of this kind."""

    letters: tuple[Expected, ...]
    place: str


Step = Send | Advance | Wait | Settle | Expect | ExpectDeadLetters
