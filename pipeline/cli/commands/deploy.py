"""`medusa deploy`: deployment of a network document."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import click

from pipeline.cli.commands.plan import show_changes
from pipeline.cli.options import choice_options, document_options, timeout_option, with_session
from pipeline.cli.session import Session
from pipeline.cli.status_view import as_data, news
from pipeline.counting import counted
from pipeline.deploy.apply import Comparison, Deployed, compare, deploy
from pipeline.deploy.documents import Document, read_document
from pipeline.errors import RefusedError
from pipeline.event_log.event import EventKind
from pipeline.operations.connections import Connections
from pipeline.operations.rollout.first_runs import started_fragments
from pipeline.operations.rollout.running import await_running
from pipeline.operations.status.observed import QUEUED, ObservedFragment
from pipeline.planner.state import WORDS, Choices

_UNFINISHED = "the deploy is not done: run it again, and it goes on from here"
_STARTING = "{name} is deployed and goes on starting: `medusa status` shows how far it is"


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """Options of a deploy.

    Args:
        choices: the user's choices for states that do not fit and for inputs that change.
        dry_run: print the changes and deploy nothing.
        wait: wait until every fragment runs.
        yes: skip the confirmation.
        timeout_s: limit of the wait.
    """

    choices: Choices
    dry_run: bool
    wait: bool
    yes: bool
    timeout_s: float


def deploy_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all deploying commands share."""
    for add in (
        timeout_option(120),
        click.option("--yes", is_flag=True, help="Do not ask before fragments are replaced."),
        click.option(
            "--wait/--no-wait",
            default=True,
            help="Wait until every fragment runs and does its work (default).",
        ),
        click.option("--dry-run", is_flag=True, help="Only print the changes, as `plan` does."),
        choice_options,
    ):
        function = add(function)
    return function


@click.command("deploy")
@document_options
@deploy_options
@with_session
def command(
    session: Session,
    file: str | None,
    choices: Choices,
    timeout: float,
    *,
    dry_run: bool,
    wait: bool,
    yes: bool,
) -> None:
    """Deploy a network document.

    Checks everything first; then registers schemas, creates topics, and writes the new version into
    the catalog in one step, where the nodes see it. Only what changed restarts; an unchanged
    document changes nothing. If it is interrupted, run it again.

    \b
    Examples:
      medusa deploy
      medusa deploy other.yaml --dry-run
      medusa deploy --state tolls=rebuild
      medusa deploy --input orders=beginning
      medusa deploy --no-wait --yes -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    document = read_document(session.project.document(file), session.read_subject)
    with session.connect() as connections:
        options = DeployOptions(choices, dry_run, wait, yes, timeout)
        run_deploy(session, connections, document, options)


def run_deploy(
    session: Session, connections: Connections, document: Document, options: DeployOptions
) -> None:
    """Compare, confirm, deploy, wait and print the result."""
    owner = session.participant
    found = compare(document, owner, connections.servers, options.choices)
    found.check()
    if options.dry_run:
        show_changes(session, found.changes)
        return
    for warning in found.changes.warnings:
        session.printer.note(f"warning: {warning}")
    if not options.yes:
        _confirm(session, found)
    exists = found.recorded.network is not None
    before = connections.catalog.statuses.of(found.plan.network) if exists else ()
    with _note_on_interrupt(session, _UNFINISHED):
        done = deploy(found, connections.servers, session.printer.note)
    with _note_on_interrupt(session, _STARTING.format(name=done.name)):
        if done.changed:
            _log(session, connections, done)
        started = started_fragments(found.recorded.fragments, done.fragments, before)
        watch, timeout_s = _state_printer(session), options.timeout_s
        seen = (
            await_running(done, started, connections, session.clock, timeout_s, watch)
            if options.wait
            else ()
        )
    _show(session, done, seen)


def _log(session: Session, connections: Connections, done: Deployed) -> None:
    changed = [one.fragment for one in done.fragments if one.version == done.version]
    session.log_event(
        connections,
        EventKind.DEPLOYED,
        network=done.network.name,
        version=str(done.version),
        fragments=",".join(changed),
        topics=",".join(done.created),
        subjects=",".join(done.registered),
    )


def _state_printer(session: Session) -> Callable[[Sequence[ObservedFragment]], None]:
    """Callback that prints each change of a fragment's state."""
    printed: dict[str, str] = {}

    def watch(seen: Sequence[ObservedFragment]) -> None:
        for one in seen:
            if printed.get(one.name) != news(one):
                printed[one.name] = news(one)
                session.printer.note(f"  {one.name}: {news(one)}")

    return watch


@contextmanager
def _note_on_interrupt(session: Session, text: str) -> Iterator[None]:
    """Print a note when Ctrl-C interrupts the block."""
    try:
        yield
    except KeyboardInterrupt:
        session.printer.note(text)
        raise


def _confirm(session: Session, found: Comparison) -> None:
    """Require a confirmation before running fragments are stopped or replaced."""
    stops = found.changes.disturbing
    if not stops:
        return
    for item in found.changes.fragments:
        if item.fate is not None:
            session.printer.note(f"{item.name}: {WORDS[item.fate]}")
    session.printer.note(f"this stops or replaces fragments that run now: {', '.join(stops)}")
    confirm(session, "go on?")


def confirm(session: Session, question: str) -> None:
    """Confirmation on a terminal.

    Raises:
        RefusedError: the answer is no, or there is no terminal.
    """
    if not session.printer.can_ask:
        raise RefusedError(
            "there is no terminal to ask for confirmation", hint="say --yes to confirm."
        )
    if not click.confirm(question, err=True):
        raise RefusedError("nothing was done: the answer was no")


def _show(session: Session, done: Deployed, seen: tuple[ObservedFragment, ...]) -> None:
    if done.changed:
        made = f", {counted(len(done.created), 'topic')} created" if done.created else ""
        text = f"{done.name} deployed: {counted(len(done.fragments), 'fragment')}{made}"
    else:
        text = f"{done.name} is deployed already; nothing changed"
    queued = [one.record.fragment for one in seen if one.state == QUEUED]
    if queued:
        text += f"; queued, since no node has room: {', '.join(queued)}"
    session.printer.show(
        {
            "network": done.network.name,
            "version": done.version,
            "changed": done.changed,
            "created_topics": list(done.created),
            "registered_subjects": list(done.registered),
            "fragments": [as_data(one, session.clock.now_ms()) for one in seen]
            or [{"fragment": f.fragment, "version": f.version} for f in done.fragments],
        },
        text,
    )
