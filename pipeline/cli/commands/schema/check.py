"""`medusa schema check`: validity of a schema, and compatibility with a subject."""

from dataclasses import asdict

import click

from pipeline.cli.commands.schema.boxes import check_deployed_boxes
from pipeline.cli.commands.schema.files import open_schema
from pipeline.cli.commands.schema.names import name_of_subject
from pipeline.cli.commands.schema.references import reference_lines, reference_option
from pipeline.cli.commands.schema.register import require_compatible
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
    session: Session, file: str, subject: str | None, type_references: tuple[TypeReference, ...]
) -> None:
    """Check whether FILE (- for stdin) is an Avro schema; with --subject, whether it would fit.

    Without --subject and --reference no server is needed; what --reference names is read from the
    registry. With --subject, deployed boxes are named that could not read what is written with it.
    Exit code 65 if it is none, does not fit, or breaks a box. With --registry, boxes are not
    checked.

    \b
    Examples:
      medusa schema check schemas/sighting.avsc
      medusa schema check new.avsc --subject car-sightings-value
      medusa schema check cart.avsc --reference wheels:latest
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    given = open_schema(file, type_references)
    references: tuple[Reference, ...] = ()
    found: JsonObject = {}
    if subject is not None or type_references:
        with session.connect() as connections:
            new = given.read(connections.registry, subject or "")
            references = new.references
            if subject is not None:
                found = _check_subject(subject, new, session, connections)
    result = f"fits {subject}" if subject else "is an Avro schema"
    data = {
        "file": file,
        "subject": subject,
        "references": [asdict(one) for one in references],
        "fits": True,
        **found,
    }
    session.printer.show(data, f"{file} {result}{reference_lines(references)}")


def _check_subject(
    subject: str, new: ReadSchema, session: Session, connections: Connections
) -> JsonObject:
    """Raise if a schema could not be registered; result of the check of boxes, as data."""
    registry = connections.registry
    if registry.lookup(subject, new.text, new.references) is not None:
        return {}
    require_compatible(subject, registry.check(subject, new.text, new.references))
    return check_deployed_boxes(
        subject, new.resolved.text, session, connections, ask=False, yes=False
    )
