"""`--reference`: the types of other subjects that the schema in a file uses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from pipeline.cli.commands.schema.names import name_of_subject
from pipeline.cli.commands.schema.versions import as_version, fetch
from pipeline.errors import SchemaError, UsageError
from schemas.administration import Administration, Version
from schemas.avro import AvroSchema
from schemas.client import RegistryClient
from schemas.registry.content import Reference

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Wanted:
    """One `--reference` as it was typed.

    Args:
        name: of the type; empty: the one that the version itself is.
        subject: where the type is defined; without a context it lies in that of the schema.
        version: which version of the subject.
    """

    name: str
    subject: str
    version: Version


def reference_option(function: F) -> F:
    """Add `--reference`, which gives what is `wanted`."""
    return click.option(
        "--reference",
        "wanted",
        multiple=True,
        metavar="[NAME=]SUBJECT:VERSION",
        callback=_all_wanted,
        help="A version of another subject whose type FILE uses; VERSION may be latest. NAME is "
        "the full name of the type; default: the type that the version is. May be repeated.",
    )(function)


def wanted_by(word: str) -> Wanted | None:
    """What `[NAME=]SUBJECT:VERSION` means; None: nothing. Subjects may have colons in them."""
    *before, rest = word.split("=", 1)
    subject, _, number = rest.rpartition(":")
    version = as_version(number)
    if not subject or version is None or before == [""]:
        return None
    return Wanted("".join(before), subject, version)


def _all_wanted(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> tuple[Wanted, ...]:
    return tuple(_wanted(name_of_subject(value)) for value in values)


def _wanted(value: str) -> Wanted:
    found = wanted_by(value)
    if found is None:
        raise click.BadParameter(
            f"{value!r} is not [NAME=]SUBJECT:VERSION with a number from 1 or latest as VERSION"
        )
    return found


def references_of(
    registry: RegistryClient, subject: str, wanted: tuple[Wanted, ...]
) -> tuple[Reference, ...]:
    """What is wanted as a registry takes it: with the names of types and the numbers of versions.

    Args:
        registry: has it.
        subject: what the schema is for; empty: nothing as yet.
        wanted: what was typed.

    Raises:
        SchemaError: the registry does not have it, or it does not define what it is wanted for.
        UsageError: a type is wanted from two places.
    """
    found = tuple(_reference(registry.admin, subject, one) for one in wanted)
    _require_each_once(found)
    return found


def _reference(admin: Administration, subject: str, one: Wanted) -> Reference:
    version = fetch(admin, admin.beside(subject, one.subject), one.version)
    name = type_name(one.name, version.schema(), str(version))
    return Reference(name, one.subject, version.version)


def type_name(name: str, schema: AvroSchema, place: str) -> str:
    """The name of the type that is used of a schema.

    Args:
        name: the one that was typed; empty: none.
        schema: what it refers to.
        place: the schema's, for errors.

    Raises:
        SchemaError: the schema does not define it, or has no name itself.
    """
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
        places = " and ".join(_version(one) for one in references if one.name == twice[0])
        raise UsageError(
            f"--reference: {twice[0]} is wanted from {places}",
            hint="leave all but one of them out.",
        )


def told(references: tuple[Reference, ...]) -> str:
    """Lines that say what a schema refers to, behind what else is said of it."""
    return "".join(f"\n  {one.name} is that of {_version(one)}" for one in references)


def _version(one: Reference) -> str:
    return f"{one.subject} version {one.version}"
