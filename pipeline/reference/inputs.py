"""What lay in the input topics, and which of it each fragment computed with.

A record that came too late, or that nobody can read, is a dead letter of each fragment that reads
its topic. Those are recorded decisions: the reference computes with the rest.
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
    """Where a record stands."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}"


@dataclass(frozen=True, slots=True)
class Given:
    """A record of an input topic; `fields` is None where it cannot be read."""

    place: Place
    fields: Fields | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a dead letter says.

    Args:
        fragment: which one refused.
        place: of the record; None for a result that could not be computed.
        port: the input of a join that refused it; empty where all of them did.
        reason: as in the dead letter.
        text: the dead letter for people.
    """

    fragment: str
    place: Place | None
    port: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Due:
    """A row that has to come out, and its event time in ms since 1970 UTC."""

    row: Row
    at_ms: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that was given, by stream and in the order of places; and what was refused."""

    given: Mapping[str, tuple[Given, ...]]
    refusals: tuple[Refusal, ...] = ()

    def taken(self, fragment: str, stream: str, port: str | None = None) -> list[Fields]:
        """The records of a stream that a fragment computed with, in the order of their places.

        Args:
            fragment: its name.
            stream: which of its inputs.
            port: one input of a join; a record that only the other one refused counts there.
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
