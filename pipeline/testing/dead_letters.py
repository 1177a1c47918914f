"""Dead letters as a test compares them. Pure.

If several fragments refuse one record for one reason, the test has one dead letter.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from pipeline.dead_letters.letter import Letter
from pipeline.testing.compare import Actual
from schemas.json_value import JsonObject
from schemas.logical import Native

RECORD: Final = "record"
VALUES: Final = "values"
"""The input values of a failed result."""
OF_STREAM: Final = "event_time"
"""Prefix of reasons about a field of the stream's declaration, not of a box."""
LETTER_FIELDS: Final = ("stream", "reason", "box", "field", "message", RECORD, VALUES)


def comparable(
    found: Iterable[tuple[Letter, Mapping[str, Native] | None, JsonObject | None]],
) -> tuple[Actual, ...]:
    """Dead letters, each with its record decoded and as JSON; None: not decodable."""
    distinct: dict[tuple[Hashable, ...], Actual] = {}
    for letter, value, shown in found:
        entries: dict[str, str] = {"reason": letter.reason}
        if letter.input:  # a failed result has no single stream
            entries = {"stream": letter.input, **entries}
        # A record refused by no box was refused by the fragment, which is irrelevant here.
        if letter.field and not letter.reason.startswith(OF_STREAM):
            entries |= {"box": letter.box, "field": letter.field}
        entries["message"] = letter.message
        inputs = {f"{VALUES}.{name}": part for name, part in (letter.computed_from or {}).items()}
        native = {f"{RECORD}.{name}": part for name, part in (value or {}).items()}
        as_json = {f"{RECORD}.{name}": part for name, part in (shown or {}).items()}
        same = (letter.at or letter.number, letter.reason, entries.get("box"), entries.get("field"))
        distinct.setdefault(
            same, Actual({**entries, **inputs, **native}, {**entries, **inputs, **as_json})
        )
    return tuple(distinct.values())
