"""`medusa resume`: resumption of paused fragments."""

import click

from pipeline.cli.completing import parts
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.deploy.pause import parse_target, resume
from pipeline.deploy.remove import deployed
from pipeline.event_log.event import EventKind


@click.command("resume")
@click.argument("target", metavar="NETWORK[.FRAGMENT]", shell_complete=parts)
@with_session
def command(session: Session, target: str) -> None:
    """Resume the paused fragments of NETWORK, or one of them, where they stopped.

    \b
    Examples:
      medusa resume tolls
      medusa resume tolls.tow_dispatch
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    network, fragment = parse_target(target, session.participant)
    with session.connect() as connections:
        deployed(network, connections.catalog)
        names = resume(network, fragment, connections.catalog)
        if names:
            session.log_event(
                connections,
                EventKind.RESUMED,
                network=network.name,
                fragment=fragment or "",
                fragments="" if fragment else ",".join(names),
            )
    text = f"{target} goes on" if names else f"{target} was not paused; nothing changed"
    session.printer.show(
        {"network": network.name, "changed": bool(names), "resumed": list(names)}, text
    )
