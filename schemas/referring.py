"""Schemas that refer to others: all of them found, and made one text that can be read alone.

Confluent's rules count: a reference gives a version of a subject a name, of one name the first
reference counts, and a schema may use whatever types its references define, and theirs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema, parse
from schemas.entries import SchemaUse, StoredVersion
from schemas.inlining import inlined
from schemas.registry.java_text import canonical_text
from schemas.registry.limits import REFERENCES_MAX

Find = Callable[[SchemaUse], StoredVersion | None]
"""A version as a registry keeps it, deleted or not; None: it has none."""


def alone(one: StoredVersion, find: Find, place: str = "") -> StoredVersion:
    """A schema with the types that it uses of others in their places; the same if it uses none.

    Args:
        one: the schema.
        find: asks the registry for what it refers to.
        place: where it was found, for errors; empty: its subject and version.

    Raises:
        SchemaError: it is not Avro, or what it refers to is not there, cannot be read, leads back
            to where it was, or is too much.
    """
    at = place or str(one)
    _require_avro(one, at)
    if not one.references:
        return one
    return replace(one, text=written_out(read(one, find, at), at).text)


def read(one: StoredVersion, find: Find, place: str = "") -> AvroSchema:
    """A schema, parsed with what it refers to; the arguments and errors are those of `alone`."""
    at = place or str(one)
    _require_avro(one, at)
    gathered = _Gathered(find, at)
    gathered.add(one, (one.use,))
    with _placed(at):
        return parse(one.text, tuple(gathered.schemas))


def written_out(schema: AvroSchema, place: str) -> AvroSchema:
    """A schema with the types that it uses of others in their places.

    Raises:
        SchemaError: Avro has no name for one of the types where it would stand.
    """
    if not schema.used:
        return schema
    with _placed(place):
        return parse(canonical_text(inlined(schema)))


@dataclass(slots=True)
class _Gathered:
    """What a schema refers to.

    Args:
        find: asks the registry.
        place: where the schema itself was found.
        schemas: those that were found, dependencies first.
        names: those of references that were followed.
    """

    find: Find
    place: str
    schemas: list[AvroSchema] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def add(self, one: StoredVersion, path: tuple[SchemaUse, ...]) -> None:
        """Follow the references of a schema, which was reached through others."""
        for name, use in self._references(one, path):
            if use in path:
                way = " -> ".join(map(str, (*path[path.index(use) :], use)))
                raise SchemaError(f"the schema refers to itself: {way}", place=self.place)
            if name in self.names:
                continue
            self.names.add(name)
            self._require_bound(use)
            other, at = self._found(use, path), f"{self.place}, through {use}"
            _require_avro(other, at)
            self.add(other, (*path, use))
            with _placed(at):
                self.schemas.append(parse(other.text, tuple(self.schemas)))

    def _references(
        self, one: StoredVersion, path: tuple[SchemaUse, ...]
    ) -> Iterator[tuple[str, SchemaUse]]:
        """The names that a schema gives to others, and the others."""
        if not all(_is_whole(reference) for reference in one.references):
            through = f", through {path[-1]}" if len(path) > 1 else ""
            raise SchemaError(
                "the schema has a reference without name, subject and version",
                place=f"{self.place}{through}",
            )
        names = (str(reference["name"]) for reference in one.references)
        yield from zip(names, one.referred, strict=True)

    def _require_bound(self, use: SchemaUse) -> None:
        if len(self.names) > REFERENCES_MAX:
            raise SchemaError(
                f"the schema refers to more than {REFERENCES_MAX} others, the last one is {use}",
                place=self.place,
                hint="put types that are used together under one subject.",
            )

    def _found(self, use: SchemaUse, path: tuple[SchemaUse, ...]) -> StoredVersion:
        found = self.find(use)
        if found is not None:
            return found
        through = f" through {path[-1]}" if len(path) > 1 else ""
        raise SchemaError(
            f"the schema refers{through} to {use}, which the registry does not have",
            place=self.place,
            hint=f"`medusa schema list {use.subject}` shows what it has.",
        )


def _is_whole(reference: object) -> bool:
    match reference:
        case {"name": str(), "subject": str(), "version": int()}:
            return True
    return False


def _require_avro(one: StoredVersion, place: str) -> None:
    if one.kind != "AVRO":
        raise SchemaError(f"the schema is {one.kind}, only Avro can be read", place=place)


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Add to an error where the schema was found."""
    try:
        yield
    except SchemaError as error:
        raise SchemaError(
            error.message, place=f"{place}, {error.place}", hint=error.hint
        ) from error
