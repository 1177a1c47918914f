"""Inlining of references: a schema with the definitions of all types that it uses. Pure.

Every named type is defined at its first occurrence, under its full name, and referred to by name
after that. Names are resolved by the parsed schema: elsewhere they could mean another type.
"""

from schemas.avro import AvroSchema
from schemas.json_value import Json, JsonObject, list_of, object_of
from schemas.naming import Names, space_of
from schemas.redefining import Definition, definitions
from schemas.types import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    Reference,
    UnionType,
)


def inlined(schema: AvroSchema) -> Json:
    """The JSON value of a schema, with definitions of all types that it refers to.

    Raises:
        SchemaError: a type cannot be named where it would be defined or used.
    """
    defined: dict[str, Definition] = {}
    for one in (*schema.used, schema):
        for part, named in definitions(one.value, one.root):
            defined.setdefault(named.name, (part, named))
    return _Inliner(defined).walk(schema.value, schema.root, None)


class _Inliner:
    """Inlines one schema.

    Args:
        defined: all named types.
    """

    def __init__(self, defined: dict[str, Definition]) -> None:
        self._defined = defined
        self._finished: set[str] = set()
        self._names = Names(self._finished)

    def walk(self, part: Json, avro_type: AvroType, space: str | None) -> Json:
        """Inline a type inside a namespace."""
        match avro_type:
            case UnionType(branches):
                pairs = zip(list_of(part), branches, strict=True)
                return [self.walk(inner, branch, space) for inner, branch in pairs]
            case ArrayType(items):
                array = object_of(part)
                return {**array, "items": self.walk(array["items"], items, space)}
            case MapType(values):
                mapped = object_of(part)
                return {**mapped, "values": self.walk(mapped["values"], values, space)}
            case RecordType() | EnumType() | FixedType() | Reference():
                return self._named(avro_type.name, space)
        return part

    def _named(self, full: str, space: str | None) -> Json:
        if full in self._names:
            self._names.require_spelling(full, space, "")
            return full
        part, named = self._defined[full]
        self._names.begin(full, "")
        made: JsonObject = {**part, "name": full}
        made.pop("namespace", None)
        if "." not in full:
            made["namespace"] = ""
        if isinstance(named, RecordType):
            pairs = zip(map(object_of, list_of(part["fields"])), named.fields, strict=True)
            own = space_of(full)
            made["fields"] = [
                {**inner, "type": self.walk(inner["type"], field.type, own)}
                for inner, field in pairs
            ]
        self._names.end(full)
        self._finished.add(full)
        return made
