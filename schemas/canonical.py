"""The content form of a schema, by which the registry tells schemas apart.

Everything that the author wrote, in one spelling: documentation, defaults, aliases and logical
types count, white space, the order of keys and the way a name is qualified do not. Its SHA-256 is
the registry's content key.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from schemas.avro import AvroSchema, order_word
from schemas.types import PRIMITIVES


def content_key(schema: AvroSchema) -> str:
    """The SHA-256 of the content form, as lower-case hex: equal exactly for equal contents."""
    form = json.dumps(
        content(schema.value), separators=(",", ":"), ensure_ascii=False, sort_keys=True
    )
    return hashlib.sha256(form.encode()).hexdigest()


def alike(one: object, other: object) -> bool:
    """Whether two JSON values are written alike: `1`, `1.0` and `true` are three values."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def content(value: Any) -> Any:
    """The content form of a schema's JSON value, which has to be that of a valid schema."""
    return _content(value, "")


def _qualified(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _content(value: Any, namespace: str) -> Any:
    """A JSON value of a parsed schema with full names and plain words for plain types."""
    if isinstance(value, list):
        return [_content(branch, namespace) for branch in value]
    if isinstance(value, str):
        return value if value in PRIMITIVES else _reference(value, namespace)
    made = dict(value)
    if value["type"] in {"record", "error", "enum", "fixed"}:
        full = _qualified(made["name"], made.pop("namespace", namespace))
        made["name"], own = full, full.rpartition(".")[0]
        if made.get("aliases"):
            made["aliases"] = [_qualified(alias, own) for alias in made["aliases"]]
        if "fields" in made:
            made["fields"] = [_content_of_field(field, own) for field in made["fields"]]
    elif value["type"] == "array":
        made["items"] = _content(made["items"], namespace)
    elif value["type"] == "map":
        made["values"] = _content(made["values"], namespace)
    elif len(made) == 1:
        return _content(made["type"], namespace)
    return made


def _content_of_field(field: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    order = {"order": order_word(field["order"])} if "order" in field else {}
    return {**field, "type": _content(field["type"], namespace), **order}


def _reference(name: str, namespace: str) -> str:
    """A reference in full.

    The parser may have found it in the null namespace instead; then both spellings of it are the
    same text anyway, so the key stays the same for the same schema.
    """
    return _qualified(name, namespace)
