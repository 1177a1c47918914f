"""Bytes of made-up records: JSON lines, and Avro for a topic; bad ones too. Pure."""

import json
from dataclasses import dataclass

from connectors.generators.disturbing import Breakage, Sent
from pipeline.ids import SchemaId
from schemas.avro import AvroSchema
from schemas.codec import encode, from_json
from schemas.wire import SCHEMA_ID_MAX, join

_NOISE = b"\xff\xfe\x00made up\x00"
_WRONG = "soon"
"""In place of a time."""


def as_line(sent: Sent, event_time: str) -> bytes:
    r"""A line of JSON, with its end.

    >>> as_line(Sent(0, {"car": "A", "seen_at": 5}), "seen_at")
    b'{"car":"A","seen_at":5}\n'

    Args:
        sent: the record.
        event_time: the field that a bad record may lack, or have wrong.
    """
    fields = dict(sent.fields)
    if sent.breakage is Breakage.NOISE:
        return _NOISE + b"\n"
    if sent.breakage is Breakage.MISSING:
        del fields[event_time]
    if sent.breakage is Breakage.WRONG:
        fields[event_time] = _WRONG
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    if sent.breakage is Breakage.CUT:
        text = text[: len(text) // 2]
    return text + b"\n"


@dataclass(frozen=True, slots=True)
class AvroEncoding:
    """How the records of a topic are encoded: the schema with its id, and the field of the key."""

    schema: AvroSchema
    schema_id: SchemaId
    key: str

    def key_of(self, sent: Sent) -> bytes:
        """The key of a record: the text of its field."""
        return str(sent.fields[self.key]).encode()

    def value_of(self, sent: Sent) -> bytes:
        """The value of a record in the wire format of the registry.

        Raises:
            SchemaError: the schema does not fit what is made.
        """
        body = encode(self.schema, from_json(self.schema, dict(sent.fields)))
        whole = join(self.schema_id, body)
        match sent.breakage:
            case None:
                return whole
            case Breakage.CUT:
                return whole[: len(whole) // 2]
            case Breakage.MISSING:
                return b""
            case Breakage.WRONG:
                return join(SchemaId(SCHEMA_ID_MAX), body)
            case Breakage.NOISE:
                return _NOISE
