"""`medusa schema show`: one schema."""

import json

import click

from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.errors import SchemaError
from pipeline.ids import SchemaId, SchemaVersion


@click.command("show")
@click.argument("subject")
@click.option("--version", "number", type=click.IntRange(1), help="Which version; default: newest.")
@with_session
def command(session: Session, subject: str, number: int | None) -> None:
    """Print the schema of SUBJECT, or the one with an id, if SUBJECT is a number.

    \b
    Examples:
      medusa schema show car-sightings-value
      medusa schema show car-sightings-value --version 1 > sighting.avsc
      medusa schema show 3
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        registry = connections.registry
        if subject.isdecimal() and number is None:
            by_id = registry.schema_by_id(SchemaId(int(subject)))
            data = {"id": int(subject)}
            text = by_id.text if by_id else None
        else:
            found = (
                registry.latest(subject)
                if number is None
                else registry.get(subject, SchemaVersion(number))
            )
            data = {"id": found.id, "version": found.version} if found else {}
            text = found.text if found else None
        if text is None:
            what = f"version {number} of {subject}" if number else subject
            raise SchemaError(
                f"the registry does not have {what}", hint="`medusa schema list` shows what it has."
            )
    value = json.loads(text)
    session.printer.show({"subject": subject, **data, "schema": value}, json.dumps(value, indent=2))
