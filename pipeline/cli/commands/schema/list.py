"""`medusa schema list`: list of the subjects of the registry."""

import click

from pipeline.cli.commands.schema.names import prefix_of_subjects
from pipeline.cli.completing import subjects
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from schemas.json_value import JsonObject


@click.command("list")
@click.argument("prefix", type=prefix_of_subjects, shell_complete=subjects, default="")
@with_registry
def command(session: Session, prefix: str) -> None:
    """List the subjects that begin with PREFIX, or all, with newest version and id.

    \b
    Examples:
      medusa schema list
      medusa schema list car- -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        admin = connections.registry.admin
        found = (admin.version(subject, "latest") for subject in admin.subjects(prefix))
        latest = [one for one in found if one is not None]
    rows: list[JsonObject] = [
        {"subject": s.subject, "version": s.version, "id": s.id, "type": s.kind} for s in latest
    ]
    table = Table(
        ("subject", "version", "id", "type"),
        tuple((s.subject, str(s.version), str(s.id), s.kind) for s in latest),
        f"no subject begins with {prefix}" if prefix else "no schema is registered",
        frozenset({"version", "id"}),
    )
    session.printer.show({"subjects": rows}, table)
