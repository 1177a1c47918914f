"""Canonical text of a schema as Java Avro prints it, and its normalised form. Pure.

A registry stores schemas as Java Avro prints them: without blanks, attributes in Java's order,
names without the namespace that they are in. Schemas that differ only in spelling have one text,
and so one id, as in every other registry.

Both functions take the JSON value of a schema that `schemas.avro` has parsed.
"""

import json
from collections.abc import Callable
from decimal import Decimal

from schemas.avro import order_word
from schemas.json_value import Json, JsonObject, list_of, object_of, text_of, texts_of
from schemas.naming import NAMED, qualified, spelled
from schemas.types import PRIMITIVES

_TYPE_KEYS = {
    "type",
    "name",
    "namespace",
    "doc",
    "fields",
    "items",
    "values",
    "size",
    "symbols",
    "aliases",
}
_FIELD_KEYS = {"name", "type", "doc", "default", "order", "aliases"}
_PLAIN_FROM, _PLAIN_BELOW = -3, 7
"""Powers of ten that Java writes without an exponent."""
_ESCAPES = {
    **{code: f"\\u{code:04X}" for code in range(ord(" "))},
    **str.maketrans({'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t"}),
    **str.maketrans({"\n": "\\n", "\f": "\\f", "\r": "\\r"}),
}
"""The escapes of Java's JSON in texts."""


def canonical_text(value: Json) -> str:
    """A schema as Java Avro prints it."""
    return _dumped(_Printer().type(value, None))


def normal_text(value: Json) -> str:
    """A schema in its normalised form.

    It is the same for different spellings: custom attributes and aliases are sorted, an empty
    documentation of a type, a scale of 0 and needless braces are left out. Documentation, defaults
    and the order of fields are unchanged.
    """
    return canonical_text(_normal(value, None))


# --- Java's printing ----------------------------------------------------------------------------


class _Printer:
    """Printer of one schema; defines a named type at its first occurrence, then uses its name."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def type(self, value: Json, space: str | None) -> Json:  # noqa: PLR0911 - one return for each kind
        """Print a type inside a namespace."""
        if isinstance(value, list):
            return [self.type(branch, space) for branch in value]
        if isinstance(value, str):
            return value if value in PRIMITIVES else self._reference(value, space)
        value = object_of(value)
        word = text_of(value["type"])
        if word in NAMED:
            return self._named(word, value, space)
        if word == "array":
            return {"type": word, "items": self.type(value["items"], space), **_others(value)}
        if word == "map":
            return {"type": word, "values": self.type(value["values"], space), **_others(value)}
        if word in PRIMITIVES:
            return {"type": word, **_others(value)} if _others(value) else word
        return self._reference(word, space)

    def _reference(self, name: str, space: str | None) -> str:
        full = qualified(name, space)
        return spelled(full if full in self._known or "." in name else name, space)

    def _named(self, word: str, value: JsonObject, space: str | None) -> JsonObject:
        full = _full_name(value, space)
        own, _, short = full.rpartition(".")
        self._known.add(full)
        made: JsonObject = {"type": word, "name": short}
        if own != (space or ""):
            made["namespace"] = own
        if isinstance(value.get("doc"), str):
            made["doc"] = value["doc"]
        if word == "enum":
            made["symbols"] = value["symbols"]
            if value.get("default") is not None:
                made["default"] = value["default"]
        elif word == "fixed":
            made["size"] = value["size"]
        else:
            made["fields"] = [
                self._field(object_of(one), own or None) for one in list_of(value["fields"])
            ]
        made |= _others(value, {"default"} if word == "enum" else set())
        if value.get("aliases"):
            aliases = dict.fromkeys(
                qualified(one, own or None) for one in texts_of(value["aliases"])
            )
            made["aliases"] = [spelled(alias, own or None) for alias in aliases]
        return made

    def _field(self, field: JsonObject, space: str | None) -> JsonObject:
        made: JsonObject = {"name": field["name"], "type": self.type(field["type"], space)}
        if isinstance(field.get("doc"), str):
            made["doc"] = field["doc"]
        if "default" in field:
            made["default"] = field["default"]
        order = order_word(text_of(field.get("order", "ascending")))
        if order != "ascending":
            made["order"] = order
        if field.get("aliases"):
            made["aliases"] = [*dict.fromkeys(texts_of(field["aliases"]))]
        return made | {name: one for name, one in field.items() if name not in _FIELD_KEYS}


def _full_name(value: JsonObject, space: str | None) -> str:
    return qualified(text_of(value["name"]), text_of(value.get("namespace", space or "")))


def _others(value: JsonObject, known: set[str] = set()) -> JsonObject:  # noqa: B006 - it is only read
    """Custom attributes, and those of logical types, in their order."""
    return {name: one for name, one in value.items() if name not in _TYPE_KEYS | known}


def _dumped(value: Json) -> str:
    """Compact JSON with numbers in Java's format."""
    pieces: list[str] = []
    _dump(value, pieces.append)
    return "".join(pieces)


def _dump(value: Json, write: Callable[[str], None]) -> None:
    """Write a JSON value; recursive with one call per level, to save stack."""
    if isinstance(value, dict):
        for index, (key, one) in enumerate(value.items()):
            write(f'{"," if index else "{"}"{key.translate(_ESCAPES)}":')
            _dump(one, write)
        write("}" if value else "{}")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            write("," if index else "[")
            _dump(one, write)
        write("]" if value else "[]")
    elif isinstance(value, float):
        write(java_double(value))
    else:
        write(f'"{value.translate(_ESCAPES)}"' if isinstance(value, str) else json.dumps(value))


def java_double(value: float) -> str:
    """A finite floating-point number in the format of `Double.toString` of Java 19 and later.

    The shortest digits that round-trip; if two digits suffice, the two that are nearest.
    """
    if value == 0:
        return repr(value)
    two = f"{value:.1e}"
    exact = Decimal(two if float(two) == value else repr(value)).normalize()
    sign, digits, exponent = exact.as_tuple()
    power = len(digits) + int(exponent) - 1
    if _PLAIN_FROM <= power < _PLAIN_BELOW:
        plain = f"{exact:f}"
        return plain if "." in plain else f"{plain}.0"
    first, *rest = map(str, digits)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{power}"


# --- the normalised form --------------------------------------------------------------------------


def _normal(value: Json, space: str | None) -> Json:
    if isinstance(value, list):
        return [_normal(branch, space) for branch in value]
    if isinstance(value, str):
        return value if value in PRIMITIVES else qualified(value, space)
    value = object_of(value)
    word = text_of(value["type"])
    if word in NAMED:
        return _normal_named(word, value, space)
    made: JsonObject = {"type": word}
    if word == "array":
        made["items"] = _normal(value["items"], space)
    elif word == "map":
        made["values"] = _normal(value["values"], space)
    elif word not in PRIMITIVES:
        return qualified(word, space)
    return made | _sorted_others(_others(value))


def _normal_named(word: str, value: JsonObject, space: str | None) -> JsonObject:
    full = _full_name(value, space)
    own = full.rpartition(".")[0]
    made: JsonObject = {"type": word, "name": full, "namespace": own}
    if value.get("doc"):
        made["doc"] = value["doc"]
    for key in ("symbols", "size", "default"):
        if key in value and (key != "default" or word == "enum"):
            made[key] = value[key]
    if "fields" in value:
        made["fields"] = [
            _normal_field(object_of(one), own or None) for one in list_of(value["fields"])
        ]
    if value.get("aliases"):
        made["aliases"] = [
            *sorted({qualified(one, own or None) for one in texts_of(value["aliases"])})
        ]
    return made | _sorted_others(_others(value, {"default"} if word == "enum" else set()))


def _normal_field(field: JsonObject, space: str | None) -> JsonObject:
    made = {key: one for key, one in field.items() if key in _FIELD_KEYS}
    made["type"] = _normal(field["type"], space)
    if field.get("aliases"):
        made["aliases"] = [*sorted(set(texts_of(field["aliases"])))]
    others = {key: one for key, one in field.items() if key not in _FIELD_KEYS}
    return made | _sorted_others(others)


def _sorted_others(others: JsonObject) -> JsonObject:
    """Custom attributes, sorted; the logical type and its parameters first."""
    kept = dict(others)
    first: JsonObject = {}
    if isinstance(kept.get("logicalType"), str):
        first["logicalType"] = kept.pop("logicalType")
        if first["logicalType"] == "decimal" and "precision" in kept:
            first["precision"] = kept.pop("precision")
            scale = kept.pop("scale", 0)
            if scale:
                first["scale"] = scale
    return first | {key: _sorted_keys(kept[key]) for key in sorted(kept)}


def _sorted_keys(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sorted_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted_keys(one) for one in value]
    return value
