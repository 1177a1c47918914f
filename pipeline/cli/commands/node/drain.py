"""`medusa node drain`: moves what a node runs to other nodes."""

from functools import partial

import click

from pipeline.cli.commands.move import log_move
from pipeline.cli.completing import nodes
from pipeline.cli.options import timeout_option, with_session
from pipeline.cli.session import Session
from pipeline.cli.times import span
from pipeline.clock import Deadline
from pipeline.counting import counted
from pipeline.event_log.event import EventKind
from pipeline.ids import NodeId
from pipeline.operations.drain import Drain, Moved

_FOR_MOVES = 0.7
"""Share of the time for moves; what has not moved then leaves without, in the rest."""


@click.command("drain")
@click.argument("node", shell_complete=nodes)
@click.option(
    "--wait/--no-wait", default=True, help="Wait until other nodes run its fragments (default)."
)
@timeout_option(300)
@with_session
def command(session: Session, node: str, timeout: float, *, wait: bool) -> None:
    """Let other nodes run what NODE runs, until `medusa node undrain`.

    Each fragment moves as by `medusa move`, to a node that its placement allows: it stops only
    when its state is there. Then NODE can be stopped, upgraded and started without a further
    pause. It is refused if no other node that is up may run one of them. If none is left later,
    NODE claims them again, until there is one.

    \b
    Examples:
      medusa node drain node1
      medusa node drain node1 --no-wait
    """  # noqa: D301 - \b is click's mark for text that is not wrapped

    def report(moved: Moved) -> None:
        after = span(moved.after_ms)
        session.printer.note(f"{moved.fragment} runs on {moved.to}, {after} after the drain began")

    with session.connect() as connections:
        draining = Drain(
            NodeId(node),
            connections.participant,
            connections.catalog,
            session.clock,
            partial(log_move, session, connections, EventKind.MOVE_ASKED),
        )
        changed, fragments = draining.begin(timeout * _FOR_MOVES)
        if changed:
            names = ",".join(map(str, fragments))
            session.log_event(connections, EventKind.DRAINED, node=node, fragments=names)
        moved: tuple[Moved, ...] = ()
        if wait:
            deadline = Deadline.after(session.clock, timeout, f"draining {node}")
            with session.printer.waiting(f"draining {node}…"):
                moved = draining.await_moved(fragments, deadline, report)
    text = f"node {node} is drained" if changed else f"node {node} was drained already"
    if not wait and fragments:
        text += f"; {counted(len(fragments), 'fragment')} will move"
    session.printer.show(
        {
            "node": node,
            "changed": changed,
            "fragments": [str(one) for one in fragments],
            "moved": [
                {"fragment": str(one.fragment), "to": one.to, "after_ms": one.after_ms}
                for one in moved
            ],
        },
        text,
    )
