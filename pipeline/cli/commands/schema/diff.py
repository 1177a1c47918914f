"""`medusa schema diff`: changes between two versions of a schema."""

import click

from pipeline.cli.commands.schema.files import SchemaFile, open_schema
from pipeline.cli.commands.schema.names import as_version, name_of_subject
from pipeline.cli.commands.schema.references import reference_option
from pipeline.cli.completing import schema_versions, subjects
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.errors import UsageError
from pipeline.operations.schemas.references import TypeReference
from pipeline.operations.schemas.versions import before, fetch
from schemas.administration import Version
from schemas.avro import AvroSchema
from schemas.changes import Change, changes
from schemas.client import RegistryClient
from schemas.compatibility import Level
from schemas.evolution import kept
from schemas.meaning import other_meanings


def _version(_ctx: click.Context, _of: click.Parameter, value: str | None) -> Version | None:
    """Version of an option: a number from 1, or `latest`."""
    if value is None:
        return None
    version = as_version(value)
    if version is None:
        raise click.BadParameter(f"{value!r} is neither a number from 1 nor latest")
    return version


@click.command("diff")
@click.argument("subject", type=name_of_subject, shell_complete=subjects)
@click.argument("file", required=False, type=click.Path())
@click.option(
    "--from",
    "old",
    type=click.IntRange(1),
    shell_complete=schema_versions,
    help="Which version is the old one.",
)
@click.option(
    "--to",
    "new",
    callback=_version,
    shell_complete=schema_versions,
    metavar="N|latest",
    help="Which is the new one.",
)
@reference_option
@with_registry
def command(
    session: Session,
    subject: str,
    file: str | None,
    old: int | None,
    new: Version | None,
    type_references: tuple[TypeReference, ...],
) -> None:
    """Describe the changes between two versions of SUBJECT, and the levels that they keep.

    By default the newest version is compared with the one before it; with FILE (- for stdin)
    the newest version, or the one that --from names, with the schema in FILE. Each change has its
    path: a field added or removed, a type widened, a default changed, and so on.

    \b
    Examples:
      medusa schema diff car-sightings-value
      medusa schema diff car-sightings-value --from 1 --to latest
      medusa schema diff car-sightings-value schemas/sighting.avsc
      medusa schema diff carts-value cart.avsc --reference wheels:latest
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if file is not None and new is not None:
        raise UsageError("FILE is the new schema already: leave --to out")
    if file is None and type_references:
        raise UsageError("--reference is about the schema in FILE: name FILE too")
    given = None if file is None else open_schema(file, type_references)
    with session.connect() as connections:
        first, second, names = _pair(connections.registry, subject, old, new, given)
    found = changes(first, second)
    reasons = kept(first, second)
    meanings = other_meanings(second, first)
    there = f"version {names[1]}" if file is None else file
    head = f"{subject}: from version {names[0]} to {there}"
    session.printer.show(
        {
            "subject": subject,
            "from": names[0],
            "to": names[1],
            "file": file,
            "changes": [
                {"kind": one.kind.value, "path": one.path, "message": one.message} for one in found
            ],
            "levels": {
                level.value: {"kept": not why, "reasons": list(why)}
                for level, why in reasons.items()
            },
            "other_meanings": list(meanings),
        },
        _summary(head, found, reasons, meanings),
    )


def _pair(
    registry: RegistryClient,
    subject: str,
    old: int | None,
    new: Version | None,
    given: SchemaFile | None,
) -> tuple[AvroSchema, AvroSchema, tuple[int, int | None]]:
    """The two schemas with their version numbers; the number is None for FILE."""
    admin = registry.admin
    if given is not None:
        first = fetch(admin, subject, old or "latest")
        return first.schema(), given.read(registry, subject).resolved, (first.version, None)
    second = fetch(admin, subject, new or "latest")
    number = old if old is not None else before(admin, subject, second.version)
    first = fetch(admin, subject, number)
    return first.schema(), second.schema(), (first.version, second.version)


def _summary(
    head: str,
    found: tuple[Change, ...],
    reasons: dict[Level, tuple[str, ...]],
    meanings: tuple[str, ...],
) -> str:
    lines = [head, *(f"  {change}" for change in found)]
    if not found:
        lines.append("  nothing changed")
    for level, why in reasons.items():
        lines.append(f"{level.value}: {'broken' if why else 'kept'}")
        # The reasons against FULL are those against BACKWARD and FORWARD.
        lines += [f"  - {reason}" for reason in why if level is not Level.FULL]
    if meanings:
        lines.append("taken by a registry, and yet values mean something else:")
        lines += [f"  - {meaning}" for meaning in meanings]
    return "\n".join(lines)
