"""`medusa node list`: the nodes that are up."""

import click

from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.clock import rfc3339


@click.command("list")
@with_session
def command(session: Session) -> None:
    """Show the nodes that are up, and what each of them runs.

    \b
    Example:
      medusa node list
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        catalog = connections.catalog
        nodes = catalog.nodes.all()
        owned = [
            (one.owner.node, str(one.id))
            for one in catalog.snapshot().fragments
            if one.owner is not None
        ]
    rows = [
        {
            "node": record.node,
            "participant": record.participant,
            "host": record.host,
            "pid": record.pid,
            "started_at": rfc3339(record.started_at_ms),
            "version": record.version,
            "reads": record.reads,
            "fragments": [fragment for node, fragment in owned if node == record.node],
        }
        for record in nodes
    ]
    columns = ("node", "participant", "host", "pid", "started_at", "version", "reads")
    counts = [sum(node == record.node for node, _ in owned) for record in nodes]
    table = Table(
        (*columns, "fragments"),
        tuple(
            (*(str(row[c]) for c in columns), str(count))
            for row, count in zip(rows, counts, strict=True)
        ),
        "no node is up",
        frozenset({"pid", "reads", "fragments"}),
    )
    session.printer.show({"nodes": rows}, table)
