"""Name resolution in expressions: the columns of one stream, or of two in a join."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.nearest import nearest_first
from pipeline.network import safe, sql_text
from pipeline.network.functions import REFUSED
from pipeline.network.model import ColumnRef
from pipeline.network.term import FaultError, Term
from pipeline.network.types import Column, Columns, MapType, StructType

SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class Source:
    """The columns of one input.

    Args:
        unreadable: fields of its schema without a column → the reason.
        hidden: columns that cannot be used here → the reason and a hint.
        optional: whether a row may lack this side of a join, so that all of its columns are null.
    """

    columns: Columns
    side: str = ""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    hidden: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The names in scope.

    `shared`: lower-case names that need no side, since they mean the same on both sides of a join
    → their meaning.
    """

    sources: tuple[Source, ...]
    shared: Mapping[str, Term] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Every valid name, in order; qualified by its side if required."""
        counted = [c.name.lower() for source in self.sources for c in source.columns]
        found: list[str] = []
        for source in self.sources:
            for column in source.columns:
                lower = column.name.lower()
                alone = counted.count(lower) == 1 or lower in self.shared
                name = column.name if alone else f"{source.side}.{column.name}"
                if name not in found:
                    found.append(name)
        return tuple(found)

    def resolve(self, parts: Sequence[str]) -> Term:
        """The column, or the field of a record column, that a dotted name refers to.

        Raises:
            FaultError: there is none, or more than one; lists what exists.
        """
        sides = [s for s in self.sources if s.side and s.side == parts[0].lower()]
        if sides and len(parts) > 1:
            return _fields(self._column(sides, parts[1], parts), parts[2:])
        if not sides and len(parts) > 1 and parts[0].lower() in SIDES and not self._has(parts[0]):
            raise FaultError(f"{'.'.join(parts)}: only a join has a {parts[0].lower()} side")
        return _fields(self._column(self.sources, parts[0], parts), parts[1:])

    def _has(self, name: str) -> bool:
        return any(c.name.lower() == name.lower() for s in self.sources for c in s.columns)

    def _column(self, sources: Sequence[Source], name: str, parts: Sequence[str]) -> Term:
        lower = name.lower()
        found = [(s, c) for s in sources for c in s.columns if c.name.lower() == lower]
        if len(found) > 1:
            if lower in self.shared:
                return self.shared[lower]
            raise FaultError(
                f"{name} is on both sides of the join",
                choices=tuple(f"{source.side}.{column.name}" for source, column in found),
            )
        if found:
            source, column = found[0]
            return _term(source, column)
        raise self._missing(sources, name, parts)

    def _missing(self, sources: Sequence[Source], name: str, parts: Sequence[str]) -> FaultError:
        lower = name.lower()
        for source in sources:
            for known, reason in source.hidden.items():
                if known.lower() == lower:
                    return FaultError(f"column {name} cannot be used here: {reason}")
            for known, reason in source.unreadable.items():
                if known.lower() == lower:
                    return FaultError(f"column {name} cannot be used: it holds {reason}")
        if len(parts) == 1 and lower in REFUSED:
            reason, instead = REFUSED[lower]
            return FaultError(f"{name} is refused: it {reason}", hint=instead)
        names = self.names() if len(sources) == len(self.sources) else _names(sources)
        return FaultError(f"there is no column {name}", choices=nearest_first(name, names))


def _names(sources: Sequence[Source]) -> tuple[str, ...]:
    return tuple(column.name for source in sources for column in source.columns)


def _term(source: Source, column: Column) -> Term:
    ref = ColumnRef(column.name, source.side)
    return Term(
        sql=sql_text.column(ref),
        type=column.type,
        nullable=column.nullable or source.optional,
        columns=frozenset((ref,)),
        plain=ref,
        millis=column.millis,
        form=column.form,
    )


def _fields(term: Term, names: Sequence[str]) -> Term:
    for name in names:
        term = struct_field(term, name)
    return term


def struct_field(term: Term, name: str) -> Term:
    """The field of a record; null if the record is.

    Raises:
        FaultError: it is no record, or has no such field.
    """
    if not isinstance(term.type, StructType):
        of_map = isinstance(term.type, MapType)
        hint = f"a map is asked by {_written(term)}['{name}']" if of_map else ""
        raise FaultError(f"{name} is asked of a value that is no record but {term.type}", hint=hint)
    for column in term.type.fields:
        if column.name.lower() == name.lower():
            made = safe.strict(
                f"{term.sql}.{sql_text.quoted(column.name)}",
                column.type,
                [term],
                nullable=term.nullable or column.nullable,
            )
            return Term(
                made.sql,
                made.type,
                made.nullable,
                made.failed,
                made.columns,
                millis=column.millis,
            )
    names = tuple(column.name for column in term.type.fields)
    raise FaultError(f"the record has no field {name}", choices=nearest_first(name, names))


def _written(term: Term) -> str:
    """A column as written, or a word for anything else."""
    if term.plain is None:
        return "map"
    return f"{term.plain.side}.{term.plain.name}" if term.plain.side else term.plain.name
