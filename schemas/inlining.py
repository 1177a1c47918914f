"""A schema with the types of the schemas that it uses in their places, to be read alone. Pure.

Every named type is written out where it first stands, under its full name, and named after that.
Which type a name means is taken from the parsed schema: in another place it could mean another.
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
    """A schema's JSON value that names no type which it does not define itself.

    Raises:
        SchemaError: Avro has no name for a type where it would stand.
    """
    defined: dict[str, Definition] = {}
    for one in (*schema.used, schema):
        for part, named in definitions(one.value, one.root):
            defined.setdefault(named.name, (part, named))
    return _Inliner(defined).walk(schema.value, schema.root, None)


class _Inliner:
    """Writes out one schema.

    Args:
        defined: all named types.
    """

    def __init__(self, defined: dict[str, Definition]) -> None:
        self._defined = defined
        self._finished: set[str] = set()
        self._names = Names(self._finished)

    def walk(self, part: Json, avro_type: AvroType, space: str | None) -> Json:
        """A type inside a namespace."""
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
