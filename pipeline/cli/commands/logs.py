"""`medusa logs`: log entries of the nodes on this machine, filtered by network or fragment."""

from collections.abc import Sequence

import click

from pipeline.cli.completing import parts
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.errors import RefusedError
from pipeline.operations.logs.entries import LogEntry, labels
from pipeline.operations.logs.files import LogFile, last_entries, new_entries, node_logs


@click.command("logs")
@click.argument("about", required=False, metavar="[NAME]", shell_complete=parts)
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="How many of the last entries to begin with, over all nodes.",
)
@with_session
def command(session: Session, about: str | None, *, follow: bool, lines: int) -> None:
    """Show what the nodes on this machine logged, by time; with NAME, only what is about it.

    NAME is a network, a fragment, or network.fragment. What Spark wrote in the nodes that
    `medusa up` started is there, too. With -o json each entry is one line.

    \b
    Examples:
      medusa logs
      medusa logs toll_notifications -n 20
      medusa logs tolls
      medusa logs tolls.toll_notifications -f
      medusa logs -o json | jq 'select(.level == "ERROR")'
    """  # noqa: D301 - \b is click's mark for text that is not wrapped

    def selected(entry: LogEntry) -> bool:
        return about is None or entry.concerns(about)

    found = node_logs(session.project.logs)
    shown = last_entries(found, lines, selected)
    for entry in shown:
        session.printer.record(_data(entry), str(entry))
    if about is not None and not shown and lines:
        _report_no_entries(session, found, about, follow=follow)
    if follow:
        for entry in filter(selected, new_entries(found, session.clock)):
            session.printer.record(_data(entry), str(entry))


def _data(entry: LogEntry) -> dict[str, str | None]:
    return {
        "time": entry.time or None,
        "level": entry.level or None,
        "node": entry.node,
        "source": entry.source.value,
        "network": entry.network or None,
        "fragment": entry.fragment or None,
        "message": entry.message,
    }


def _report_no_entries(
    session: Session, logs: Sequence[LogFile], about: str, *, follow: bool
) -> None:
    """Raise an error with the existing labels; with --follow, entries may come later: a note."""
    existing = labels(entry for log in logs for entry in log.entries())
    found = ", ".join(existing) or "nothing about any fragment"
    message = f"no log entry on this machine is about {about}"
    if not follow:
        raise RefusedError(message, hint=f"there is: {found}.")
    session.printer.note(f"{message} so far; there is: {found}")
