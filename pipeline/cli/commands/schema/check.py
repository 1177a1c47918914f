"""`medusa schema check`: whether a schema would fit."""

import click

from pipeline.cli.commands.schema.files import read_schema
from pipeline.cli.commands.schema.register import require_fit
from pipeline.cli.options import with_session
from pipeline.cli.session import Session


@click.command("check")
@click.argument("file")
@click.option("--subject", help="Check also whether it could be registered under this subject.")
@with_session
def command(session: Session, file: str, subject: str | None) -> None:
    """Say whether FILE (- for stdin) is an Avro schema; with --subject, whether it would fit.

    Without --subject no server is needed. Exit code 65 if it is none or does not fit.

    \b
    Examples:
      medusa schema check schemas/sighting.avsc
      medusa schema check new.avsc --subject car-sightings-value
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    text = read_schema(file)
    if subject is not None:
        with session.connect() as connections:
            require_fit(subject, connections.registry.check(subject, text))
    what = f"fits {subject}" if subject else "is an Avro schema"
    session.printer.show({"file": file, "subject": subject, "fits": True}, f"{file} {what}")
