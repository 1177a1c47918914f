"""`medusa move`: moves a fragment to another node while it runs."""

import click

from pipeline.catalog.records import Transfer
from pipeline.cli.completing import nodes, parts
from pipeline.cli.options import timeout_option, with_session
from pipeline.cli.session import Session
from pipeline.cli.times import span
from pipeline.clock import Deadline
from pipeline.deploy.pause import parse_target
from pipeline.errors import UsageError
from pipeline.event_log.event import EventKind
from pipeline.ids import FragmentId, NodeId
from pipeline.operations.connections import Connections
from pipeline.operations.move import Moves, Step

_GRACE_S = 5.0
"""How much longer the command waits than the move may take: the target ends it by itself."""
_STEPS = {
    Step.WANTED: "{to} builds its state, and follows {source}",
    Step.READY: "{to} is level; {source} stops after its batch",
    Step.RELEASED: "{source} has released it; {to} starts it",
}


@click.command("move")
@click.argument("fragment", metavar="NETWORK.FRAGMENT", shell_complete=parts)
@click.option("--to", "target", metavar="NODE", shell_complete=nodes, help="The node to move to.")
@click.option("--dry-run", is_flag=True, help="Check whether it can move; change nothing.")
@click.option("--cancel", is_flag=True, help="End a move that is not done.")
@click.option("--wait/--no-wait", default=True, help="Wait until it runs there (default).")
@timeout_option(300)
@with_session
def command(
    session: Session,
    fragment: str,
    target: str | None,
    timeout: float,
    *,
    dry_run: bool,
    cancel: bool,
    wait: bool,
) -> None:
    """Move NETWORK.FRAGMENT to another node of the participant, while records flow.

    The target builds the state from the log and repeats the batches of the owner, until it is
    level; only then the owner stops, after a batch, and the target goes on. Every result is there
    once. A move that is not done within --timeout ends, and the owner goes on; so does one whose
    fragment is paused, deployed or claimed meanwhile.

    \b
    Examples:
      medusa move tolls.tow_dispatch --to node2
      medusa move tolls.tow_dispatch --to node2 --dry-run
      medusa move tolls.tow_dispatch --cancel
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    network, name = parse_target(fragment, session.participant)
    if name is None:
        raise UsageError("write the fragment as NETWORK.FRAGMENT")
    if cancel is (target is not None):
        raise UsageError("give either --to NODE or --cancel")
    moved_id = FragmentId(network, name)
    with session.connect() as connections:
        moves = moves_of(connections, session)
        if cancel:
            ended = moves.cancel(moved_id)
            log_move(session, connections, EventKind.MOVE_CANCELLED, ended)
            text = f"the move of {moved_id} to {ended.to} is cancelled"
            session.printer.show({"fragment": str(moved_id), "cancelled": True}, text)
            return
        transfer = moves.planned(moved_id, NodeId(target or ""), timeout)
        fields = {"fragment": str(moved_id), "from": transfer.source, "to": transfer.to}
        if dry_run:
            text = f"{moved_id} can move from {transfer.source} to {transfer.to}"
            session.printer.show({**fields, "dry_run": True}, text)
            return
        moves.ask(transfer)
        log_move(session, connections, EventKind.MOVE_ASKED, transfer)
        if not wait:
            text = f"{moved_id} moves from {transfer.source} to {transfer.to}"
            session.printer.show({**fields, "done": False}, text)
            return

        def report(step: Step) -> None:
            if step in _STEPS:
                note = _STEPS[step].format(to=transfer.to, source=transfer.source)
                session.printer.note(note)

        deadline = Deadline.after(session.clock, timeout + _GRACE_S, f"moving {moved_id}")
        with session.printer.waiting(f"moving {moved_id}…"):
            done = moves.await_done(transfer, deadline, report)
    text = f"{moved_id} runs on {transfer.to}, {span(done.after_ms)} after it was asked for"
    session.printer.show({**fields, "done": True, "after_ms": done.after_ms}, text)


def log_move(session: Session, connections: Connections, kind: EventKind, one: Transfer) -> None:
    """Write a step of a move into the event log."""
    session.log_event(
        connections,
        kind,
        network=one.network.name,
        fragment=one.fragment,
        node=one.to,
        **{"from": one.source, "to": one.to},
    )


def moves_of(connections: Connections, session: Session) -> Moves:
    """The moves of the session's participant."""
    return Moves(
        connections.participant,
        connections.catalog,
        connections.topics,
        connections.servers.log,
        session.clock,
    )
