"""Changes of meaning between schemas that are compatible by Avro's rules. Pure.

Avro's rules ignore logical types: milliseconds can be read where microseconds were written, and
every time is wrong by a factor of a thousand. A type without a logical type is no difference:
readers may add a meaning to plain numbers, or remove it, on purpose.
"""

from collections.abc import Iterator

from schemas.avro import AvroSchema
from schemas.types import (
    ArrayType,
    AvroType,
    FixedType,
    Logical,
    MapType,
    Primitive,
    RecordType,
    ResolvedType,
    UnionType,
    describe,
)


def other_meanings(reader: AvroSchema, writer: AvroSchema) -> tuple[str, ...]:
    """Each path at which `reader` misinterprets data of `writer`, with the reason.

    The paths are those of `schemas.compatibility`: `/fields/seen_at/type`. Incompatible types are
    ignored.
    """
    return tuple(_Walk(reader, writer).compare(reader.root, writer.root, ""))


class _Walk:
    """Comparison of two schemas; a pair of records is compared once, so that recursion ends."""

    def __init__(self, reader: AvroSchema, writer: AvroSchema) -> None:
        self._reader = reader
        self._writer = writer
        self._seen: set[tuple[str, str]] = set()

    def compare(self, reader_type: AvroType, writer_type: AvroType, path: str) -> Iterator[str]:
        """The differences between two types."""
        reader, writer = self._reader.resolve(reader_type), self._writer.resolve(writer_type)
        match reader, writer:
            case _, UnionType(branches):
                for branch in branches:
                    yield from self.compare(reader, branch, path)
            case UnionType(branches), _:
                for branch in map(self._reader.resolve, branches):
                    if branch.kind is writer.kind:
                        yield from self.compare(branch, writer, path)
            case ArrayType(mine), ArrayType(theirs):
                yield from self.compare(mine, theirs, f"{path}/items")
            case MapType(mine), MapType(theirs):
                yield from self.compare(mine, theirs, f"{path}/values")
            case RecordType(), RecordType():
                yield from self._fields(reader, writer, path)
            case _:
                yield from _values(reader, writer, path)

    def _fields(self, reader: RecordType, writer: RecordType, path: str) -> Iterator[str]:
        if (reader.name, writer.name) in self._seen:
            return
        self._seen.add((reader.name, writer.name))
        theirs = {field.name: field for field in writer.fields}
        for mine in reader.fields:
            match = next((theirs[n] for n in (mine.name, *mine.aliases) if n in theirs), None)
            if match is not None:
                yield from self.compare(mine.type, match.type, f"{path}/fields/{mine.name}/type")


def _values(reader: ResolvedType, writer: ResolvedType, path: str) -> Iterator[str]:
    mine, theirs = _meaning(reader), _meaning(writer)
    if mine is not None and theirs is not None and mine != theirs:
        words = f"the reader takes {_described(writer)} of the writer for {_described(reader)}"
        yield f"{path or '/'}: {words}"


def _meaning(of: ResolvedType) -> tuple[Logical, int] | None:
    """The interpretation of the bytes; the scale of a decimal matters, its precision does not."""
    if isinstance(of, Primitive | FixedType) and of.logical is not None:
        return of.logical, of.scale
    return None


def _described(of: ResolvedType) -> str:
    if isinstance(of, FixedType):
        return f"{describe(of)} (decimal {of.precision},{of.scale})"
    return describe(of)
