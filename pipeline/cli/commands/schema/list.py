"""`medusa schema list`: the subjects of the registry."""

import click

from pipeline.cli.options import with_session
from pipeline.cli.output import Table
from pipeline.cli.session import Session


@click.command("list")
@click.argument("prefix", default="")
@with_session
def command(session: Session, prefix: str) -> None:
    """List the subjects that begin with PREFIX, or all, with newest version and id.

    \b
    Examples:
      medusa schema list
      medusa schema list car- -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        registry = connections.registry
        subjects = [subject for subject in registry.subjects() if subject.startswith(prefix)]
        latest = [found for subject in subjects if (found := registry.latest(subject)) is not None]
    rows = [{"subject": s.subject, "version": s.version, "id": s.id} for s in latest]
    table = Table(
        ("subject", "version", "id"),
        tuple((str(s.subject), str(s.version), str(s.id)) for s in latest),
        f"no subject begins with {prefix}" if prefix else "no schema is registered",
        frozenset({"version", "id"}),
    )
    session.printer.show({"subjects": rows}, table)
