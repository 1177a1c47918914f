"""`medusa node undrain`: lets a drained node run fragments again."""

import click

from pipeline.cli.completing import nodes
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.event_log.event import EventKind
from pipeline.ids import NodeId


@click.command("undrain")
@click.argument("node", shell_complete=nodes)
@with_session
def command(session: Session, node: str) -> None:
    """Let NODE claim fragments again; nothing moves back.

    \b
    Example:
      medusa node undrain node1
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        changed = connections.catalog.drains.undrain(connections.participant, NodeId(node))
        if changed:
            session.log_event(connections, EventKind.UNDRAINED, node=node)
    text = f"node {node} may run fragments again" if changed else f"node {node} was not drained"
    session.printer.show({"node": node, "changed": changed}, text)
