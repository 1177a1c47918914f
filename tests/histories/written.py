"""Records that lanes have written, and what their headers say."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from brokers.records import KafkaRecord
from schemas import wire
from tests.histories.world import Commit

Place = tuple[str, int, int]
"""Topic id, partition, offset."""
_ERROR = "medusa.error."


def letters_of(commit: Commit) -> Iterator[tuple[Place, KafkaRecord]]:
    """The dead letters of a transaction, with the places of their records."""
    for record in commit.records:
        if record.topic == commit.names.dead_letters:
            headers = error_headers(record)
            yield (headers["topic_id"], int(headers["partition"]), int(headers["offset"])), record


def error_headers(letter: KafkaRecord) -> dict[str, str]:
    """The error headers of a dead letter, without their prefix."""
    found = ((name, (value or b"").decode()) for name, value in letter.headers)
    return {name.removeprefix(_ERROR): value for name, value in found if name.startswith(_ERROR)}


def framed_by(record: KafkaRecord) -> object:
    """The schema id or GUID of a record; None if it has none."""
    framed = wire.split(record.value)
    return framed.schema if isinstance(framed, wire.Framed) else None


def body(record: KafkaRecord) -> Any:
    """The values of a record."""
    framed = wire.split(record.value)
    assert isinstance(framed, wire.Framed)
    return json.loads(framed.body)


def frozen(values: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Values, to be counted."""
    return tuple(sorted(values.items()))


def some(found: Counter[Any]) -> str:
    """A few of them, with their number."""
    shown = [f"{dict(values)}@{at}" for at, values in list(found)[:3]]
    return f"{sum(found.values())} ({'; '.join(shown)})" if found else "0"
