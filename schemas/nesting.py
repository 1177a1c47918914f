"""Limits of nesting depth, checked before any recursion. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from schemas.json_value import Json, parts_of
from schemas.types import ArrayType, AvroType, MapType, NamedType, RecordType, Reference, UnionType

MAX_DEPTH: Final = 64
"""Limit of nested types, including those of used schemas, and of values in an attribute or default:
deeper texts are attacks or mistakes, and would exhaust the stack."""
MAX_JSON_DEPTH: Final = 4 * MAX_DEPTH + 4
"""Limit of the JSON text: each nested record adds three levels; attributes add their own."""


def nested_deeper(value: Json, bound: int) -> bool:
    """Whether lists and objects of a JSON value are nested deeper than a bound."""
    level: list[Json] = [value] if isinstance(value, dict | list) else []
    for _ in range(bound + 1):
        if not level:
            return False
        level = [part for one in level for part in parts_of(one) if isinstance(part, dict | list)]
    return True


def types_deeper(root: AvroType, names: Mapping[str, NamedType], bound: int) -> bool:
    """Whether the types of an inlined schema are nested deeper than a bound.

    In it every named type is defined at its first occurrence.
    """
    written: set[str] = set()

    def deeper(avro_type: AvroType, depth: int) -> bool:
        if depth > bound:
            return True
        resolved = avro_type
        if isinstance(avro_type, Reference | RecordType):
            if avro_type.name in written:
                return False
            written.add(avro_type.name)
            resolved = names[avro_type.name]
        return any(deeper(inner, depth + 1) for inner in _inside(resolved))

    return deeper(root, 0)


def _inside(avro_type: AvroType) -> Iterator[AvroType]:
    """The types directly inside a type."""
    match avro_type:
        case UnionType(branches):
            yield from branches
        case ArrayType(inner) | MapType(inner):
            yield inner
        case RecordType(fields=fields):
            yield from (field.type for field in fields)
