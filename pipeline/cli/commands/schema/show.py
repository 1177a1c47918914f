"""`medusa schema show`: text of a schema version."""

import json

import click

from pipeline.cli.commands.schema.names import as_id, name_of_subject
from pipeline.cli.completing import schema_versions, subjects
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.errors import SchemaError
from schemas.entries import StoredVersion
from schemas.json_value import Json
from schemas.nesting import MAX_JSON_DEPTH
from schemas.outside import read_json


@click.command("show")
@click.argument("subject", type=name_of_subject, shell_complete=subjects)
@click.option(
    "--version",
    "number",
    type=click.IntRange(1),
    shell_complete=schema_versions,
    help="Which version; default: newest.",
)
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
        schema_id = as_id(subject) if number is None else None
        if schema_id is not None:
            found = admin.by_id(schema_id)
        else:
            found = admin.version(subject, number or "latest")
    if found is None:
        missing = f"version {number} of {subject}" if number else subject
        raise SchemaError(
            f"the registry does not have {missing}", hint="`medusa schema list` shows what it has."
        )
    value = _value(found)
    words = found.text if value is found.text else json.dumps(value, indent=2)
    session.printer.show(
        {
            "subject": subject,
            "id": found.id,
            **({} if schema_id is not None else {"version": found.version}),
            "guid": found.guid or None,
            "type": found.kind,
            "references": [dict(one) for one in found.references],
            "metadata": found.metadata,
            "rule_set": found.rule_set,
            "schema": value,
        },
        words,
    )


def _value(found: StoredVersion) -> Json:
    """Schema as JSON; as text if it is Protobuf, malformed, or nested too deeply."""
    if found.kind == "PROTOBUF":
        return found.text
    try:
        return read_json(found.text, MAX_JSON_DEPTH)
    except ValueError:
        return found.text
