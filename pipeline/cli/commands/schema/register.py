"""`medusa schema register`: adds a schema to a subject."""

from typing import Any

import click

from pipeline.cli.commands.schema.boxes import require_readers
from pipeline.cli.commands.schema.files import read_schema
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from schemas.records import IncompatibleSchemaError


@click.command("register")
@click.argument("subject")
@click.argument("file")
@click.option("--yes", is_flag=True, help="Do not ask, and register it whatever it breaks.")
@click.option("--dry-run", is_flag=True, help="Only check whether it would be accepted.")
@with_registry
def command(session: Session, subject: str, file: str, *, yes: bool, dry_run: bool) -> None:
    """Register the schema in FILE (- for stdin) under SUBJECT, such as car-sightings-value.

    A schema that is registered already keeps its id and version. One that does not fit is refused,
    with the path of every difference and both types. So is one with which deployed boxes could not
    read what producers would write, with those boxes, unless you say --yes; with --registry nobody
    looks for boxes.

    \b
    Examples:
      medusa schema register car-sightings-value schemas/sighting.avsc
      medusa schema register car-sightings-value - < sighting.avsc
      medusa schema register orders-value order.avsc --registry http://registry:8081
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    text = read_schema(file)
    with session.connect() as connections:
        registry = connections.registry
        known = registry.lookup(subject, text)
        found: dict[str, Any] = {}
        if known is None:
            require_fit(subject, registry.check(subject, text))
            found = require_readers(subject, text, session, connections, ask=not dry_run, yes=yes)
        if dry_run:
            session.printer.show({"subject": subject, "fits": True, **found}, f"{subject}: it fits")
            return
        schema_id = registry.register(subject, text)
    words = "was registered already" if known is not None else "registered"
    session.printer.show(
        {"subject": subject, "id": schema_id, "changed": known is None, **found},
        f"{subject}: {words} with id {schema_id}",
    )


def require_fit(subject: str, reasons: tuple[str, ...]) -> None:
    """Raise if there are reasons against a schema.

    Raises:
        IncompatibleSchemaError: with all of them.
    """
    if reasons:
        raise IncompatibleSchemaError(subject, reasons)
