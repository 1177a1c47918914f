"""Measured kinds of boxes: inputs, outputs, and the earliest time of a result.

`kinds/NAME.yaml` is Medusa's network of each, `box_jobs.py` contains plain PySpark's jobs.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from benchmarks.readings import CONVERTED_JSON, READING_JSON

LATENESS_MS = 1_000
JOINED_WITHIN_MS = 3_000
Row = Mapping[str, Any]

_TYPES: Mapping[str, Any] = {
    "time": {"type": "long", "logicalType": "timestamp-millis"},
    "string": "string",
    "long": "long",
    "int": "int",
    "double": "double",
}


def schema(name: str, **fields: str) -> str:
    """An Avro schema of names and types; a nullable type ends with `?`."""
    made = [
        {
            "name": field,
            "type": ["null", _TYPES[kind[:-1]]] if kind.endswith("?") else _TYPES[kind],
        }
        for field, kind in fields.items()
    ]
    return json.dumps({"type": "record", "name": name, "fields": made})


def rest_of(target: str) -> str:
    """The topic of a route's other branch."""
    return f"{target}-rest"


def instant_ms(at: datetime) -> float:
    """Milliseconds since 1970."""
    return at.timestamp() * 1_000


def at_once(row: Row) -> float:
    """Due time of a stateless row: when its reading was sent."""
    return instant_ms(row["at"])


def behind_window(row: Row) -> float:
    """Due time of a window: when all of its later readings would be late."""
    return instant_ms(row["window_end"]) + LATENESS_MS


def when_passed(row: Row) -> float:
    """Due time of a row that is emitted when event time has passed it."""
    return instant_ms(row["at"]) + LATENESS_MS


def of_join(row: Row) -> float:
    """Due time of a pair: that of its later reading; without a partner, when none can arrive."""
    times = [instant_ms(row[side]) for side in ("at", "other_at") if row[side] is not None]
    alone = len(times) == 1
    return max(times) + (JOINED_WITHIN_MS + LATENESS_MS if alone else 0)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of box.

    Args:
        schema: of the plain job's output; Medusa's has the same columns.
        due: earliest possible time of a result, ms since 1970.
        sources: number of input topics.
        plain_due: the same for the plain job, where it differs.
        short_of: reason of differences in plain PySpark's results; empty: there are none.
    """

    schema: str
    due: Callable[[Row], float]
    sources: int = 1
    plain_due: Callable[[Row], float] | None = None
    short_of: str = ""


_AVERAGE = schema(
    "Average",
    site="string",
    window_start="time",
    window_end="time",
    celsius="double?",
    readings="long",
)
_STAY = schema(
    "Stay",
    sensor="string",
    window_start="time",
    window_end="time",
    celsius="double?",
    readings="long",
)
_TOP = schema(
    "Top",
    site="string",
    window_start="time",
    window_end="time",
    rank="int",
    sensor="string",
    celsius="double",
)
_PAIR = schema(
    "Pair", sensor="string", celsius="double?", other="double?", at="time?", other_at="time?"
)
_PART = schema("Part", sensor="string", part="string?", celsius="double", at="time")
_MAXIMUM = "its watermark follows the fastest partition"
_JOIN = Kind(_PAIR, of_join, sources=2, short_of=_MAXIMUM)

KEPT: Mapping[str, Kind] = {
    "kept_join": _JOIN,
    "kept_session": Kind(_STAY, behind_window),
}
"""Kinds with bounds of an hour, so that no row leaves the state during the measurement."""
KINDS: Mapping[str, Kind] = {
    "filter": Kind(READING_JSON, at_once),
    "map": Kind(CONVERTED_JSON, at_once),
    "union": Kind(READING_JSON, at_once, sources=2),
    "flat_map": Kind(_PART, at_once),
    "route": Kind(READING_JSON, at_once),
    "python": Kind(
        CONVERTED_JSON, at_once, short_of="a row for which the function fails ends the query"
    ),
    "tumbling": Kind(_AVERAGE, behind_window, short_of=_MAXIMUM),
    "sliding": Kind(_AVERAGE, behind_window, short_of=_MAXIMUM),
    "session": Kind(
        _STAY, behind_window, short_of=f"{_MAXIMUM}, and which late rows count hangs on the batches"
    ),
    "top": Kind(
        _TOP, behind_window, short_of=f"{_MAXIMUM}; written by hand over a list of all rows"
    ),
    "inner_join": _JOIN,
    "left_join": _JOIN,
    "full_join": _JOIN,
    "as_of": Kind(
        _PAIR,
        when_passed,
        sources=2,
        plain_due=of_join,
        short_of="it has no such join: each row comes with all versions of the bound",
    ),
    "deduplicate": Kind(
        READING_JSON,
        when_passed,
        plain_due=at_once,
        short_of="it keeps what was read first, and sends it at once",
    ),
}
