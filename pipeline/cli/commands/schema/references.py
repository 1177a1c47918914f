"""`--reference`: the types of other subjects that the schema in a file uses."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pipeline.cli.commands.schema.names import as_version, name_of_subject
from pipeline.operations.schemas.references import TypeReference
from schemas.registry.content import Reference

F = TypeVar("F", bound=Callable[..., Any])


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


def wanted_by(word: str) -> TypeReference | None:
    """What `[NAME=]SUBJECT:VERSION` means; None: nothing. Subjects may have colons in them."""
    *before, rest = word.split("=", 1)
    subject, _, number = rest.rpartition(":")
    version = as_version(number)
    if not subject or version is None or before == [""]:
        return None
    return TypeReference("".join(before), subject, version)


def _all_wanted(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> tuple[TypeReference, ...]:
    return tuple(_wanted(name_of_subject(value)) for value in values)


def _wanted(value: str) -> TypeReference:
    found = wanted_by(value)
    if found is None:
        raise click.BadParameter(
            f"{value!r} is not [NAME=]SUBJECT:VERSION with a number from 1 or latest as VERSION"
        )
    return found


def told(references: tuple[Reference, ...]) -> str:
    """Lines that say what a schema refers to, behind what else is said of it."""
    return "".join(
        f"\n  {one.name} is that of {one.subject} version {one.version}" for one in references
    )
