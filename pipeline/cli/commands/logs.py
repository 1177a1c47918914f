"""`medusa logs`: what the nodes of this machine logged, all or about one network or fragment."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from pipeline.cli.completing import parts
from pipeline.cli.log_entries import (
    Entry,
    Reader,
    entries_of_node,
    entries_of_spark,
    labels,
    merged,
)
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.clock import Clock
from pipeline.errors import RefusedError

_POLL_S = 0.3


@dataclass(frozen=True, slots=True)
class Log:
    """A file with entries, and what reads them; it may not be there yet, or no more."""

    file: Path
    read: Reader

    def entries(self) -> Iterator[Entry]:
        """All that it holds."""
        if self.file.is_file():
            with self.file.open(encoding="utf-8", errors="replace") as stream:
                yield from self.read(stream)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.file.stat().st_size if self.file.is_file() else 0


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
    found = _logs(session)
    shown = deque(merged([_last(log, about, lines) for log in found]), maxlen=lines)
    for entry in shown:
        session.printer.record(entry.as_data(), str(entry))
    if about is not None and not shown and lines:
        _say_nothing_found(session, found, about, follow=follow)
    if follow:
        for entry in _follow(found, session.clock):
            if _wanted(entry, about):
                session.printer.record(entry.as_data(), str(entry))


def _logs(session: Session) -> tuple[Log, ...]:
    """The log of each node, and what its process wrote if `up` started it: NODE.out."""
    folder = session.project.logs
    nodes = [file.stem.removeprefix("node-") for file in sorted(folder.glob("node-*.log"))]
    if not nodes:
        raise RefusedError(
            "there is no log of a node here",
            place=str(folder),
            hint="logs are on the machine where the node runs; is it up? try `medusa up`.",
        )
    return (
        *(Log(folder / f"node-{node}.log", partial(entries_of_node, node)) for node in nodes),
        *(Log(folder / f"{node}.out", partial(entries_of_spark, node)) for node in nodes),
    )


def _last(log: Log, about: str | None, lines: int) -> deque[Entry]:
    return deque((entry for entry in log.entries() if _wanted(entry, about)), maxlen=lines)


def _wanted(entry: Entry, about: str | None) -> bool:
    return about is None or entry.is_about(about)


def _say_nothing_found(
    session: Session, logs: tuple[Log, ...], about: str, *, follow: bool
) -> None:
    """An error that names what there is; who follows may be early, and only hears of it."""
    known = labels(entry for log in logs for entry in log.entries())
    there = ", ".join(known) or "nothing about any fragment"
    what = f"no log entry on this machine is about {about}"
    if not follow:
        raise RefusedError(what, hint=f"there is: {there}.")
    session.printer.note(f"{what} so far; there is: {there}")


def _follow(logs: tuple[Log, ...], clock: Clock) -> Iterator[Entry]:
    """Entries that are added, until Ctrl-C; a file that was made anew is read from its beginning.

    What is found in one look is in the order of its times.
    """
    done = {log.file: log.size for log in logs}
    while True:
        new: list[list[Entry]] = []
        for log in logs:
            size = log.size
            if size < done[log.file]:
                done[log.file] = 0
            if size == done[log.file]:
                continue
            with log.file.open("rb") as stream:
                stream.seek(done[log.file])
                added = stream.read(size - done[log.file])
            whole = added.rfind(b"\n") + 1
            done[log.file] += whole
            new.append(list(log.read(added[:whole].decode("utf-8", "replace").splitlines())))
        yield from merged(new)
        clock.sleep(_POLL_S)
