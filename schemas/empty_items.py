"""Limit on array items that are encoded in no bytes, such as nulls. Pure.

Every other value of a body takes at least one byte, so the length of the body bounds it. A few
bytes can declare any number of these, and the driver would build a list of them.
"""

from functools import lru_cache
from typing import Final

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema
from schemas.types import (
    ArrayType,
    AvroType,
    FixedType,
    Kind,
    MapType,
    Primitive,
    RecordType,
    Reference,
    UnionType,
)

ITEMS_MAX: Final = 4_194_304
"""Items of one collection that are read."""
_MORE: Final = 0x80
"""Bit of a byte of a number that more bytes follow."""
_LONG_BITS: Final = 64
_FIXED_BYTES: Final = {Kind.BOOLEAN: 1, Kind.FLOAT: 4, Kind.DOUBLE: 8}


def check_empty_items(schema: AvroSchema, body: bytes) -> None:
    """Reject a body that declares more than `ITEMS_MAX` array items without bytes.

    A body that is broken before such an array is rejected, too: a decoder that is less strict, as
    about numbers of more than 64 bits, would read on.

    Raises:
        SchemaError: it declares too many, or is broken.
    """
    if not _may_have_empty_items(schema):
        return
    walk = _Walk(schema, body)
    try:
        walk.value(schema.root)
    except (IndexError, RecursionError) as error:
        raise SchemaError(
            f"the bytes are no {schema.full_name}: a value is cut off, out of range, or nested too "
            "deeply"
        ) from error


class _Walk:
    """Position in a body, and the number of empty items before it."""

    def __init__(self, schema: AvroSchema, body: bytes) -> None:
        self._schema = schema
        self._body = body
        self._position = 0
        self._empty_items = 0

    def value(self, avro_type: AvroType) -> None:
        """Pass over one value; an IndexError where the body is broken."""
        if _is_empty(self._schema, avro_type):
            return
        match avro_type:
            case Reference(name):
                self.value(self._schema.names[name])
            case RecordType(fields=fields):
                for field in fields:
                    self.value(field.type)
            case UnionType(branches):
                self.value(branches[self._index(len(branches))])
            case ArrayType(items):
                self._array(items)
            case MapType(values):
                self._map(values)
            case FixedType(size=size):
                self._skip(size)
            case Primitive(kind):
                self._primitive(kind)
            case _:
                self._long()  # the index of a symbol

    def _primitive(self, kind: Kind) -> None:
        if kind in _FIXED_BYTES:
            self._skip(_FIXED_BYTES[kind])
        elif kind in {Kind.BYTES, Kind.STRING}:
            self._skip(self._long())
        else:
            self._long()

    def _array(self, items: AvroType) -> None:
        empty = _is_empty(self._schema, items)
        while count := self._block():
            if empty:
                self._count(count)
            else:
                for _ in range(count):
                    self.value(items)

    def _map(self, values: AvroType) -> None:
        while count := self._block():
            for _ in range(count):
                self._skip(self._long())
                self.value(values)

    def _block(self) -> int:
        """The number of items of the next block; a negative one precedes a size in bytes."""
        count = self._long()
        if count < 0:
            self._long()
        return abs(count)

    def _count(self, items: int) -> None:
        self._empty_items += items
        if self._empty_items > ITEMS_MAX:
            raise SchemaError(
                f"the bytes are no {self._schema.full_name}: an array declares more than "
                f"{ITEMS_MAX} items without bytes"
            )

    def _index(self, branches: int) -> int:
        index = self._long()
        if not 0 <= index < branches:
            raise IndexError
        return index

    def _skip(self, size: int) -> None:
        if not 0 <= size <= len(self._body) - self._position:
            raise IndexError
        self._position += size

    def _long(self) -> int:
        """A zigzag number of variable length; an IndexError if it has more than 64 bits."""
        number = 0
        for shift in range(0, _LONG_BITS, 7):
            byte = self._body[self._position]
            self._position += 1
            number |= (byte & 0x7F) << shift
            if byte < _MORE and number < 1 << _LONG_BITS:
                return (number >> 1) ^ -(number & 1)
        raise IndexError


@lru_cache(maxsize=1024)
def _may_have_empty_items(schema: AvroSchema) -> bool:
    types: list[AvroType] = [schema.root, *schema.names.values()]
    while types:
        match types.pop():
            case ArrayType(items):
                if _is_empty(schema, items):
                    return True
                types.append(items)
            case MapType(values):
                types.append(values)
            case UnionType(branches):
                types.extend(branches)
            case RecordType(fields=fields):
                types.extend(field.type for field in fields)
            case _:
                pass
    return False


def _is_empty(schema: AvroSchema, avro_type: AvroType) -> bool:
    """Whether values of a type are encoded in no bytes."""
    return _is_empty_given(_empty_names(schema), avro_type)


def _is_empty_given(names: frozenset[str], avro_type: AvroType) -> bool:
    match avro_type:
        case Primitive(kind):
            return kind is Kind.NULL
        case Reference(name) | RecordType(name) | FixedType(name):
            return name in names
        case _:
            return False


@lru_cache(maxsize=1024)
def _empty_names(schema: AvroSchema) -> frozenset[str]:
    """The named types whose values are encoded in no bytes."""
    found: frozenset[str] = frozenset()
    while True:
        more = {
            name
            for name, named in schema.names.items()
            if (isinstance(named, FixedType) and named.size == 0)
            or (
                isinstance(named, RecordType)
                and all(_is_empty_given(found, field.type) for field in named.fields)
            )
        }
        if more == found:
            return found
        found = frozenset(more)
