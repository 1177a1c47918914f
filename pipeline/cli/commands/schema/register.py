"""`medusa schema register`: adds a schema to a subject."""

import click

from pipeline.cli.commands.schema.files import read_schema
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from schemas.records import IncompatibleSchemaError


@click.command("register")
@click.argument("subject")
@click.argument("file")
@click.option("--dry-run", is_flag=True, help="Only check whether it would be accepted.")
@with_session
def command(session: Session, subject: str, file: str, *, dry_run: bool) -> None:
    """Register the schema in FILE (- for stdin) under SUBJECT, such as car-sightings-value.

    A schema that is registered already keeps its id and version. One that does not fit is refused,
    with the path of every difference and both types.

    \b
    Examples:
      medusa schema register car-sightings-value schemas/sighting.avsc
      medusa schema register car-sightings-value - < sighting.avsc
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    text = read_schema(file)
    with session.connect() as connections:
        registry = connections.registry
        if dry_run:
            reasons = registry.check(subject, text)
            require_fit(subject, reasons)
            session.printer.show({"subject": subject, "fits": True}, f"{subject}: it fits")
            return
        before = registry.lookup(subject, text)
        schema_id = registry.register(subject, text)
    words = "was registered already" if before is not None else "registered"
    session.printer.show(
        {"subject": subject, "id": schema_id, "changed": before is None},
        f"{subject}: {words} with id {schema_id}",
    )


def require_fit(subject: str, reasons: tuple[str, ...]) -> None:
    """Raise if there are reasons against a schema.

    Raises:
        IncompatibleSchemaError: with all of them.
    """
    if reasons:
        raise IncompatibleSchemaError(subject, reasons)
