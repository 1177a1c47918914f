"""Contents of the input topics, and the records of them that each fragment used.

A late or unreadable record is a dead letter of each fragment that reads its topic. Those are
recorded decisions: the reference computes with the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.reference.compare import Row

Fields = Mapping[str, object]
"""A record by field; instants are ms since 1970 UTC, records and lists are as in JSON."""
PARTLY_LATE = "partly_late"
"""The reason of a record that counts all the same, in those of its windows that were open."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Position of a record: topic, partition and offset."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}"


@dataclass(frozen=True, slots=True)
class InputRecord:
    """A record of an input topic; `fields` is None if it is unreadable."""

    place: Place
    fields: Fields | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Contents of a dead letter.

    Args:
        fragment: the fragment that refused the record.
        place: of the record; None for a result that could not be computed.
        port: the input of a join that refused it; empty if all inputs did.
        reason: as in the dead letter.
        text: the dead letter in reports.
    """

    fragment: str
    place: Place | None
    port: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Due:
    """An expected row, and its event time in ms since 1970 UTC."""

    row: Row
    at_ms: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """All input records, by stream and in the order of places; and all refusals."""

    given: Mapping[str, tuple[InputRecord, ...]]
    refusals: tuple[Refusal, ...] = ()

    def taken(self, fragment: str, stream: str, port: str | None = None) -> list[Fields]:
        """The records of a stream that a fragment used, in the order of their places.

        Args:
            fragment: its name.
            stream: one of its inputs.
            port: one input of a join; a record that only the other input refused is included.
        """
        refused = {
            refusal.place
            for refusal in self.refusals
            if refusal.fragment == fragment and (port is None or refusal.port in ("", port))
            if refusal.reason != PARTLY_LATE
        }
        return [
            given.fields
            for given in self.given[stream]
            if given.fields is not None and given.place not in refused
        ]
