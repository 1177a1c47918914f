"""Dead letters as a test looks at them. Pure.

Several fragments may refuse one record for one reason; to a test that is one dead letter.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from pipeline.dead_letters.letter import Letter
from pipeline.testing.compare import Came
from schemas.json_value import JsonObject
from schemas.logical import Native

RECORD: Final = "record"
VALUES: Final = "values"
"""What a result was to be computed from."""
OF_STREAM: Final = "event_time"
"""Reasons that begin so are about a field of the stream's declaration, not of a box."""
LETTER_FIELDS: Final = ("stream", "reason", "box", "field", "message", RECORD, VALUES)


def letters(
    found: Iterable[tuple[Letter, Mapping[str, Native] | None, JsonObject | None]],
) -> tuple[Came, ...]:
    """Dead letters, each with its record as decoded and as JSON; None: that cannot be had."""
    kept: dict[tuple[Hashable, ...], Came] = {}
    for letter, value, shown in found:
        said: dict[str, str] = {"reason": letter.reason}
        if letter.input:  # a result that could not be computed comes from no one stream
            said = {"stream": letter.input, **said}
        # What no box refused was refused by the fragment, which is no matter here.
        if letter.field and not letter.reason.startswith(OF_STREAM):
            said |= {"box": letter.box, "field": letter.field}
        said["message"] = letter.message
        values = letter.computed_from or {}
        given = {f"{VALUES}.{name}": part for name, part in values.items()}
        flat = {f"{RECORD}.{name}": part for name, part in (value or {}).items()}
        told = {f"{RECORD}.{name}": part for name, part in (shown or {}).items()}
        same = (letter.at or letter.number, letter.reason, said.get("box"), said.get("field"))
        kept.setdefault(same, Came({**said, **given, **flat}, {**said, **given, **told}))
    return tuple(kept.values())
