"""`medusa schema show`: one schema."""

import json

import click

from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.errors import SchemaError


@click.command("show")
@click.argument("subject")
@click.option("--version", "number", type=click.IntRange(1), help="Which version; default: newest.")
@with_registry
def command(session: Session, subject: str, number: int | None) -> None:
    """Print the schema of SUBJECT, or the one with an id, if SUBJECT is a number.

    \b
    Examples:
      medusa schema show car-sightings-value
      medusa schema show car-sightings-value --version 1 > sighting.avsc
      medusa schema show 3
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        admin = connections.registry.admin
        by_id = subject.isdecimal() and number is None
        found = admin.by_id(int(subject)) if by_id else admin.version(subject, number or "latest")
    if found is None:
        what = f"version {number} of {subject}" if number else subject
        raise SchemaError(
            f"the registry does not have {what}", hint="`medusa schema list` shows what it has."
        )
    is_json = found.kind != "PROTOBUF"
    value = json.loads(found.text) if is_json else found.text
    data = {
        "subject": subject,
        "id": found.id,
        **({} if by_id else {"version": found.version}),
        "guid": found.guid or None,
        "type": found.kind,
        "references": [dict(one) for one in found.references],
        "metadata": found.metadata,
        "rule_set": found.rule_set,
        "schema": value,
    }
    session.printer.show(data, json.dumps(value, indent=2) if is_json else found.text)
