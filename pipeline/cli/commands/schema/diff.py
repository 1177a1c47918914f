"""`medusa schema diff`: what changed between two versions."""

import click

from pipeline.cli.commands.schema.files import read_schema
from pipeline.cli.commands.schema.versions import before, fetch
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.errors import UsageError
from schemas.administration import Administration, Version
from schemas.avro import AvroSchema, parse
from schemas.changes import Change, changes
from schemas.compatibility import Level
from schemas.evolution import kept
from schemas.meaning import other_meanings


def _as_version(_ctx: click.Context, _of: click.Parameter, value: str | None) -> Version | None:
    """A number from 1, or `latest`."""
    if value is None:
        return None
    if value == "latest":
        return "latest"
    if not value.isdecimal() or int(value) == 0:
        raise click.BadParameter(f"{value!r} is neither a number from 1 nor latest")
    return int(value)


@click.command("diff")
@click.argument("subject")
@click.argument("file", required=False)
@click.option("--from", "old", type=click.IntRange(1), help="Which version is the old one.")
@click.option("--to", "new", callback=_as_version, metavar="N|latest", help="Which is the new one.")
@with_registry
def command(
    session: Session, subject: str, file: str | None, old: int | None, new: Version | None
) -> None:
    """Say in words what changed between two versions of SUBJECT, and which levels the step keeps.

    Without more said the newest version is compared with the one before it; with FILE (- for stdin)
    the newest version, or the one that --from names, with the schema in FILE. Each change has its
    path: a field added or removed, a type widened, a default changed, and so on.

    \b
    Examples:
      medusa schema diff car-sightings-value
      medusa schema diff car-sightings-value --from 1 --to latest
      medusa schema diff car-sightings-value schemas/sighting.avsc
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if file is not None and new is not None:
        raise UsageError("FILE is the new schema already: leave --to out")
    text = None if file is None else read_schema(file)
    with session.connect() as connections:
        admin = connections.registry.admin
        first, second, names = _pair(admin, subject, old, new, text)
    found = changes(first, second)
    reasons = kept(first, second)
    meanings = other_meanings(second, first)
    data = {
        "subject": subject,
        "from": names[0],
        "to": names[1],
        "file": file,
        "changes": [
            {"kind": one.kind.value, "path": one.path, "message": one.message} for one in found
        ],
        "levels": {
            level.value: {"kept": not why, "reasons": list(why)} for level, why in reasons.items()
        },
        "other_meanings": list(meanings),
    }
    there = f"version {names[1]}" if file is None else file
    head = f"{subject}: from version {names[0]} to {there}"
    session.printer.show(data, _words(head, found, reasons, meanings))


def _pair(
    admin: Administration, subject: str, old: int | None, new: Version | None, text: str | None
) -> tuple[AvroSchema, AvroSchema, tuple[int, int | None]]:
    """The two schemas, and the numbers of their versions."""
    if text is not None:
        first = fetch(admin, subject, old or "latest")
        return first.schema(), parse(text), (first.version, None)
    second = fetch(admin, subject, new or "latest")
    number = old if old is not None else before(admin, subject, second.version)
    first = fetch(admin, subject, number)
    return first.schema(), second.schema(), (first.version, second.version)


def _words(
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
        # What breaks FULL is what breaks the two others.
        lines += [f"  - {reason}" for reason in why if level is not Level.FULL]
    if meanings:
        lines.append("taken by a registry, and yet values mean something else:")
        lines += [f"  - {meaning}" for meaning in meanings]
    return "\n".join(lines)
