"""Definitions of named types in a schema, and the equivalence of two of one name. Pure.

As in Java Avro, documentation, aliases, the default of an enum, whether a record is an error and
the order of attributes are ignored; every other attribute is significant.
"""

import json
from collections.abc import Iterator
from typing import TypeAlias

from schemas.json_value import Json, JsonObject, list_of, object_of
from schemas.naming import NAMED
from schemas.types import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    NamedType,
    RecordType,
    Reference,
    UnionType,
)

_IGNORED = {"type", "name", "namespace", "doc", "aliases"}
"""Keys of a definition that are ignored, or compared separately."""


Definition: TypeAlias = tuple[JsonObject, NamedType]
"""The JSON and the parsed type of a definition."""


def definitions(part: Json, avro_type: AvroType) -> Iterator[Definition]:
    """Every named type that a type defines."""
    match avro_type:
        case UnionType(branches):
            for inner, branch in zip(list_of(part), branches, strict=True):
                yield from definitions(inner, branch)
        case ArrayType(items):
            yield from definitions(object_of(part)["items"], items)
        case MapType(values):
            yield from definitions(object_of(part)["values"], values)
        case RecordType(fields=fields) if isinstance(part, dict) and part["type"] in NAMED:
            yield part, avro_type
            for inner, field in zip(list_of(part["fields"]), fields, strict=True):
                yield from definitions(object_of(inner)["type"], field.type)
        case EnumType() | FixedType() if isinstance(part, dict) and part["type"] in NAMED:
            yield part, avro_type


def meaning_of(definition: JsonObject, named: NamedType) -> str:
    """A normal form of a definition, equal for equivalent definitions.

    Args:
        definition: its JSON.
        named: the parsed type; both definitions have its full name.
    """
    match named:
        case RecordType(fields=fields):
            pairs = zip(list_of(definition["fields"]), fields, strict=True)
            body: Json = [_field(object_of(value), field.type) for value, field in pairs]
        case EnumType(symbols=symbols):
            body = list(symbols)
        case FixedType(size=size):
            body = size
    ignored = _IGNORED | ({"default"} if isinstance(named, EnumType) else set())
    others = {key: one for key, one in definition.items() if key not in ignored | {"fields"}}
    return json.dumps([named.kind.value, body, others], sort_keys=True)


def _field(value: JsonObject, avro_type: AvroType) -> JsonObject:
    made = {key: one for key, one in value.items() if key not in {"doc", "aliases"}}
    order = str(made.pop("order", "ascending")).lower()
    return {**made, "type": _type(value["type"], avro_type), "order": order}


def _type(value: Json, avro_type: AvroType) -> Json:
    """The normal form of a type; a named one by its full name, as it is compared separately."""
    match avro_type:
        case RecordType() | EnumType() | FixedType() | Reference():
            return {"named": avro_type.name}
        case UnionType(branches):
            pairs = zip(list_of(value), branches, strict=True)
            return [_type(inner, branch) for inner, branch in pairs]
        case ArrayType(items):
            array = object_of(value)
            return {**array, "items": _type(array["items"], items)}
        case MapType(values):
            mapped = object_of(value)
            return {**mapped, "values": _type(mapped["values"], values)}
    return {"type": value} if isinstance(value, str) else value
