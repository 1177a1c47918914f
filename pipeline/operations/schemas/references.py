"""A schema and the versions of other subjects that it refers to."""

from dataclasses import dataclass

from pipeline.errors import SchemaError, UsageError
from pipeline.operations.schemas.versions import fetch
from schemas.administration import Administration, Version
from schemas.avro import AvroSchema
from schemas.client import RegistryClient
from schemas.referring import written_out
from schemas.registry.content import Reference


@dataclass(frozen=True, slots=True)
class TypeReference:
    """A type that a schema uses from a version of another subject.

    Args:
        name: of the type; "": the type that the version itself is.
        subject: where the type is defined; without a context, in that of the schema.
        version: which version of the subject.
    """

    name: str
    subject: str
    version: Version


@dataclass(frozen=True, slots=True)
class ReadSchema:
    """A schema that was read together with what it refers to.

    Args:
        text: as its author wrote it.
        references: what it refers to.
        alone: the schema with all of that in its place.
    """

    text: str
    references: tuple[Reference, ...]
    alone: AvroSchema


def read_schema(
    text: str, wanted: tuple[TypeReference, ...], file: str, registry: RegistryClient, subject: str
) -> ReadSchema:
    """Parse a schema with what it refers to.

    Args:
        text: the schema.
        wanted: the versions that it uses.
        file: names the schema in errors.
        registry: has them.
        subject: that of the schema; "": none yet.

    Raises:
        SchemaError: it is no schema, the registry does not have a version, or that does not define
            the type.
        UsageError: a type is wanted from two places.
    """
    references = tuple(_reference(registry.admin, subject, one) for one in wanted)
    _require_each_once(references)
    schema = registry.read(subject, text, references, file)
    return ReadSchema(text, references, written_out(schema, file))


def _reference(admin: Administration, subject: str, one: TypeReference) -> Reference:
    version = fetch(admin, admin.relative_name(subject, one.subject), one.version)
    name = _type_name(one.name, version.schema(), str(version))
    return Reference(name, one.subject, version.version)


def _type_name(name: str, schema: AvroSchema, place: str) -> str:
    """The name of the type that is used of a schema; `name` "": that of the schema itself."""
    chosen = name or schema.full_name
    if chosen in schema.names:
        return chosen
    names = ", ".join(schema.names)
    raise SchemaError(
        f"it does not define {name}" if name else f"it is no type with a name ({chosen})",
        place=place,
        hint=f"say which of its types is used, as NAME=SUBJECT:VERSION: {names}."
        if names
        else "it defines no type that could be used by its name.",
    )


def _require_each_once(references: tuple[Reference, ...]) -> None:
    names = [one.name for one in references]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        places = " and ".join(
            f"{one.subject} version {one.version}" for one in references if one.name == twice[0]
        )
        raise UsageError(
            f"--reference: {twice[0]} is wanted from {places}",
            hint="leave all but one of them out.",
        )
