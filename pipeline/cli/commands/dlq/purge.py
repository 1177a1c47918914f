"""`medusa dlq purge`: old dead letters go, unless a rebuild needs them."""

from collections.abc import Mapping

import click

from pipeline.cli.commands.deploy import confirm
from pipeline.cli.completing import fragments
from pipeline.cli.connections import Connections
from pipeline.cli.letters import ends_of, fragment_of, label, records_to
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.times import parse_time
from pipeline.counting import counted
from pipeline.dead_letters.letter import read
from pipeline.dead_letters.purge import Purge, purge
from pipeline.errors import RefusedError, RetryError, UsageError
from pipeline.ids import Millis, Offset
from pipeline.lanes.needed_letters import kept_from
from pipeline.markers.codec import decode_marker
from pipeline.planner.plan import Fragment


@click.command("purge")
@click.argument("fragment", shell_complete=fragments)
@click.option("--before", metavar="TIME", help="Those that came before.")
@click.option("--all", "everything", is_flag=True, help="Those of any age.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
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

    Kafka removes from the beginning of a partition: what lies behind a letter that stays, stays
    too. Letters that a rebuild of the fragment's state still needs stay, whatever their age. A TIME
    is 2026-01-31T12:00:00Z, or 90s, 5m, 2h, 1d for so long ago.

    \b
    Examples:
      medusa dlq purge tolls.tow_dispatch --before 7d --dry-run
      medusa dlq purge tow_dispatch --all --yes
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if (before is None) is not everything:
        raise UsageError("say either --before TIME or --all")
    before_ms = parse_time(before, session.clock.now_ms()) if before is not None else None
    with session.connect() as connections:
        one = fragment_of(fragment, connections)
        topic, name = one.names.dead_letters, label(one)
        with session.printer.waiting("reading dead letters"):
            found = _look(one, before_ms, connections)
        if found.needed and not found.removed:
            raise RefusedError(
                f"{counted(found.needed, 'dead letter')} cannot be removed yet: a rebuild of the "
                "state needs the oldest of them",
                place=f"fragment {name}",
                hint="they can go once the windows and rows that their inputs fill are closed.",
            )
        if not dry_run and found.removed:
            if not yes:
                session.printer.note(_words(found, "this removes"))
                confirm(session, f"remove {counted(found.removed, 'dead letter')} of {name}?")
            connections.topics.delete_records(topic, found.until)
    session.printer.show(
        {
            "fragment": name,
            "dry_run": dry_run,
            "removed": found.removed,
            "kept_for_a_rebuild": found.needed,
            "kept_as_younger": found.younger,
        },
        _words(found, "would remove" if dry_run else "removed"),
    )


def _look(fragment: Fragment, before_ms: Millis | None, connections: Connections) -> Purge:
    """What can go. What the marker says is needed only moves on, so it holds later, too."""
    topic = fragment.names.dead_letters
    ends = ends_of(topic, connections)
    needed_from = _needed_from(fragment, ends, connections)
    letters = map(read, records_to(topic, ends, connections))
    return purge(letters, ends, before_ms, needed_from)


def _needed_from(
    fragment: Fragment, ends: Mapping[int, Offset], connections: Connections
) -> Mapping[int, Offset]:
    """From where on dead letters are needed, by a marker that is about all below the ends.

    Raises:
        RetryError: a transaction is open, which may hold a later marker.
    """
    letters, markers = fragment.names.dead_letters, fragment.names.markers
    if not connections.topics.await_decided(markers):
        raise RetryError("a transaction of the fragment is open", place=f"topic {markers}")
    last = connections.servers.log.last(markers)
    if last is None or last.value is None:
        return {}
    marker = decode_marker(last.value, f"topic {markers}")
    described = connections.topics.describe((letters,))
    topic_id = described[letters].topic_id if letters in described else ""
    return kept_from(marker, topic_id, ends)


def _words(found: Purge, before: str) -> str:
    lines = [f"{before} {counted(found.removed, 'dead letter')}"]
    if found.needed:
        lines.append(f"  {found.needed} stay: a rebuild needs them, or one before them")
    if found.younger:
        lines.append(f"  {found.younger} stay: they, or one before them, are younger")
    return "\n".join(lines)
