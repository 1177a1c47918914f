"""`medusa undeploy`: stop of a network's fragments."""

import click

from pipeline.cli.completing import networks
from pipeline.cli.options import timeout_option, with_session
from pipeline.cli.session import Session
from pipeline.clock import Deadline
from pipeline.deploy.remove import await_stopped, deployed, stop
from pipeline.event_log.event import EventKind


@click.command("undeploy")
@click.argument("network", shell_complete=networks)
@click.option("--wait/--no-wait", default=True, help="Wait until every fragment stopped (default).")
@timeout_option(60)
@with_session
def command(session: Session, network: str, timeout: float, *, wait: bool) -> None:
    """Stop the fragments of NETWORK. Topics, records and progress stay.

    `medusa deploy` continues it exactly where it stopped.

    \b
    Example:
      medusa undeploy tolls
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    name = session.network(network)
    with session.connect() as connections:
        deployed(name, connections.catalog)
        changed = stop(name, connections.catalog)
        if changed:
            session.log_event(connections, EventKind.UNDEPLOYED, network=name.name)
        if wait:
            deadline = Deadline.after(session.clock, timeout, f"stopping {name}")
            with session.printer.waiting(f"stopping {name}…"):
                await_stopped(name, connections.servers, deadline)
    text = f"{name} is stopped" if changed else f"{name} was stopped already; nothing changed"
    session.printer.show({"network": name.name, "changed": changed, "stopped": wait}, text)
