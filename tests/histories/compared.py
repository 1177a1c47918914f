"""Comparison of the results of a batch with those that were expected. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from brokers.records import KafkaRecord
from schemas import wire
from tests.histories.boxes import Seen


def difference(
    due: Iterable[Seen], published: Iterable[KafkaRecord], *, may_differ: bool
) -> tuple[str, str] | None:
    """The kind and the text of a difference; None: there is none.

    `may_differ`: whether a first try of the batch may have decided otherwise, and its results be
    visible as well.
    """
    expected = Counter((row.at, _frozen(row.values)) for row in due)
    found = Counter((int(r.timestamp_ms), _frozen(_body(r))) for r in published)
    lost, more = expected - found, found - expected
    more = Counter() if may_differ else more
    if not lost and not more:
        return None
    text = f"missing {_some(lost)}, too many {_some(more)}"
    return "different" if lost and more else "lost" if lost else "repeated", text


def _body(record: KafkaRecord) -> Any:
    framed = wire.split(record.value)
    assert isinstance(framed, wire.Framed)
    return json.loads(framed.body)


def _frozen(values: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(values.items()))


def _some(found: Counter[Any]) -> str:
    shown = [f"{dict(values)}@{at}" for at, values in list(found)[:3]]
    return f"{sum(found.values())} ({'; '.join(shown)})" if found else "0"
