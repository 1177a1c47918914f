"""Candidate changes of a schema: every usual single change, as a new schema. Pure.

`schemas.evolution` checks which of them the compatibility rules allow.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema, parse
from schemas.canonical import content
from schemas.changes import in_words, kind_of
from schemas.json_value import Json, JsonObject, list_of, number_of, object_of, text_of, texts_of
from schemas.types import PRIMITIVES, shown

_WIDER = {"int": ("long", "float", "double"), "long": ("float", "double"), "float": ("double",)}
_NARROWER = {"long": "int", "float": "long", "double": "float"}
_OTHER_UNIT = {
    "timestamp-millis": "timestamp-micros",
    "timestamp-micros": "timestamp-millis",
    "local-timestamp-millis": "local-timestamp-micros",
    "local-timestamp-micros": "local-timestamp-millis",
}
_ZEROS: JsonObject = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": "",
    "string": "",
    "array": [],
    "map": {},
}
_RECORDS = {"record", "error"}
_NAMED = {*_RECORDS, "enum", "fixed"}

_Keys = tuple[str | int, ...]
"""A path in a JSON value: keys and indexes."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One change of a schema, with the resulting schema.

    Args:
        action: the sort of change, independent of its path: `remove a field`.
        path: the changed part: `/fields/count`.
        words: the change at this path: `remove count`.
        schema: the whole schema after the change.
    """

    action: str
    path: str
    words: str
    schema: AvroSchema


def candidates(schema: AvroSchema) -> tuple[Candidate, ...]:
    """The usual single changes that result in a valid schema, in document order."""
    return tuple(_Walk(content(schema.value)).types((), "", ""))


class _Walk:
    """Traversal of the content form of a schema; visits every definition once."""

    def __init__(self, root: Json) -> None:
        self._root = root

    def types(self, keys: _Keys, path: str, name: str) -> Iterator[Candidate]:
        """The changes of the type at a path, which messages call `name`."""
        value = _at(self._root, keys)
        called = name or _called(value)
        if isinstance(value, list):
            yield from self._union(value, keys, path, called)
            return
        if keys and not isinstance(keys[-1], int):
            yield from self._optional(value, keys, path, called)
        kind = kind_of(value)
        if kind in PRIMITIVES:
            yield from self._primitive(value, keys, path, called)
        elif kind in _RECORDS:
            yield from self._record(object_of(value), keys, path)
        elif kind == "enum":
            yield from self._enum(object_of(value), keys, path, called)
        elif kind == "fixed":
            words = f"make {called} one byte longer"
            fixed = object_of(value)
            larger = {**fixed, "size": number_of(fixed["size"]) + 1}
            yield from self._try("change the size of a fixed", path, words, (keys, larger))
        elif kind in {"array", "map"}:
            part = "items" if kind == "array" else "values"
            yield from self.types((*keys, part), f"{path}/{part}", f"the {part} of {called}")
        if kind in _NAMED:
            yield from self._renamed_types(object_of(value), path)

    def _primitive(self, value: Json, keys: _Keys, path: str, name: str) -> Iterator[Candidate]:
        kind = kind_of(value)
        for wider in _WIDER.get(kind, ()):
            words = f"widen {name} from {kind} to {wider}"
            yield from self._try("widen a number", path, words, (keys, wider))
        if kind in _NARROWER:
            words = f"narrow {name} from {kind} to {_NARROWER[kind]}"
            yield from self._try("narrow a number", path, words, (keys, _NARROWER[kind]))
        if kind in {"string", "bytes"}:
            swapped = "bytes" if kind == "string" else "string"
            words = f"make {name} {swapped} instead of {kind}"
            yield from self._try("swap string and bytes", path, words, (keys, swapped))
        other = "int" if kind in {"string", "bytes"} else "string"
        words = f"make {name} {other} instead of {kind}"
        yield from self._try("change to another type", path, words, (keys, other))
        logical = value.get("logicalType") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(logical, str):
            return
        words = f"take {logical} from {name}"
        yield from self._try("take a logical type away", path, words, (keys, kind))
        if logical in _OTHER_UNIT:
            changed = {**value, "logicalType": _OTHER_UNIT[logical]}
            words = f"make {name} {_OTHER_UNIT[logical]} instead of {logical}"
            yield from self._try("change the unit of a time", path, words, (keys, changed))

    def _optional(self, value: Json, keys: _Keys, path: str, name: str) -> Iterator[Candidate]:
        if kind_of(value) != "null":
            words = f"allow null for {name}"
            yield from self._try("allow null", path, words, (keys, ["null", value]))

    def _union(self, value: list[Json], keys: _Keys, path: str, name: str) -> Iterator[Candidate]:
        kinds = {kind_of(branch) for branch in value}
        more = next(
            one for one in ("null", "string", "long", "boolean", "bytes") if one not in kinds
        )
        action = "allow null" if more == "null" else "add a branch to a union"
        words = f"allow {more} for {name}"
        yield from self._try(action, path, words, (keys, [*value, more]))
        for index, branch in enumerate(value):
            if len(value) > 1:
                rest = value[:index] + value[index + 1 :]
                is_null = branch == "null"
                action = "allow null no more" if is_null else "remove a branch of a union"
                words = f"allow {in_words(branch)} for {name} no more"
                yield from self._try(action, path, words, (keys, rest))
            if branch != "null":
                inner = f"{in_words(branch)} of {name}" if len(value) > 2 else name  # noqa: PLR2004
                yield from self.types((*keys, index), f"{path}/{index}", inner)

    def _enum(self, value: JsonObject, keys: _Keys, path: str, name: str) -> Iterator[Candidate]:
        symbols = texts_of(value["symbols"])
        new = _free("NEW_SYMBOL", symbols)
        larger: JsonObject = {**value, "symbols": [*symbols, new]}
        yield from self._try(
            "add a symbol to an enum", path, f"add a symbol to {name}", (keys, larger)
        )
        for symbol in symbols:
            left: JsonObject = {**value, "symbols": [one for one in symbols if one != symbol]}
            words = f"remove {symbol} from {name}"
            yield from self._try("remove a symbol of an enum", path, words, (keys, left))
        if "default" not in value and symbols:
            with_default = {**value, "default": symbols[0]}
            words = f"read unknown symbols of {name} as {symbols[0]}"
            yield from self._try("give an enum a default", path, words, (keys, with_default))
        elif "default" in value:
            without = {key: part for key, part in value.items() if key != "default"}
            words = f"take the default {value['default']} from {name}"
            yield from self._try("take the default of an enum away", path, words, (keys, without))

    def _record(self, value: JsonObject, keys: _Keys, path: str) -> Iterator[Candidate]:
        fields, name = list(map(object_of, list_of(value["fields"]))), _called(value)
        where, at = (*keys, "fields"), f"{path}/fields"
        new: JsonObject = {"name": _free("new_field", [*map(_name, fields)]), "type": "string"}
        with_default: list[Json] = [*fields, {**new, "default": ""}]
        words = f"add to {name} a field with a default: {shown({**new, 'default': ''})}"
        yield from self._try("add a field with a default", at, words, (where, with_default))
        words = f"add to {name} a field without a default: {json.dumps(new)}"
        yield from self._try("add a field without a default", at, words, (where, [*fields, new]))
        if len(fields) > 1:
            words = f"put the fields of {name} in another order"
            yield from self._try(
                "change the order of fields", at, words, (where, [*reversed(fields)])
            )
        changed = {**value, "doc": f"{value.get('doc', '')} More words.".strip()}
        words = f"change the documentation of {name}"
        yield from self._try("change the documentation", path, words, (keys, changed))
        for index, field in enumerate(fields):
            here = (*where, index)
            yield from self._field(fields, index, where, f"{at}/{_name(field)}")
            yield from self.types((*here, "type"), f"{at}/{_name(field)}/type", _name(field))

    def _field(
        self, fields: list[JsonObject], index: int, keys: _Keys, path: str
    ) -> Iterator[Candidate]:
        field, here = fields[index], (*keys, index)
        name = _name(field)
        rest: list[Json] = [*fields[:index], *fields[index + 1 :]]
        yield from self._try("remove a field", path, f"remove {name}", (keys, rest))
        new: JsonObject = {**field, "name": _free(f"{name}_new", [*map(_name, fields)])}
        aliased: JsonObject = {**new, "aliases": [*texts_of(field.get("aliases", [])), name]}
        words = f"rename {name} and keep the name as an alias"
        yield from self._try("rename a field, with an alias", path, words, (here, aliased))
        words = f"rename {name} without an alias"
        yield from self._try("rename a field, without an alias", path, words, (here, new))
        if "default" in field:
            without = {key: part for key, part in field.items() if key != "default"}
            words = f"take the default {shown(field['default'])} from {name}"
            yield from self._try("take a default away", path, words, (here, without))
        else:
            branch = field["type"][0] if isinstance(field["type"], list) else field["type"]
            zero = self._zero(branch)
            words = f"give {name} the default {shown(zero)}"
            given = {**field, "default": zero}
            yield from self._try("give a field a default", path, words, (here, given))

    def _renamed_types(self, value: JsonObject, path: str) -> Iterator[Candidate]:
        name = _name(value)
        new = f"{name}New"
        aliases: JsonObject = {"aliases": [*texts_of(value.get("aliases", [])), name]}
        for more, how in ((aliases, "with an alias"), ({}, "without an alias")):
            changed = _renamed(self._root, name, new, more)
            words = f"rename {value['type']} {name.rpartition('.')[2]} {how}"
            yield from _made(f"rename a type, {how}", path, words, changed)

    def _try(
        self, action: str, path: str, words: str, edit: tuple[_Keys, Json]
    ) -> Iterator[Candidate]:
        """The schema with another value at one path, if it is valid.

        A default that does not fit a field's new type is removed, too.
        """
        changed = _with(self._root, *edit)
        found = tuple(_made(action, path, words, changed))
        keys = edit[0]
        if not found and keys and keys[-1] == "type":
            field, before = (object_of(_at(one, keys[:-1])) for one in (changed, self._root))
            if field.pop("default", None) is not None or "default" in before:
                found = tuple(_made(action, path, f"{words}, and take its default away", changed))
        yield from found

    def _zero(self, value: Json) -> Json:
        """A simple value of a type; for a record without its required fields."""
        if isinstance(value, dict) and value["type"] == "enum":
            return next(iter(list_of(value["symbols"])), None)
        if isinstance(value, dict) and value["type"] == "fixed":
            return "\0" * number_of(value["size"])
        return copy.copy(_ZEROS.get(kind_of(value), {}))


def _made(action: str, path: str, words: str, value: Json) -> Iterator[Candidate]:
    try:
        schema = parse(json.dumps(value))
    except SchemaError:
        return  # an invalid schema is not a candidate
    yield Candidate(action, path or "/", words, schema)


def _called(value: Json) -> str:
    if isinstance(value, dict) and "name" in value:
        return str(value["name"]).rpartition(".")[2]
    return "the value"


def _name(value: JsonObject) -> str:
    return text_of(value["name"])


def _free(name: str, taken: list[str]) -> str:
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _at(value: Json, keys: _Keys) -> Json:
    for key in keys:
        value = list_of(value)[key] if isinstance(key, int) else object_of(value)[key]
    return value


def _with(value: Json, keys: _Keys, part: Json) -> Json:
    """A copy of a JSON value with another part at a path."""
    if not keys:
        return copy.deepcopy(part)
    made = copy.deepcopy(value)
    inside, last = _at(made, keys[:-1]), keys[-1]
    if isinstance(last, int):
        list_of(inside)[last] = copy.deepcopy(part)
    else:
        object_of(inside)[last] = copy.deepcopy(part)
    return made


def _renamed(value: Json, old: str, new: str, more: JsonObject) -> Json:
    """A type in which a named type, and every reference to it, has another name."""
    if isinstance(value, list):
        return [_renamed(branch, old, new, more) for branch in value]
    if isinstance(value, str):
        return new if value == old else value
    made = dict(object_of(value))
    if made.get("name") == old:
        made |= {"name": new, **more}
    match made["type"]:
        case "record" | "error":
            made["fields"] = [
                {**field, "type": _renamed(field["type"], old, new, more)}
                for field in map(object_of, list_of(made["fields"]))
            ]
        case "array":
            made["items"] = _renamed(made["items"], old, new, more)
        case "map":
            made["values"] = _renamed(made["values"], old, new, more)
    return made
