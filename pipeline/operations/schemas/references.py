"""Schema references: types that a schema uses from versions of other subjects."""

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
        name: of the type; "": the version's own type.
        subject: the subject that defines it; without a context, in that of the schema.
        version: the version of the subject.
    """

    name: str
    subject: str
    version: Version


@dataclass(frozen=True, slots=True)
class ReadSchema:
    """A parsed schema with its references.

    Args:
        text: the original text.
        references: the references.
        resolved: the schema with all references replaced by their types.
    """

    text: str
    references: tuple[Reference, ...]
    resolved: AvroSchema


def read_schema(
    text: str, types: tuple[TypeReference, ...], file: str, registry: RegistryClient, subject: str
) -> ReadSchema:
    """Parse a schema and resolve its references.

    Args:
        text: the schema.
        types: the types that it uses of other subjects.
        file: the name of the schema in errors.
        registry: contains the versions.
        subject: that of the schema; "": none yet.

    Raises:
        SchemaError: it is no schema, the registry does not have a version, or that does not define
            the type.
        UsageError: two references have the same type.
    """
    references = tuple(_reference(registry.admin, subject, one) for one in types)
    _require_each_once(references)
    schema = registry.read(subject, text, references, file)
    return ReadSchema(text, references, written_out(schema, file))


def _reference(admin: Administration, subject: str, one: TypeReference) -> Reference:
    version = fetch(admin, admin.relative_name(subject, one.subject), one.version)
    name = _type_name(one.name, version.schema(), str(version))
    return Reference(name, one.subject, version.version)


def _type_name(name: str, schema: AvroSchema, place: str) -> str:
    """Full name of a type that a schema defines; `name` "": the schema itself."""
    full_name = name or schema.full_name
    if full_name in schema.names:
        return full_name
    names = ", ".join(schema.names)
    raise SchemaError(
        f"it does not define {name}" if name else f"it is no type with a name ({full_name})",
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
