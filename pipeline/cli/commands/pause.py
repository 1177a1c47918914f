"""`medusa pause`: pause of a network or a fragment until it is resumed."""

import click

from pipeline.cli.completing import parts
from pipeline.cli.options import timeout_option, with_session
from pipeline.cli.session import Session
from pipeline.clock import Deadline
from pipeline.deploy.pause import parse_target, pause
from pipeline.deploy.remove import await_stopped, deployed
from pipeline.event_log.event import EventKind


@click.command("pause")
@click.argument("target", metavar="NETWORK[.FRAGMENT]", shell_complete=parts)
@click.option("--wait/--no-wait", default=True, help="Wait until it is paused (default).")
@timeout_option(60)
@with_session
def command(session: Session, target: str, timeout: float, *, wait: bool) -> None:
    """Pause NETWORK, or one fragment of it: NETWORK.FRAGMENT. Everything that it has stays.

    It stops at the end of its batch, and only `medusa resume` continues it, exactly there; a
    deploy changes its plan and does not start it. What reads from it waits.

    \b
    Examples:
      medusa pause tolls
      medusa pause tolls.tow_dispatch
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    network, fragment = parse_target(target, session.participant)
    with session.connect() as connections:
        deployed(network, connections.catalog)
        names = pause(network, fragment, connections.catalog)
        if names:
            session.log_event(
                connections,
                EventKind.PAUSED,
                network=network.name,
                fragment=fragment or "",
                fragments="" if fragment else ",".join(names),
            )
        if wait:
            deadline = Deadline.after(session.clock, timeout, f"pausing {target}")
            only = frozenset(names) if fragment is None else frozenset({fragment})
            with session.printer.waiting(f"pausing {target}…"):
                await_stopped(network, connections.servers, deadline, only)
    text = f"{target} is paused" if names else f"{target} was paused already; nothing changed"
    session.printer.show(
        {"network": network.name, "changed": bool(names), "paused": list(names)}, text
    )
