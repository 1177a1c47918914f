"""`medusa node list`: list of the running nodes."""

import click

from pipeline.cli.load_view import node_load_data, node_load_text
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.cli.times import time_text
from pipeline.clock import rfc3339
from pipeline.operations.nodes import ObservedNode, nodes_up
from schemas.json_value import JsonObject


@click.command("list")
@with_session
def command(session: Session) -> None:
    """Show the nodes that are up, what each of them runs, and its load.

    The load is in load units, of those that its cores can do: 1 % of a reference core for a second.

    \b
    Example:
      medusa node list
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        nodes = nodes_up(connections)
    rows: list[JsonObject] = [
        {
            "node": one.record.node,
            "participant": one.record.participant,
            "host": one.record.host,
            "pid": one.record.pid,
            "started_at": rfc3339(one.record.started_at_ms),
            "version": one.record.version,
            "reads": one.record.reads,
            "labels": dict(one.record.labels),
            "capacity": one.record.capacity,
            "most_fragments": one.record.most_fragments or None,
            "running": one.running,
            "load": node_load_data(one.load),
            "drained_since": time_text(one.drained_since_ms),
            "fragments": list(one.fragments),
        }
        for one in nodes
    ]
    columns = ("node", "participant", "host", "pid", "started_at", "version", "reads", "capacity")
    table = Table(
        (*columns, "fragments", "running", "load", "labels"),
        tuple(
            (*(str(row[c]) for c in columns), *_work(one), _labels(one))
            for row, one in zip(rows, nodes, strict=True)
        ),
        "no node is up",
        frozenset({"pid", "reads", "capacity", "fragments", "running", "load"}),
    )
    session.printer.show({"nodes": rows}, table)


def _work(node: ObservedNode) -> tuple[str, str, str]:
    """What it owns and runs, and its load."""
    return str(len(node.fragments)), _running(node), node_load_text(node.load)


def _running(node: ObservedNode) -> str:
    """How many fragments should run on it, and how many may."""
    most = node.record.most_fragments
    return f"{node.running} of {most}" if most else str(node.running)


def _labels(node: ObservedNode) -> str:
    """Its labels, and whether it is drained."""
    labels = ",".join(f"{key}={value}" for key, value in node.record.labels)
    return " ".join(filter(None, (labels, "" if node.drained_since_ms is None else "(drained)")))
