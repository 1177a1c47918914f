"""`medusa logs`: what the nodes of this machine logged, all of it or about one fragment."""

import heapq
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.clock import Clock
from pipeline.errors import RefusedError

_BEGINS = re.compile(r"\d{4}-\d\d-\d\d[T ]")
"""How the first line of a log entry begins; lines that begin otherwise belong to the one above."""
_LABEL = re.compile(r"\[([a-z][a-z0-9_]*)\.([a-z][a-z0-9_]*)\]")
_POLL_S = 0.3


@click.command("logs")
@click.argument("fragment", required=False)
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
def command(session: Session, fragment: str | None, *, follow: bool, lines: int) -> None:
    """Show what the nodes on this machine logged, by time; with FRAGMENT, only about that one.

    FRAGMENT is the name of a fragment, or network.fragment.

    \b
    Examples:
      medusa logs
      medusa logs toll_notifications -n 20
      medusa logs tolls.toll_notifications -f
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    files = tuple(sorted(session.project.logs.glob("node-*.log")))
    if not files:
        raise RefusedError(
            "there is no log of a node here",
            place=str(session.project.logs),
            hint="logs are on the machine where the node runs; is it up? try `medusa up`.",
        )
    last = merged([_last(file, fragment, lines) for file in files])
    shown = deque(last, maxlen=lines)
    for entry in shown:
        session.printer.line(entry)
    if fragment is not None and not shown and lines:
        _say_nothing_found(session, files, fragment, follow=follow)
    if follow:
        for entry in select(_follow(files, session.clock), fragment):
            session.printer.line(entry)


def _last(file: Path, fragment: str | None, lines: int) -> Iterable[str]:
    with file.open(encoding="utf-8", errors="replace") as stream:
        return deque(select(entries(stream), fragment), maxlen=lines)


def _say_nothing_found(
    session: Session, files: tuple[Path, ...], fragment: str, *, follow: bool
) -> None:
    """An error that names what there is; who follows may be early, and only hears of it."""
    there = ", ".join(labels(files)) or "nothing about any fragment"
    what = f"no log entry on this machine is about {fragment}"
    if not follow:
        raise RefusedError(what, hint=f"there is: {there}.")
    session.printer.note(f"{what} so far; there is: {there}")


def labels(files: Iterable[Path]) -> tuple[str, ...]:
    """Every network.fragment that the logs tell of, sorted."""
    found: set[str] = set()
    for file in files:
        with file.open(encoding="utf-8", errors="replace") as stream:
            for line in stream:
                label = _LABEL.search(line) if _BEGINS.match(line) else None
                if label:
                    found.add(f"{label[1]}.{label[2]}")
    return tuple(sorted(found))


def entries(lines: Iterable[str]) -> Iterator[str]:
    """Whole log entries: a line that begins with a time, with the lines below that do not."""
    held: list[str] = []
    for line in lines:
        if _BEGINS.match(line) and held:
            yield "\n".join(held)
            held = []
        held.append(line.rstrip("\n"))
    if held:
        yield "\n".join(held)


def merged(files: Sequence[Iterable[str]]) -> Iterator[str]:
    """The entries of several logs by their times; those of one log stay in their order."""
    return heapq.merge(*files, key=_time)


def _time(entry: str) -> str:
    """When an entry was written; all times have one form and zone, so texts compare as times."""
    return entry.partition(" ")[0] if _BEGINS.match(entry) else ""


def select(found: Iterable[str], fragment: str | None) -> Iterator[str]:
    """The entries about one fragment; all of them if none is named."""
    return (entry for entry in found if fragment is None or about(entry, fragment))


def about(entry: str, fragment: str) -> bool:
    """Whether an entry carries the label of a fragment, `[network.fragment]`."""
    label = _LABEL.search(entry)
    return label is not None and fragment in {label[2], f"{label[1]}.{label[2]}"}


def _follow(files: tuple[Path, ...], clock: Clock) -> Iterator[str]:
    """Entries that are added, until Ctrl-C; a file that was made anew is read from its beginning.

    What is found in one look is in the order of its times.
    """
    read = {file: file.stat().st_size for file in files}
    while True:
        new: list[list[str]] = []
        for file in files:
            size = file.stat().st_size if file.exists() else 0
            if size < read[file]:
                read[file] = 0
            if size == read[file]:
                continue
            with file.open("rb") as stream:
                stream.seek(read[file])
                added = stream.read(size - read[file])
            whole = added.rfind(b"\n") + 1
            read[file] += whole
            new.append(list(entries(added[:whole].decode("utf-8", "replace").splitlines())))
        yield from merged(new)
        clock.sleep(_POLL_S)
