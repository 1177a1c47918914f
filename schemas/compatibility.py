"""Schema compatibility: whether a reader's schema can read a writer's data, with all differences.

The rules are those of Java Avro's `SchemaCompatibility`, so that our registry and others agree;
`tests/data/avro_compat_vectors.json` has over a thousand pairs with the results of Java Avro.

A recursive pair of types is assumed to be compatible (the greatest fixed point), which is right
unless the pair proves incompatible. Then the comparison starts again (`_Comparison.refuted`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema
from schemas.types import (
    MISSING,
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    Kind,
    MapType,
    RecordType,
    ResolvedType,
    UnionType,
    describe,
)


class Reason(Enum):
    """Why a reader cannot read a writer's data, by Java Avro's names."""

    TYPE_MISMATCH = "TYPE_MISMATCH"
    NAME_MISMATCH = "NAME_MISMATCH"
    FIXED_SIZE_MISMATCH = "FIXED_SIZE_MISMATCH"
    MISSING_ENUM_SYMBOLS = "MISSING_ENUM_SYMBOLS"
    MISSING_UNION_BRANCH = "MISSING_UNION_BRANCH"
    READER_FIELD_MISSING_DEFAULT_VALUE = "READER_FIELD_MISSING_DEFAULT_VALUE"


@dataclass(frozen=True, slots=True)
class Difference:
    """One incompatibility of two schemas.

    Args:
        location: in Java Avro's form: `/fields/0/type`, fields counted from 0.
        path: the same with the names of fields: `/fields/speed/type`.
        message: contains both types.
        detail: Java Avro's message.
    """

    reason: Reason
    location: str
    path: str
    message: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message} ({self.reason.value})"


class Level(Enum):
    """Compatibility level: the requirement on a new version of a schema."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    """It reads data of the latest version."""
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    """The latest version reads its data."""
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


@dataclass(frozen=True, slots=True)
class _Rule:
    reads_old: bool
    read_by_old: bool
    all_versions: bool


_RULES: Mapping[Level, _Rule] = {
    Level.NONE: _Rule(reads_old=False, read_by_old=False, all_versions=False),
    Level.BACKWARD: _Rule(reads_old=True, read_by_old=False, all_versions=False),
    Level.BACKWARD_TRANSITIVE: _Rule(reads_old=True, read_by_old=False, all_versions=True),
    Level.FORWARD: _Rule(reads_old=False, read_by_old=True, all_versions=False),
    Level.FORWARD_TRANSITIVE: _Rule(reads_old=False, read_by_old=True, all_versions=True),
    Level.FULL: _Rule(reads_old=True, read_by_old=True, all_versions=False),
    Level.FULL_TRANSITIVE: _Rule(reads_old=True, read_by_old=True, all_versions=True),
}


def directions(level: Level) -> tuple[bool, bool]:
    """Whether a new schema has to read data of older ones, and whether older ones read its data."""
    return _RULES[level].reads_old, _RULES[level].read_by_old


def is_transitive(level: Level) -> bool:
    """Whether a level applies to all versions, not only the latest."""
    return _RULES[level].all_versions


def check(level: Level, new: AvroSchema, previous: Sequence[AvroSchema]) -> tuple[str, ...]:
    """The violations of a level by a new schema; empty if it is compatible.

    Args:
        level: the required level.
        new: the schema to be added.
        previous: the existing versions, oldest first.
    """
    rule = _RULES[level]
    first = 1 if rule.all_versions else max(1, len(previous))
    messages: list[str] = []
    for number in range(len(previous), first - 1, -1):
        old = previous[number - 1]
        behind = len(previous) - number
        which = f"{behind} before the latest" if behind else "latest"
        if rule.reads_old:
            messages += [
                f"the new schema cannot read data of the old one ({which}): {difference}"
                for difference in differences(new, old)
            ]
        if rule.read_by_old:
            messages += [
                f"the old schema ({which}) cannot read data of the new one: {difference}"
                for difference in differences(old, new)
            ]
    return tuple(messages)


@lru_cache(maxsize=256)
def differences(reader: AvroSchema, writer: AvroSchema) -> tuple[Difference, ...]:
    """Every reason why `reader` cannot read data of `writer`, in document order.

    At most a hundred per type: types that are used repeatedly would have an unbounded number.

    Raises:
        SchemaError: the schemas are too large, or refer to each other too deeply, to be compared.
    """
    refuted: frozenset[_Pair] = frozenset()
    while True:
        comparison = _Comparison(reader, writer, refuted)
        try:
            found = comparison.compare(reader.root, writer.root)
        except RecursionError as error:
            raise SchemaError("types refer to each other too deeply to be compared") from error
        if not comparison.newly_refuted:
            return tuple(item.placed() for item in found if item.reason is not None)
        refuted |= comparison.newly_refuted


PAIRS_MAX: Final = 100_000
"""Limit of compared pairs of types; more come from mistakes or attacks, such as huge unions."""
DIFFERENCES_MAX: Final = 100
_BRANCHES_SHOWN: Final = 10
_Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Found:
    """A reason with paths relative to the compared pair.

    `reason` is None for a recursive pair that is incompatible: it is reported at its first
    occurrence.
    """

    reason: Reason | None
    location: tuple[str, ...]
    path: tuple[str, ...]
    message: str
    detail: str

    def under(self, location: tuple[str, ...], path: tuple[str, ...]) -> "_Found":
        return replace(self, location=location + self.location, path=path + self.path)

    def placed(self) -> Difference:
        assert self.reason is not None  # noqa: S101 - the caller has filtered
        where, path = "/".join(self.location), "/".join(self.path)
        return Difference(self.reason, f"/{where}", f"/{path}", self.message, self.detail)


_Result = tuple[_Found, ...]
_PROMOTIONS: Mapping[Kind, frozenset[Kind]] = {
    Kind.LONG: frozenset({Kind.INT}),
    Kind.FLOAT: frozenset({Kind.INT, Kind.LONG}),
    Kind.DOUBLE: frozenset({Kind.INT, Kind.LONG, Kind.FLOAT}),
    Kind.BYTES: frozenset({Kind.STRING}),
    Kind.STRING: frozenset({Kind.BYTES}),
}


def _one(reason: Reason, message: str, detail: str, *where: str) -> _Result:
    return (_Found(reason, where, where, message, detail),)


def _under(found: _Result, *where: str) -> _Result:
    return tuple(item.under(where, where) for item in found)


class _Comparison:
    """Comparison of two schemas; pairs of types are identified by object identity."""

    def __init__(self, reader: AvroSchema, writer: AvroSchema, refuted: frozenset[_Pair]) -> None:
        self._reader = reader
        self._writer = writer
        self._refuted = refuted
        self._open: set[_Pair] = set()
        self._assumed: set[_Pair] = set()
        self._known: dict[_Pair, _Result] = {}
        self._left = PAIRS_MAX
        self.newly_refuted: set[_Pair] = set()

    def compare(self, reader_type: AvroType, writer_type: AvroType) -> _Result:
        """The reasons why the reader's type cannot read the writer's."""
        reader = self._reader.resolve(reader_type)
        writer = self._writer.resolve(writer_type)
        pair = (id(reader), id(writer))
        if pair in self._open:
            if pair in self._refuted:
                return (_Found(None, (), (), "", ""),)
            self._assumed.add(pair)
            return ()
        if pair not in self._known:
            self._left -= 1
            if self._left < 0:
                raise SchemaError(f"more than {PAIRS_MAX} pairs of types to be compared")
            self._open.add(pair)
            self._known[pair] = self._compare_resolved(reader, writer)[:DIFFERENCES_MAX]
            self._open.discard(pair)
            if self._known[pair] and pair in self._assumed:
                self.newly_refuted.add(pair)
        return self._known[pair]

    def _compare_resolved(  # noqa: PLR0911 - one return for each pair of kinds
        self, reader: ResolvedType, writer: ResolvedType
    ) -> _Result:
        if isinstance(writer, UnionType):
            return self._writer_union(reader, writer)
        if isinstance(reader, UnionType):
            if any(not self.compare(branch, writer) for branch in reader.branches):
                return ()
            return self._no_branch(reader, writer)
        match reader, writer:
            case ArrayType(mine), ArrayType(theirs):
                return _under(self.compare(mine, theirs), "items")
            case MapType(mine), MapType(theirs):
                return _under(self.compare(mine, theirs), "values")
            case FixedType(), FixedType():
                return _names(reader, writer) + _sizes(reader, writer)
            case EnumType(), EnumType():
                return _names(reader, writer) + _symbols(reader, writer)
            case RecordType(), RecordType():
                return _names(reader, writer) + self._fields(reader, writer)
        if reader.kind is writer.kind or writer.kind in _PROMOTIONS.get(reader.kind, ()):
            return ()
        return _mismatch(reader, writer)

    def _no_branch(self, reader: UnionType, writer: ResolvedType) -> _Result:
        message = f"no branch of the reader's {_few(reader)} reads the writer's "
        message += describe(writer)
        for branch in map(self._reader.resolve, reader.branches[:_BRANCHES_SHOWN]):
            nearest = next((f for f in self.compare(branch, writer) if f.reason), None)
            if branch.kind is writer.kind and nearest is not None:
                message += f" (/{'/'.join(nearest.path)}: {nearest.message})"
        detail = f"reader union lacking writer type: {_java_kind(writer)}"
        return _one(Reason.MISSING_UNION_BRANCH, message, detail)

    def _writer_union(self, reader: ResolvedType, writer: UnionType) -> _Result:
        found: list[_Found] = []
        for index, branch in enumerate(writer.branches):
            found += _under(self.compare(reader, branch), str(index))
        return tuple(found)

    def _fields(self, reader: RecordType, writer: RecordType) -> _Result:
        theirs = {field.name: field for field in writer.fields}
        found: list[_Found] = []
        for index, mine in enumerate(reader.fields):
            location, path = ("fields", str(index)), ("fields", mine.name)
            match = next((theirs[n] for n in (mine.name, *mine.aliases) if n in theirs), None)
            if match is not None:
                inner = self.compare(mine.type, match.type)
                found += [item.under((*location, "type"), (*path, "type")) for item in inner]
            elif mine.default is MISSING:
                found += [item.under(location, path) for item in self._absent(mine, writer)]
        return tuple(found)

    def _absent(self, field: Field, writer: RecordType) -> _Result:
        """The reason for a field that the writer lacks and that has no default.

        Java Avro reports an enum with a default of its own, which is not used for a missing field,
        as a type mismatch; location and reason are the same here, the message is more precise.
        """
        mine = self._reader.resolve(field.type)
        message = (
            f"the reader's field {field.name} of type {describe(mine)} is not in the writer's "
            f"{describe(writer)} and has no default"
        )
        if isinstance(mine, EnumType) and mine.default is not None:
            own = f"{message} (the default of {mine.name} is for unknown symbols)"
            return _one(Reason.TYPE_MISMATCH, own, field.name, "type")
        return _one(Reason.READER_FIELD_MISSING_DEFAULT_VALUE, message, field.name)


def _few(union: UnionType) -> str:
    """A union in words, truncated after ten branches."""
    if len(union.branches) <= _BRANCHES_SHOWN:
        return describe(union)
    shown = describe(UnionType(union.branches[:_BRANCHES_SHOWN]))
    return f"{shown} and {len(union.branches) - _BRANCHES_SHOWN} more"


def _java_kind(one: ResolvedType) -> str:
    return one.kind.value.upper()


def _mismatch(reader: ResolvedType, writer: ResolvedType) -> _Result:
    message = f"the reader's {describe(reader)} cannot read the writer's {describe(writer)}"
    detail = f"reader type: {_java_kind(reader)} not compatible with writer type: "
    return _one(Reason.TYPE_MISMATCH, message, detail + _java_kind(writer))


def _names(
    reader: RecordType | EnumType | FixedType, writer: RecordType | EnumType | FixedType
) -> _Result:
    """Compare names: they match without their namespaces, or by an alias of the reader."""
    same = reader.name.rpartition(".")[2] == writer.name.rpartition(".")[2]
    if same or writer.name in reader.aliases:
        return ()
    message = f"the reader's {describe(reader)} has another name than the writer's "
    return _one(
        Reason.NAME_MISMATCH, message + describe(writer), f"expected: {writer.name}", "name"
    )


def _sizes(reader: FixedType, writer: FixedType) -> _Result:
    if reader.size == writer.size:
        return ()
    message = f"the reader's {describe(reader)} cannot read the writer's {describe(writer)}"
    detail = f"expected: {writer.size}, found: {reader.size}"
    return _one(Reason.FIXED_SIZE_MISMATCH, message, detail, "size")


def _symbols(reader: EnumType, writer: EnumType) -> _Result:
    known = set(reader.symbols)
    unknown = [symbol for symbol in writer.symbols if symbol not in known]
    if not unknown or reader.default is not None:
        return ()
    message = (
        f"the reader's {describe(reader)} lacks symbols of the writer's {describe(writer)}: "
        f"{', '.join(unknown)}"
    )
    return _one(Reason.MISSING_ENUM_SYMBOLS, message, f"[{', '.join(unknown)}]", "symbols")
