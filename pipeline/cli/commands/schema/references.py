"""The option `--reference`: types of other subjects that the schema in a file uses."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pipeline.cli.commands.schema.names import as_version, name_of_subject
from pipeline.operations.schemas.references import TypeReference
from schemas.registry.content import Reference

F = TypeVar("F", bound=Callable[..., Any])


def reference_option(function: F) -> F:
    """Add `--reference`; the command gets `type_references`."""
    return click.option(
        "--reference",
        "type_references",
        multiple=True,
        metavar="[NAME=]SUBJECT:VERSION",
        callback=_type_references,
        help="A version of another subject whose type FILE uses; VERSION may be latest. NAME is "
        "the full name of the type; default: the type that the version is. May be repeated.",
    )(function)


def parse_reference(word: str) -> TypeReference | None:
    """Reference of `[NAME=]SUBJECT:VERSION`; None if malformed. Subjects may contain colons."""
    *before, rest = word.split("=", 1)
    subject, _, number = rest.rpartition(":")
    version = as_version(number)
    if not subject or version is None or before == [""]:
        return None
    return TypeReference("".join(before), subject, version)


def _type_references(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> tuple[TypeReference, ...]:
    return tuple(_type_reference(name_of_subject(value)) for value in values)


def _type_reference(value: str) -> TypeReference:
    found = parse_reference(value)
    if found is None:
        raise click.BadParameter(
            f"{value!r} is not [NAME=]SUBJECT:VERSION with a number from 1 or latest as VERSION"
        )
    return found


def reference_lines(references: tuple[Reference, ...]) -> str:
    """Lines with the references of a schema, appended to a message about it."""
    return "".join(
        f"\n  {one.name} is that of {one.subject} version {one.version}" for one in references
    )
