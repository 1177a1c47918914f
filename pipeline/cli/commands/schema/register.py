"""`medusa schema register`: registration of a schema under a subject."""

from dataclasses import asdict

import click

from pipeline.cli.commands.schema.boxes import check_deployed_boxes
from pipeline.cli.commands.schema.files import open_schema
from pipeline.cli.commands.schema.names import name_of_subject
from pipeline.cli.commands.schema.references import reference_lines, reference_option
from pipeline.cli.completing import subjects
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.event_log.event import EventKind
from pipeline.operations.schemas.references import TypeReference
from schemas.json_value import JsonObject
from schemas.records import IncompatibleSchemaError


@click.command("register")
@click.argument("subject", type=name_of_subject, shell_complete=subjects)
@click.argument("file", type=click.Path())
@click.option("--yes", is_flag=True, help="Do not ask, and register it even if it breaks boxes.")
@click.option("--dry-run", is_flag=True, help="Only check whether it would be accepted.")
@reference_option
@with_registry
def command(
    session: Session,
    subject: str,
    file: str,
    *,
    type_references: tuple[TypeReference, ...],
    yes: bool,
    dry_run: bool,
) -> None:
    """Register the schema in FILE (- for stdin) under SUBJECT, such as car-sightings-value.

    A schema that is registered already keeps its id and version. One that does not fit is refused,
    with the path of every difference and both types. So is one whose records deployed boxes
    could not read, with the names of these boxes, unless --yes is given; with --registry, boxes are
    not checked. Types of other subjects that the schema uses are named with --reference.

    \b
    Examples:
      medusa schema register car-sightings-value schemas/sighting.avsc
      medusa schema register car-sightings-value - < sighting.avsc
      medusa schema register carts-value cart.avsc --reference parts.Wheel=wheels:1
      medusa schema register orders-value order.avsc --registry http://registry:8081
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    given = open_schema(file, type_references)
    with session.connect() as connections:
        registry = connections.registry
        new = given.read(registry, subject)
        registered = registry.lookup(subject, new.text, new.references)
        data: JsonObject = {
            "subject": subject,
            "references": [asdict(one) for one in new.references],
        }
        if registered is None:
            require_compatible(subject, registry.check(subject, new.text, new.references))
            data |= check_deployed_boxes(
                subject, new.resolved.text, session, connections, ask=not dry_run, yes=yes
            )
        if dry_run:
            words = f"{subject}: it fits{reference_lines(new.references)}"
            session.printer.show({**data, "fits": True}, words)
            return
        schema_id = registry.register(subject, new.text, new.references)
        if registered is None:
            session.log_event(
                connections, EventKind.SCHEMA_REGISTERED, subject=subject, id=str(schema_id)
            )
    done = "was registered already" if registered is not None else "registered"
    session.printer.show(
        {**data, "id": schema_id, "changed": registered is None},
        f"{subject}: {done} with id {schema_id}{reference_lines(new.references)}",
    )


def require_compatible(subject: str, reasons: tuple[str, ...]) -> None:
    """Reject an incompatible schema.

    Raises:
        IncompatibleSchemaError: `reasons` is not empty; the error contains all of them.
    """
    if reasons:
        raise IncompatibleSchemaError(subject, reasons)
