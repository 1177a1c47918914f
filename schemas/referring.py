"""Resolution of schema references: fetches referenced schemas and inlines them into one text.

The rules are Confluent's: a reference gives a name to a version of a subject; of several references
with one name the first is used; a schema may use all types that its references define, directly or
through others.
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
"""Looks up a version in a registry, deleted or not; None: it does not exist."""


def alone(one: StoredVersion, find: Find, place: str = "") -> StoredVersion:
    """A schema with its references inlined; unchanged if it has none.

    Args:
        one: the schema.
        find: looks up a referenced version in the registry.
        place: its origin, for errors; empty: its subject and version.

    Raises:
        SchemaError: it is not Avro, or its references do not exist, cannot be read, have a cycle,
            or are too many.
    """
    at = place or str(one)
    _require_avro(one, at)
    if not one.references:
        return one
    return replace(one, text=written_out(read(one, find, at), at).text)


def read(one: StoredVersion, find: Find, place: str = "") -> AvroSchema:
    """Parse a schema with its references; the arguments and errors are those of `alone`."""
    at = place or str(one)
    _require_avro(one, at)
    gathered = _Gathered(find, at)
    gathered.add(one, (one.use,))
    with _placed(at):
        return parse(one.text, tuple(gathered.schemas))


def written_out(schema: AvroSchema, place: str) -> AvroSchema:
    """A parsed schema with its references inlined.

    Raises:
        SchemaError: one of the types cannot be named at its place in the inlined schema.
    """
    if not schema.used:
        return schema
    with _placed(place):
        return parse(canonical_text(inlined(schema)))


@dataclass(slots=True)
class _Gathered:
    """The referenced schemas of a schema.

    Args:
        find: looks up a version in the registry.
        place: the origin of the schema itself.
        schemas: the referenced schemas, dependencies first.
        names: the names of references that were followed.
    """

    find: Find
    place: str
    schemas: list[AvroSchema] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def add(self, one: StoredVersion, path: tuple[SchemaUse, ...]) -> None:
        """Follow the references of a schema; `path` leads to it from the first schema."""
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
        """Names and versions of the references of a schema."""
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
    """Add the origin of the schema to an error."""
    try:
        yield
    except SchemaError as error:
        raise SchemaError(
            error.message, place=f"{place}, {error.place}", hint=error.hint
        ) from error
