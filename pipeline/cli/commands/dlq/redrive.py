"""`medusa dlq redrive`: redrive of dead letters to their fragment, each once."""

import click

from pipeline.cli.commands.deploy import confirm
from pipeline.cli.commands.dlq.reason import reason_option
from pipeline.cli.completing import fragments
from pipeline.cli.options import timeout_option, with_session
from pipeline.cli.session import Session
from pipeline.clock import Deadline, rfc3339
from pipeline.counting import counted
from pipeline.dead_letters.choose import LetterFilter
from pipeline.event_log.event import EventKind
from pipeline.operations.dead_letters.redrive import Redrive, Redriven
from pipeline.operations.fragments import fragment_of, label


@click.command("redrive")
@click.argument("fragment", shell_complete=fragments)
@reason_option("Only those with this reason.")
@click.option("--limit", type=click.IntRange(min=1), help="Send at most so many.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only print what would be sent.")
@timeout_option(60)
@with_session
def command(
    session: Session,
    fragment: str,
    reason: str | None,
    limit: int | None,
    timeout: float,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """Send the dead letters of FRAGMENT to it again, byte for byte, once.

    They go into the fragment's own redrive topic, so other readers do not read them twice.
    A letter that was sent is not sent a second time, also when a run was killed; one that fails
    again is a new dead letter with a higher attempt. Late records cannot be sent again, and of
    failed results only those of as-of joins, as long as the record of the left row is in its topic.

    \b
    Examples:
      medusa dlq redrive tolls.tow_dispatch --dry-run
      medusa dlq redrive tow_dispatch --reason schema_not_found --yes
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        one = fragment_of(fragment, connections)
        run = Redrive(one, LetterFilter(reason=reason), limit, connections, session.clock)
        if dry_run or not yes:
            with session.printer.waiting("reading dead letters"):
                found = run.preview()
        if not dry_run:
            if not yes:
                session.printer.note(_summary(found, "this would send"))
                confirm(session, f"send {counted(found.sent, 'dead letter')} again?")
            deadline = Deadline.after(session.clock, timeout, "beginning to send again")
            with session.printer.waiting("sending dead letters again"):
                found = run.send(deadline)  # another deploy is possible since the preview
            if found.sent:
                session.log_event(
                    connections,
                    EventKind.REDRIVEN,
                    network=one.names.network.name,
                    fragment=one.names.fragment,
                    records=str(found.sent),
                    reason=reason or "",
                )
        run.check(found)
    session.printer.show(
        {
            "fragment": label(one),
            "dry_run": dry_run,
            "sent": found.sent,
            "late": {"box": found.box, "count": found.late, "unknown": found.untimed},
            "already_sent": found.already_sent,
            "refused": [{"reason": why, "count": n} for why, n in found.refused.items()],
        },
        _summary(found, "would send" if dry_run else "sent"),
    )


def _summary(found: Redriven, before: str) -> str:
    lines = [f"{before} {counted(found.sent, 'dead letter')} again"]
    if found.late and found.closed_ms is not None:
        until = rfc3339(found.closed_ms)
        lines.append(f"  {found.late} of them late: box {found.box} has closed all up to {until}")
    if found.untimed:
        lines.append(f"  {found.untimed} of them perhaps late: their event time is unknown")
    if found.already_sent:
        lines.append(f"  {found.already_sent} sent before")
    lines += [f"  {count} not sent: {why}" for why, count in found.refused.items()]
    return "\n".join(lines)
