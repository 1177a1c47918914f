"""A kind of made-up traffic: what it is, how often it comes, and what makes it."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TypeAlias

Field: TypeAlias = str | int | float | None
Fields: TypeAlias = Mapping[str, Field]
"""The fields of a record by name; times are ms since 1970 UTC."""

TICK_MS = 50
"""Traffic is made in steps of this length."""


@dataclass(frozen=True, slots=True)
class Made:
    """A record that is sent at `at_ms`, in ms since 1970 UTC."""

    at_ms: int
    fields: Fields


Make: TypeAlias = Callable[[int, int, float], Iterator[Made]]
"""Makes records without end, in the order of their times of sending.

Its arguments are a seed, the time at which traffic begins in ms since 1970 UTC, and how many
records come in a second. Equal arguments give equal records.
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of traffic.

    Args:
        name: what users call it.
        summary: in one line.
        schema_file: the file with its Avro schema.
        key: the field that is the key of a record.
        times: the fields with times; the first one is the event time.
        rate: how many records a second are usual.
        rates: the lowest and the highest rate.
        make: makes its records.
    """

    name: str
    summary: str
    schema_file: str
    key: str
    times: tuple[str, ...]
    rate: float
    rates: tuple[float, float]
    make: Make

    @property
    def event_time(self) -> str:
        """The field with the event time."""
        return self.times[0]

    @property
    def schema_json(self) -> str:
        """The text of its Avro schema."""
        path = resources.files(__package__) / "schemas" / self.schema_file
        return path.read_text(encoding="utf-8")


def ticks(start_ms: int, rate: float, tick_ms: int = TICK_MS) -> Iterator[tuple[int, int]]:
    """The end of each tick, and how many records are due in it, at a steady rate.

    >>> [due for _, due in itertools.islice(ticks(0, 30.0), 4)]
    [1, 2, 1, 2]
    """
    sent = 0
    for tick in itertools.count(1):
        due = int(tick * tick_ms * rate / 1_000) - sent
        sent += due
        yield start_ms + tick * tick_ms, due
