"""The steps of a test, ready to run: every record is encoded or has its types. Pure."""

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
    """Nothing that comes from outside lies at or below this time any more."""

    to_ms: Millis


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing comes for so long."""

    ms: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Event time goes on until nothing is kept any more."""


@dataclass(frozen=True, slots=True)
class Expect:
    """What came of a stream since the last look."""

    stream: StreamName
    records: tuple[Expected, ...]
    in_order: bool
    place: str


@dataclass(frozen=True, slots=True)
class ExpectLetters:
    """What dead letters came since the last look."""

    letters: tuple[Expected, ...]
    place: str


Step = Send | Advance | Wait | Settle | Expect | ExpectLetters
