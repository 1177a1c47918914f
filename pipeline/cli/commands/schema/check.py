"""`medusa schema check`: whether a schema would fit."""

from dataclasses import asdict

import click

from pipeline.cli.commands.schema.boxes import require_readers
from pipeline.cli.commands.schema.files import open_schema
from pipeline.cli.commands.schema.names import name_of_subject
from pipeline.cli.commands.schema.references import reference_option, told
from pipeline.cli.commands.schema.register import require_fit
from pipeline.cli.completing import subjects
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.operations.connections import Connections
from pipeline.operations.schemas.references import ReadSchema, TypeReference
from schemas.json_value import JsonObject
from schemas.registry.content import Reference


@click.command("check")
@click.argument("file", type=click.Path())
@click.option(
    "--subject",
    type=name_of_subject,
    shell_complete=subjects,
    metavar="TEXT",
    help="Check also whether it could be registered under this subject.",
)
@reference_option
@with_registry
def command(
    session: Session, file: str, subject: str | None, wanted: tuple[TypeReference, ...]
) -> None:
    """Say whether FILE (- for stdin) is an Avro schema; with --subject, whether it would fit.

    Without --subject and --reference no server is needed; what --reference names is read from the
    registry. With --subject, deployed boxes are named that could not read what is written with it.
    Exit code 65 if it is none, does not fit, or breaks a box. With --registry nobody looks for
    boxes.

    \b
    Examples:
      medusa schema check schemas/sighting.avsc
      medusa schema check new.avsc --subject car-sightings-value
      medusa schema check cart.avsc --reference wheels:latest
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    given = open_schema(file, wanted)
    references: tuple[Reference, ...] = ()
    found: JsonObject = {}
    if subject is not None or wanted:
        with session.connect() as connections:
            new = given.read(connections.registry, subject or "")
            references = new.references
            if subject is not None:
                found = _require_place(subject, new, session, connections)
    what = f"fits {subject}" if subject else "is an Avro schema"
    data = {
        "file": file,
        "subject": subject,
        "references": [asdict(one) for one in references],
        "fits": True,
        **found,
    }
    session.printer.show(data, f"{file} {what}{told(references)}")


def _require_place(
    subject: str, new: ReadSchema, session: Session, connections: Connections
) -> JsonObject:
    """Raise if a schema could not be registered; what was found of boxes, as data."""
    registry = connections.registry
    if registry.lookup(subject, new.text, new.references) is not None:
        return {}
    require_fit(subject, registry.check(subject, new.text, new.references))
    return require_readers(subject, new.resolved.text, session, connections, ask=False, yes=False)
