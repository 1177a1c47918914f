"""`medusa config show`: effective settings with the source of each value."""

import click

from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.settings import SETTINGS


@click.command("show")
@with_session
def command(session: Session) -> None:
    """Show every setting, its value, and where the value comes from.

    \b
    Example:
      medusa config show
      medusa --help; KAFKA_BOOTSTRAP_SERVERS=broker:9092 medusa config show -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    project = session.project
    rows = [
        {
            "name": setting.name,
            "value": str(getattr(project.settings, setting.field)),
            "source": project.source(setting.name),
            "environment": setting.environment,
            "meaning": setting.meaning,
        }
        for setting in SETTINGS
    ]
    columns = ("name", "value", "source", "environment", "meaning")
    table = Table(columns, tuple(tuple(row[c] for c in columns) for row in rows))
    session.printer.show({"settings": rows}, table)
