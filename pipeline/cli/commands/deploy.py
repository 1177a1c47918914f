"""`medusa deploy`: makes a network run as its document says."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from pipeline.cli.commands.plan import show_changes
from pipeline.cli.connections import Connections
from pipeline.cli.options import document_option, timeout_option, with_session
from pipeline.cli.session import Session
from pipeline.cli.status_view import Seen, as_data, failed, see, settled
from pipeline.clock import Deadline
from pipeline.counting import counted
from pipeline.deploy.apply import Comparison, Deployed, compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.errors import RefusedError
from pipeline.ids import NetworkName, ParticipantId
from pipeline.planner.changes import Action

_POLL_S = 0.2
_UNFINISHED = "the deploy is not done: run it again, and it goes on from here"
_STARTING = "{name} is deployed and goes on starting: `medusa status` shows how far it is"


@click.command("deploy")
@document_option
@click.option("--dry-run", is_flag=True, help="Only say what would change, as `plan` does.")
@click.option("--wait/--no-wait", default=True, help="Wait until every fragment runs (default).")
@click.option("--yes", is_flag=True, help="Do not ask before fragments are removed or restarted.")
@timeout_option(120)
@with_session
def command(
    session: Session,
    file: str | None,
    timeout: float,
    *,
    dry_run: bool,
    wait: bool,
    yes: bool,
) -> None:
    """Make a network run as its document says.

    Checks everything first; then registers schemas, creates topics, and writes the new version into
    the catalog in one step, where the nodes see it. An unchanged document changes and restarts
    nothing. If it is cut off, run it again.

    \b
    Examples:
      medusa deploy
      medusa deploy -f other.yaml --dry-run
      medusa deploy --no-wait --yes -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    document = read_document(session.project.document(file), session.read_subject)
    with session.connect() as connections:
        owner = ParticipantId(session.settings.participant)
        found = compare(document, owner, connections.servers)
        found.check()
        if dry_run:
            show_changes(session, found.changes)
            return
        if not yes:
            _confirm(session, found)
        with _told_when_cut_off(session, _UNFINISHED):
            done = deploy(found, connections.servers, session.printer.note)
        with _told_when_cut_off(session, _STARTING.format(name=done.name)):
            seen = _await_running(session, connections, done, timeout) if wait else ()
    _show(session, done, seen)


@contextmanager
def _told_when_cut_off(session: Session, words: str) -> Iterator[None]:
    """Say how things stand if Ctrl-C ends what is done here."""
    try:
        yield
    except KeyboardInterrupt:
        session.printer.note(words)
        raise


def _confirm(session: Session, found: Comparison) -> None:
    """Ask a person; a script has to say --yes."""
    stops = [
        item.name
        for item in found.changes.fragments
        if item.action in {Action.CHANGE, Action.REMOVE}
    ]
    if not stops:
        return
    session.printer.note(f"this stops or replaces fragments that run now: {', '.join(stops)}")
    confirm(session, "go on?")


def confirm(session: Session, question: str) -> None:
    """Ask a person on a terminal.

    Raises:
        RefusedError: the answer is no, or nobody can be asked.
    """
    if not session.printer.can_ask:
        raise RefusedError("nobody can be asked here", hint="say --yes if this is what you want.")
    if not click.confirm(question, err=True):
        raise RefusedError("nothing was done: the answer was no")


def _await_running(
    session: Session, connections: Connections, done: Deployed, timeout_s: float
) -> tuple[Seen, ...]:
    """Wait until every fragment runs; tells each change of a state.

    Raises:
        RetryError: the time is over; the deploy itself is done.
        RefusedError: a fragment failed for good.
    """
    deadline = Deadline.after(session.clock, timeout_s, f"waiting for {done.name} to run")
    told: dict[str, str] = {}
    while True:
        seen = look(connections, done.network)
        for one in seen:
            if told.get(one.name) != one.state:
                told[one.name] = one.state
                session.printer.note(f"  {one.name}: {one.state}")
        broken = failed(seen)
        if broken:
            error = broken[0].status.last_error if broken[0].status else ""
            raise RefusedError(
                f"{done.name} is deployed, but {broken[0].name} failed: {error}",
                hint=f"`medusa logs {broken[0].name}` says more.",
            )
        if settled(seen):
            return seen
        nobody = not connections.catalog.nodes()
        deadline.check(
            "it is deployed, but no node is up: `medusa node start` starts one."
            if nobody
            else "it is deployed and may still come up: `medusa status`."
        )
        session.clock.sleep(_POLL_S)


def look(connections: Connections, network: NetworkName) -> tuple[Seen, ...]:
    """The fragments of a network as they are now."""
    catalog = connections.catalog
    return see(catalog.fragments(network), catalog.statuses(network), catalog.nodes())


def _show(session: Session, done: Deployed, seen: tuple[Seen, ...]) -> None:
    if done.changed:
        made = f", {counted(len(done.created), 'topic')} created" if done.created else ""
        text = f"{done.name} deployed: {counted(len(done.fragments), 'fragment')}{made}"
    else:
        text = f"{done.name} is deployed already; nothing changed"
    session.printer.show(
        {
            "network": done.network,
            "version": done.version,
            "changed": done.changed,
            "created_topics": list(done.created),
            "registered_subjects": list(done.registered),
            "fragments": [as_data(one) for one in seen]
            or [{"fragment": f.fragment, "version": f.version} for f in done.fragments],
        },
        text,
    )
