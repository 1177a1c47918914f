"""The input stream of most cases: readings of a few sensors."""

from collections.abc import Iterator
from random import Random

from tests.faults.case import INSTANT, AvroSchema, Fed, Stream
from tests.faults.history import Value
from tests.faults.traffic import Recipe, closing, mixed

READING: AvroSchema = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "sensor", "type": "string"},
        {"name": "number", "type": "int"},
        {"name": "value", "type": "int"},
        {"name": "at", "type": INSTANT},
    ],
}
SENSORS = ("ash", "birch", "cedar", "date", "elm")


def stream(name: str = "readings") -> Stream:
    """An external stream of readings."""
    return Stream(name, READING, "at")


def declared(*names: str, silence: str = "silence: missing") -> str:
    """The streams in a document, with their `silence`."""
    lines = [
        f"  {name}: {{topic: {{name}}-{name}, schema: {name}.avsc, event_time: at, lateness: 1s, "
        f"{silence}, partitions: 2}}"
        for name in names
    ]
    return "streams:\n" + "\n".join(lines) + "\n"


def fields(random: Random, sensor: str, number: int) -> dict[str, Value]:
    """A reading's values; its number makes it unique."""
    return {"sensor": sensor, "number": number, "value": random.randint(1, 1_000)}


def recipe(name: str = "readings", spoil_fields: tuple[tuple[str, Value], ...] = ()) -> Recipe:
    """Generator settings of readings."""
    return Recipe(name, "at", (*SENSORS, None), fields, spoil_fields=spoil_fields)


READ = recipe()
SPOILT = recipe(spoil_fields=(("value", 0),))
"""A value of 0 is no divisor."""


def feed(random: Random, start_ms: int) -> Iterator[Fed]:
    """Endless readings."""
    return mixed(random, start_ms, (READ,))


def feed_spoilt(random: Random, start_ms: int) -> Iterator[Fed]:
    """Endless readings, of which some cannot be computed."""
    return mixed(random, start_ms, (SPOILT,))


def close(at_ms: int) -> Iterator[Fed]:
    """Closing records."""
    return closing(READ, at_ms)
