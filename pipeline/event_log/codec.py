"""JSON codec of the entries of the event log.

Unknown fields are ignored, so a field may be added without a new format if its absence keeps its
earlier meaning. A kind that this program does not have is kept as text.
"""

import json
from typing import Final

from pipeline.errors import RefusedError
from pipeline.event_log.event import LoggedEvent
from pipeline.formats import WRITTEN
from pipeline.ids import Millis
from pipeline.stored_json import fields_of
from schemas.json_value import JsonObject

_WHAT: Final = "entry of the event log"


class NoEntryError(RefusedError):
    """A record of the event log's topic is not an entry."""

    code = "no-entry"


def as_json(event: LoggedEvent) -> JsonObject:
    """The fields of an entry, as they are written; those that do not apply are left out."""
    fields: JsonObject = {
        "network": event.network,
        "fragment": event.fragment,
        "node": event.node,
        "why": event.why,
        "facts": dict(event.facts),
        "parts_ms": dict(event.parts_ms),
    }
    given = {name: value for name, value in fields.items() if value}
    return {"at_ms": event.at_ms, "kind": event.kind, "by": event.by, **given}


def encode(event: LoggedEvent) -> bytes:
    """Encode an entry as a record value."""
    fields = {"format": WRITTEN, **as_json(event)}
    return json.dumps(fields, separators=(",", ":")).encode()


def decode(value: bytes | None, place: str) -> LoggedEvent:
    """Decode an entry; `place` is its location, for error messages.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        NoEntryError: it is something else.
    """
    fields = fields_of(value, _WHAT, place, NoEntryError)
    at_ms = fields.get("at_ms")
    if not isinstance(at_ms, int):
        raise NoEntryError(f"a record is no {_WHAT}", place=place)
    facts, parts = fields.get("facts"), fields.get("parts_ms")
    return LoggedEvent(
        at_ms=Millis(at_ms),
        kind=_text(fields, "kind"),
        by=_text(fields, "by"),
        network=_text(fields, "network"),
        fragment=_text(fields, "fragment"),
        node=_text(fields, "node"),
        why=_text(fields, "why"),
        facts=tuple((k, str(v)) for k, v in facts.items()) if isinstance(facts, dict) else (),
        parts_ms=tuple((k, v) for k, v in parts.items() if isinstance(v, int))
        if isinstance(parts, dict)
        else (),
    )


def _text(fields: JsonObject, name: str) -> str:
    found = fields.get(name, "")
    return found if isinstance(found, str) else ""
