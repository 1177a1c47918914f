"""Three forms of a schema by which schemas are told apart.

* Parsing Canonical Form (Avro specification): what matters for reading bytes; names, types, order.
  Its fingerprints are CRC-64-AVRO and SHA-256.
* Content form: everything that the author wrote, in one spelling: documentation, defaults, aliases
  and logical types count, white space, the order of keys and the way a name is qualified do not.
  Its SHA-256 is the registry's content key.
"""

import hashlib
import json

from schemas.avro import AvroSchema, order_word
from schemas.json_value import Json, JsonObject, list_of, object_of, text_of
from schemas.naming import qualified
from schemas.types import (
    PRIMITIVES,
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    Primitive,
    RecordType,
    Reference,
    UnionType,
)

_EMPTY = 0xC15D213AA4D7A795
"""The CRC-64-AVRO of nothing, and the polynomial: both from the specification."""


def _compact(value: Json, *, sort_keys: bool = False) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)


def canonical_form(schema: AvroSchema) -> str:
    """The Parsing Canonical Form of a schema."""
    return _compact(_canonical(schema.root))


def _canonical(avro_type: AvroType) -> Json:  # noqa: PLR0911 - one return for each kind
    match avro_type:
        case Primitive(kind):
            return kind.value
        case Reference(name):
            return name
        case UnionType(branches):
            return [_canonical(branch) for branch in branches]
        case ArrayType(items):
            return {"type": "array", "items": _canonical(items)}
        case MapType(values):
            return {"type": "map", "values": _canonical(values)}
        case FixedType(name, size=size):
            return {"name": name, "type": "fixed", "size": size}
        case EnumType(name, symbols=symbols):
            return {"name": name, "type": "enum", "symbols": list(symbols)}
        case RecordType(name, fields=fields):
            listed: list[Json] = [{"name": f.name, "type": _canonical(f.type)} for f in fields]
            return {"name": name, "type": "record", "fields": listed}


def _crc_table() -> tuple[int, ...]:
    table: list[int] = []
    for index in range(256):
        remainder = index
        for _ in range(8):
            remainder = (remainder >> 1) ^ (_EMPTY if remainder & 1 else 0)
        table.append(remainder)
    return tuple(table)


_TABLE = _crc_table()


def crc_64(data: bytes) -> int:
    """The CRC-64-AVRO of bytes, as an unsigned number."""
    remainder = _EMPTY
    for byte in data:
        remainder = (remainder >> 8) ^ _TABLE[(remainder ^ byte) & 0xFF]
    return remainder


def crc_fingerprint(schema: AvroSchema) -> int:
    """The CRC-64-AVRO of the canonical form, as an unsigned number."""
    return crc_64(canonical_form(schema).encode())


def sha256_fingerprint(schema: AvroSchema) -> str:
    """The SHA-256 of the canonical form, as lower-case hex."""
    return hashlib.sha256(canonical_form(schema).encode()).hexdigest()


def content_key(schema: AvroSchema) -> str:
    """The SHA-256 of the content form, as lower-case hex: equal exactly for equal contents."""
    form = _compact(content(schema.value), sort_keys=True)
    return hashlib.sha256(form.encode()).hexdigest()


def content(value: Json) -> Json:
    """The content form of a schema's JSON value, which has to be that of a valid schema."""
    return _content(value, "")


def _content(value: Json, namespace: str) -> Json:
    """A JSON value of a parsed schema with full names and plain words for plain types."""
    if isinstance(value, list):
        return [_content(branch, namespace) for branch in value]
    if isinstance(value, str):
        # A reference in full. The parser may have found it in the null namespace instead; then both
        # spellings of it are the same text anyway, so the key stays the same for the same schema.
        return value if value in PRIMITIVES else qualified(value, namespace)
    made = dict(object_of(value))
    word = made["type"]
    if word in {"record", "error", "enum", "fixed"}:
        full = qualified(text_of(made["name"]), text_of(made.pop("namespace", namespace)))
        made["name"], own = full, full.rpartition(".")[0]
        if made.get("aliases"):
            made["aliases"] = [qualified(text_of(one), own) for one in list_of(made["aliases"])]
        if "fields" in made:
            made["fields"] = [
                _content_of_field(object_of(one), own) for one in list_of(made["fields"])
            ]
    elif word == "array":
        made["items"] = _content(made["items"], namespace)
    elif word == "map":
        made["values"] = _content(made["values"], namespace)
    elif len(made) == 1:
        return _content(made["type"], namespace)
    return made


def _content_of_field(field: JsonObject, namespace: str) -> JsonObject:
    made = {**field, "type": _content(field["type"], namespace)}
    if "order" in field:
        made["order"] = order_word(text_of(field["order"]))
    return made
