"""Kinds of records of the codec benchmark: schemas and random values."""

import json
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

RECORDS = 200
WIDE = 100
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
Chance = random.Random


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of record.

    Args:
        name: for the report; also the topic.
        writer: the schema's text.
        values: to encode.
        reader: the text of another reader schema; None: the writer's.
    """

    name: str
    writer: str
    values: tuple[Any, ...]
    reader: str | None = None


def record(name: str, *fields: tuple[Any, ...]) -> dict[str, Any]:
    """A record of fields with name, type, and an optional default."""
    keys = ("name", "type", "default")
    return {
        "type": "record",
        "name": name,
        "fields": [dict(zip(keys, field, strict=False)) for field in fields],
    }


def values(make: Callable[[Chance], Any]) -> tuple[Any, ...]:
    """Values of one kind, equal in every run."""
    chance = random.Random(0)
    return tuple(make(chance) for _ in range(RECORDS))


SMALL = record("Reading", ("car", "string"), ("speed", "double"), ("lane", "int"))


def small(chance: Chance) -> dict[str, Any]:
    """A reading."""
    return {"car": word(chance), "speed": chance.uniform(0, 50), "lane": chance.randrange(4)}


def word(chance: Chance) -> str:
    """A random string."""
    return "".join(chance.choices("abcdefghij", k=chance.randint(4, 16)))


_OF_WIDE: tuple[tuple[Any, Callable[[Chance], Any]], ...] = (
    ("long", lambda chance: chance.randrange(10**9)),
    ("double", lambda chance: chance.random()),
    ("string", word),
    ("boolean", lambda chance: chance.choice([True, False])),
    (["null", "long"], lambda chance: chance.choice([None, chance.randrange(10**6)])),
)
WIDE_RECORD = record("Wide", *((f"f{n}", _OF_WIDE[n % len(_OF_WIDE)][0]) for n in range(WIDE)))


def wide(chance: Chance) -> dict[str, Any]:
    """A record of a hundred fields."""
    return {f"f{n}": _OF_WIDE[n % len(_OF_WIDE)][1](chance) for n in range(WIDE)}


PLACE = record("Place", ("x", "double"), ("y", "double"), ("segment", ["null", "string"]))
NESTED = record(
    "Trip",
    ("car", "string"),
    ("from", PLACE),
    ("to", ["null", "Place"]),
    ("stops", {"type": "array", "items": "Place"}),
    ("tags", {"type": "map", "values": ["null", "long", "string"]}),
    ("state", {"type": "enum", "name": "State", "symbols": ["BEGUN", "ENDED"]}),
    ("cause", [{"type": "fixed", "name": "Code", "size": 4}, "string"]),
)


def nested(chance: Chance) -> dict[str, Any]:
    """A trip with nested places."""

    def place() -> dict[str, Any]:
        return {
            "x": chance.random(),
            "y": chance.random(),
            "segment": chance.choice([None, word(chance)]),
        }

    return {
        "car": word(chance),
        "from": place(),
        "to": chance.choice([None, place()]),
        "stops": [place() for _ in range(chance.randrange(6))],
        "tags": {word(chance): chance.choice([None, 7, "seven"]) for _ in range(5)},
        "state": chance.choice(["BEGUN", "ENDED"]),
        "cause": chance.choice([b"\0\1\2\3", word(chance)]),
    }


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    """A logical type."""
    return {"type": kind, "logicalType": name, **more}


TYPED = record(
    "Toll",
    ("id", logical("string", "uuid")),
    ("amount", logical("bytes", "decimal", precision=12, scale=2)),
    ("due", logical("int", "date")),
    ("at", logical("long", "timestamp-millis")),
    ("exactly_at", logical("long", "timestamp-micros")),
    ("clock", logical("int", "time-millis")),
    ("paid", ["null", logical("long", "timestamp-millis")]),
)


def typed(chance: Chance) -> dict[str, Any]:
    """A toll: an id, an amount and times."""
    at = EPOCH + timedelta(milliseconds=chance.randrange(10**10))
    return {
        "id": uuid.UUID(int=chance.getrandbits(128)),
        "amount": Decimal(chance.randrange(-(10**8), 10**8)).scaleb(-2),
        "due": date(2026, 1, 1) + timedelta(days=chance.randrange(1000)),
        "at": at,
        "exactly_at": at + timedelta(microseconds=chance.randrange(1000)),
        "clock": time(chance.randrange(24), chance.randrange(60), chance.randrange(60)),
        "paid": chance.choice([None, at]),
    }


EVOLVED = record(
    "Reading",
    ("lane", "long"),
    ("car", ["null", "string"]),
    ("speed", "double"),
    ("direction", "string", "east"),
    ("weight", ["null", "double"], None),
)
KINDS = (
    Kind("text", '"string"', values(word)),
    Kind("one of two", json.dumps([SMALL, TYPED]), (*values(small), *values(typed))),
    Kind("small", json.dumps(SMALL), values(small)),
    Kind("wide", json.dumps(WIDE_RECORD), values(wide)),
    Kind("nested", json.dumps(NESTED), values(nested)),
    Kind("logical types", json.dumps(TYPED), values(typed)),
    Kind("small, by a newer schema", json.dumps(SMALL), values(small), json.dumps(EVOLVED)),
)
