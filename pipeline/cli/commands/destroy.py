"""`medusa destroy`: removal of a network with its topics, groups and checkpoints."""

import shutil
from pathlib import Path

import click

from pipeline.checkpoint_store.opening import open_store
from pipeline.cli.commands.deploy import confirm
from pipeline.cli.completing import networks
from pipeline.cli.options import timeout_option, with_session
from pipeline.cli.session import Session
from pipeline.clock import Deadline
from pipeline.counting import counted
from pipeline.deploy.remove import Doomed, destroy, doomed
from pipeline.errors import MedusaError
from pipeline.event_log.event import EventKind
from pipeline.ids import NetworkId
from pipeline.names import checkpoint_folder


@click.command("destroy")
@click.argument("network", shell_complete=networks)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
@timeout_option(120)
@with_session
def command(session: Session, network: str, timeout: float, *, yes: bool, dry_run: bool) -> None:
    """Stop NETWORK and remove the topics that it made, its groups, checkpoints and history.

    Topics that Medusa did not create stay, inputs above all; so do registered schemas. What is
    removed cannot be brought back.

    \b
    Examples:
      medusa destroy tolls --dry-run
      medusa destroy tolls --yes
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    name = session.network(network)
    copies = 0
    with session.connect() as connections:
        found = doomed(name, connections.servers)
        checkpoints = _checkpoints(session, name)
        if not dry_run:
            if not yes:
                session.printer.note(_text(found, checkpoints, "this removes"))
                confirm(session, f"destroy {name}?")
            deadline = Deadline.after(session.clock, timeout, f"destroying {name}")
            found = destroy(found, connections.servers, deadline, session.printer.note)
            if checkpoints is not None:
                shutil.rmtree(checkpoints, ignore_errors=True)
            copies = _without_copies(session, name)
            session.log_event(
                connections,
                EventKind.DESTROYED,
                network=name.name,
                topics=",".join(found.topics),
            )
    session.printer.show(
        {
            "network": name.name,
            "dry_run": dry_run,
            "removed_topics": list(found.topics),
            "removed_groups": list(found.groups),
            "removed_checkpoints": str(checkpoints) if checkpoints else None,
            "removed_copies": copies,
            "kept_topics": list(found.kept_topics),
        },
        _text(found, checkpoints, f"would remove {name}:" if dry_run else f"{name} is destroyed:"),
    )


def _checkpoints(session: Session, network: NetworkId) -> Path | None:
    """Checkpoint folder of the network on this machine; None: there is none."""
    folder = Path(session.settings.checkpoints) / checkpoint_folder(network)
    return folder if folder.is_dir() else None


def _without_copies(session: Session, network: NetworkId) -> int:
    """Remove the copies of the network's checkpoints; returns the number of objects."""
    try:
        store = open_store(session.settings)
        return 0 if store is None else store.remove_all(checkpoint_folder(network))
    except MedusaError as error:
        session.printer.note(f"copies of its checkpoints are left in the checkpoint store: {error}")
        return 0


def _text(found: Doomed, checkpoints: Path | None, before: str) -> str:
    topics = ", ".join(found.topics) or "none"
    lines = [before, f"  {counted(len(found.topics), 'topic')}: {topics}"]
    lines.append(f"  {counted(len(found.groups), 'consumer group')}")
    if checkpoints:
        lines.append(f"  checkpoints in {checkpoints}")
    lines.append(
        f"  kept: {', '.join(found.kept_topics) or 'no topics'}; registered schemas; checkpoints "
        "in other data folders and on other machines"
    )
    return "\n".join(lines)
