"""`medusa dlq purge`: removal of old dead letters that no rebuild needs."""

import click

from pipeline.cli.commands.deploy import confirm
from pipeline.cli.completing import fragments
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.times import parse_time
from pipeline.counting import counted
from pipeline.dead_letters.purge import Purge
from pipeline.errors import UsageError
from pipeline.event_log.event import EventKind
from pipeline.operations.dead_letters.purge import removable_letters, remove_letters
from pipeline.operations.fragments import fragment_of, label


@click.command("purge")
@click.argument("fragment", shell_complete=fragments)
@click.option("--before", metavar="TIME", help="Those that came before.")
@click.option("--all", "everything", is_flag=True, help="Those of any age.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
@with_session
def command(
    session: Session,
    fragment: str,
    before: str | None,
    *,
    everything: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Remove dead letters of FRAGMENT for good, the oldest first, with --before TIME or --all.

    Kafka removes from the beginning of a partition: what follows a letter that stays, stays
    too. Letters that a rebuild of the fragment's state still needs stay, whatever their age. A TIME
    is 2026-01-31T12:00:00Z, or 90s, 5m, 2h, 1d for so long ago.

    \b
    Examples:
      medusa dlq purge tolls.tow_dispatch --before 7d --dry-run
      medusa dlq purge tow_dispatch --all --yes
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if (before is None) is not everything:
        raise UsageError("give either --before TIME or --all")
    before_ms = parse_time(before, session.clock.now_ms()) if before is not None else None
    with session.connect() as connections:
        one = fragment_of(fragment, connections)
        name = label(one)
        with session.printer.waiting("reading dead letters"):
            found = removable_letters(one, before_ms, connections)
        if not dry_run and found.removed:
            if not yes:
                session.printer.note(_summary(found, "this removes"))
                confirm(session, f"remove {counted(found.removed, 'dead letter')} of {name}?")
            remove_letters(one, found, connections)
            session.log_event(
                connections,
                EventKind.PURGED,
                network=one.names.network.name,
                fragment=one.names.fragment,
                records=str(found.removed),
            )
    session.printer.show(
        {
            "fragment": name,
            "dry_run": dry_run,
            "removed": found.removed,
            "kept_for_a_rebuild": found.needed,
            "kept_as_younger": found.younger,
        },
        _summary(found, "would remove" if dry_run else "removed"),
    )


def _summary(found: Purge, before: str) -> str:
    lines = [f"{before} {counted(found.removed, 'dead letter')}"]
    if found.needed:
        lines.append(f"  {found.needed} stay: a rebuild needs them, or one before them")
    if found.younger:
        lines.append(f"  {found.younger} stay: they, or one before them, are younger")
    return "\n".join(lines)
