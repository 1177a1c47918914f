"""JSON codec of heartbeats. Pure.

Unknown fields are ignored, so a field may be added without a new format if its absence keeps its
earlier meaning.
"""

import json
from typing import Final

from pipeline.errors import RefusedError
from pipeline.formats import WRITTEN
from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.heartbeats.steps import decode_steps, encode_steps
from pipeline.ids import Millis, NodeId, SteadyMillis
from pipeline.stored_json import fields_of
from schemas.json_value import JsonObject

_WHAT: Final = "heartbeat"


class NoHeartbeatError(RefusedError):
    """A record of the topic of heartbeats is not a heartbeat."""

    code = "no-heartbeat"


def encode(heartbeat: Heartbeat) -> bytes:
    """Encode a heartbeat as a record value."""
    fields: JsonObject = {
        "format": WRITTEN,
        "node": heartbeat.node,
        "life": heartbeat.life,
        "number": heartbeat.number,
        "sent_ms": heartbeat.sent_ms,
        "agent_ms": heartbeat.agent_ms,
        "ended": heartbeat.ended,
    }
    if heartbeat.wall_ms is not None:
        fields["wall_ms"] = heartbeat.wall_ms
    if heartbeat.steps is not None:
        fields["steps"] = json.loads(encode_steps(heartbeat.steps))
    return json.dumps(fields, separators=(",", ":")).encode()


def decode(value: bytes | None, place: str) -> Heartbeat:
    """Decode a heartbeat; `place` is its location, for error messages.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        NoHeartbeatError: it is something else.
    """
    fields = fields_of(value, _WHAT, place, NoHeartbeatError)
    node, ended, steps = fields.get("node"), fields.get("ended"), fields.get("steps")
    if not isinstance(node, str) or not isinstance(ended, bool):
        raise NoHeartbeatError(f"a record is no {_WHAT}", place=place)
    return Heartbeat(
        node=NodeId(node),
        life=Millis(_number(fields, "life", place)),
        number=_number(fields, "number", place),
        sent_ms=SteadyMillis(_number(fields, "sent_ms", place)),
        agent_ms=_number(fields, "agent_ms", place),
        ended=ended,
        steps=None if steps is None else decode_steps(steps),
        wall_ms=Millis(_number(fields, "wall_ms", place)) if "wall_ms" in fields else None,
    )


def _number(fields: JsonObject, name: str, place: str) -> int:
    found = fields.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        raise NoHeartbeatError(f"a record is no {_WHAT}", place=place)
    return found
