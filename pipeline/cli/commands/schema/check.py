"""`medusa schema check`: whether a schema would fit."""

from typing import Any

import click

from pipeline.cli.commands.schema.boxes import require_readers
from pipeline.cli.commands.schema.files import read_schema
from pipeline.cli.commands.schema.register import require_fit
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session


@click.command("check")
@click.argument("file")
@click.option("--subject", help="Check also whether it could be registered under this subject.")
@with_registry
def command(session: Session, file: str, subject: str | None) -> None:
    """Say whether FILE (- for stdin) is an Avro schema; with --subject, whether it would fit.

    Without --subject no server is needed. With it, deployed boxes are named that could not read
    what is written with it. Exit code 65 if it is none, does not fit, or breaks a box.
    With --registry nobody looks for boxes.

    \b
    Examples:
      medusa schema check schemas/sighting.avsc
      medusa schema check new.avsc --subject car-sightings-value
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    text = read_schema(file)
    found: dict[str, Any] = {}
    if subject is not None:
        with session.connect() as connections:
            registry = connections.registry
            if registry.lookup(subject, text) is None:
                require_fit(subject, registry.check(subject, text))
                found = require_readers(subject, text, session, connections, ask=False, yes=False)
    what = f"fits {subject}" if subject else "is an Avro schema"
    data = {"file": file, "subject": subject, "fits": True, **found}
    session.printer.show(data, f"{file} {what}")
