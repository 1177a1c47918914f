"""`medusa status`: current state of fragments."""

import click

from pipeline.cli.completing import networks, nodes
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.status_view import as_data, as_table, trim_notes
from pipeline.errors import ExitCode
from pipeline.operations.status.expiring import ExpiringSearch
from pipeline.operations.status.fragments import fragments_status
from pipeline.operations.status.observed import failed
from pipeline.operations.status.steps import StepSearch
from pipeline.operations.status.takeover_search import TakeoverSearch
from schemas.json_value import JsonObject

_WATCH_INTERVAL_S = 1.0


@click.command("status")
@click.argument("network", required=False, shell_complete=networks)
@click.option(
    "--node", metavar="NODE", shell_complete=nodes, help="Only what this node runs, or ran last."
)
@click.option("--watch", is_flag=True, help="Show it again every second until Ctrl-C.")
@with_session
def command(session: Session, network: str | None, *, node: str | None, watch: bool) -> None:
    """Show the fragments of NETWORK, or of all networks of the participant.

    For each: state, node, records in and out, lag in records and how far behind in time, late
    records, dead letters, restarts, load, last error. `lost` means that its node is gone. Warns of
    records that retention removes before a fragment has used them. Of fragments with secondaries:
    who stands by, and what a takeover would cost now. If one has failed, the exit code is 3.

    \b
    Examples:
      medusa status
      medusa status tolls --watch
      medusa status --node node1
      medusa status -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    name = None if network is None else session.network(network)
    with session.connect() as connections:
        search = ExpiringSearch(connections, session.clock)
        steps = StepSearch(connections, session.clock)
        takeovers = TakeoverSearch(connections, session.clock)
        while True:
            shown = tuple(
                one
                for one in fragments_status(name, connections)
                if node is None or (one.status is not None and one.status.node == node)
            )
            seen = takeovers.of(steps.of(search.of(shown)))
            if watch:
                session.printer.clear()
            now_ms = session.clock.now_ms()
            data: JsonObject = {"fragments": [as_data(one, now_ms) for one in seen]}
            session.printer.show(data, as_table(seen, now_ms))
            for note in trim_notes(seen):
                session.printer.note(note)
            if search.problem is not None:
                session.printer.note(f"the retention of topics is not known: {search.problem}")
            if steps.problem is not None:
                session.printer.note(f"the steps of lanes are not known: {steps.problem}")
            if takeovers.problem is not None:
                session.printer.note(f"earlier takeovers are not known: {takeovers.problem}")
            if not watch:
                break
            session.clock.sleep(_WATCH_INTERVAL_S)
    if failed(seen):
        raise click.exceptions.Exit(ExitCode.FRAGMENT_FAILED)
