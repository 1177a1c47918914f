"""Content form of a schema, by which schemas are compared.

It normalises the spelling of everything that the author wrote: documentation, defaults, aliases and
logical types are significant; white space, the order of keys and the qualification of names are
not. Its SHA-256 is the content key.
"""

import hashlib
import json

from schemas.avro import AvroSchema, order_word
from schemas.json_value import Json, JsonObject, list_of, object_of, text_of
from schemas.naming import qualified
from schemas.types import PRIMITIVES


def content_key(schema: AvroSchema) -> str:
    """The SHA-256 of the content form, as lower-case hex: equal exactly for equal contents."""
    form = json.dumps(
        content(schema.value), separators=(",", ":"), ensure_ascii=False, sort_keys=True
    )
    return hashlib.sha256(form.encode()).hexdigest()


def alike(one: Json, other: Json) -> bool:
    """Whether two JSON values are written equally: `1`, `1.0` and `true` are three values."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def content(value: Json) -> Json:
    """The content form of the JSON value of a valid schema."""
    return _content(value, "")


def _content(value: Json, namespace: str) -> Json:
    """Normalise a type of a valid schema: full names, no objects around primitive types."""
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
