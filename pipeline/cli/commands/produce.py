"""`medusa produce`: JSON lines encoded as Avro records and sent to a topic."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from pipeline.cli.completing import streams
from pipeline.cli.derived import confirm_derived
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.counting import counted
from pipeline.errors import ExitCode, InputError
from pipeline.operations.records.encoding import BadLine, EncodedLine, encode_lines
from pipeline.operations.records.produce import line_encoding, send_lines
from pipeline.operations.streams import topic_of

_SHOWN_MAX = 20
"""Bad lines that are printed one by one; further ones are only counted."""
_KEPT_MAX = 1_000
"""Bad lines that -o json contains."""


@dataclass(slots=True)
class _Count:
    """Counts of lines, and the first bad lines.

    `unsent`: good lines that --strict or --dry-run kept from being sent.
    """

    sent: int = 0
    unsent: int = 0
    bad: int = 0
    kept: list[BadLine] = field(default_factory=list)

    def note(self, bad: BadLine) -> None:
        """Count a bad line."""
        self.bad += 1
        if self.bad <= _KEPT_MAX:
            self.kept.append(bad)


@click.command("produce")
@click.argument("stream", shell_complete=streams)
@click.option(
    "-f",
    "--file",
    default="-",
    show_default=True,
    type=click.Path(),
    metavar="FILE",
    help="JSON lines; - is stdin.",
)
@click.option("--key", "key_field", metavar="FIELD", help="Use this field's text as record key.")
@click.option("--strict", is_flag=True, help="Send nothing if any line is bad.")
@click.option("--dry-run", is_flag=True, help="Check the lines and send nothing.")
@click.option("-y", "--yes", is_flag=True, help="Also into a topic that a network writes.")
@with_session
def command(
    session: Session,
    stream: str,
    file: str,
    key_field: str | None,
    *,
    strict: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Send JSON lines to STREAM as Avro, with the newest schema of its topic.

    STREAM is a stream of a deployed network, network.stream, or a topic. Bad lines are told with
    number, path and reason; the good ones are sent all the same, unless --strict. Exit code 65
    if any line was bad. Sending to a topic that a network writes needs a confirmation, or --yes.

    \b
    Examples:
      medusa produce sightings -f sightings.jsonl --key car
      echo '{"car":"a",…}' | medusa produce car-sightings
      medusa produce sightings -f sightings.jsonl --dry-run
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    count = _Count()
    with session.connect() as connections, _lines(file) as lines:
        topic = topic_of(stream, connections)
        encoding = line_encoding(topic, key_field, connections)
        if not (yes or dry_run):
            confirm_derived(topic, session, connections)
        encoded = _good_lines(encode_lines(lines, encoding), count, session)
        if strict:
            encoded = iter(list(encoded))
        if not dry_run and not (strict and count.bad):
            count.sent = send_lines(topic, encoded, connections)
        else:
            count.unsent = sum(1 for _ in encoded)
    would = f"{counted(count.unsent, 'record')} would be sent to {topic}"
    session.printer.show(
        {
            "topic": topic,
            "sent": count.sent,
            "good": count.sent + count.unsent,
            "bad_lines": count.bad,
            "bad": [{"line": b.line, "path": b.path, "message": b.message} for b in count.kept],
        },
        (would if dry_run else f"{counted(count.sent, 'record')} sent to {topic}")
        + (f"; bad lines: {count.bad}" if count.bad else ""),
    )
    if count.bad:
        raise click.exceptions.Exit(ExitCode.BAD_INPUT)


def _good_lines(
    encoded: Iterable[EncodedLine | BadLine], count: _Count, session: Session
) -> Iterator[EncodedLine]:
    """Good lines; bad lines are counted, and the first are printed."""
    for one in encoded:
        if isinstance(one, EncodedLine):
            yield one
            continue
        count.note(one)
        if count.bad <= _SHOWN_MAX:
            session.printer.note(str(one))


@contextmanager
def _lines(file: str) -> Iterator[Iterable[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(Path(file).open("rb"))
        except OSError as error:
            raise InputError(f"the file cannot be read: {error.strerror}", place=file) from error
        yield stream
