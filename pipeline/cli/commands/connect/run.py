"""`medusa connect run`: one connector, until it is stopped."""

from pathlib import Path

import click

from connectors.kinds import kinds
from connectors.running.loop import Total, run
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.stop_signals import StopSignals
from pipeline.counting import counted
from pipeline.errors import MedusaError
from pipeline.operations.connectors import describe, runner_of

_NOTE_EVERY_S = 5.0


class _Notes:
    """Progress at most every few seconds, and every failure."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._noted_s = session.clock.monotonic_s()

    def __call__(self, total: Total, error: MedusaError | None) -> None:
        """Print a note on stderr."""
        if error is not None:
            self._session.printer.note(f"{error.place}: {error.message}; it is tried again")
            return
        now_s = self._session.clock.monotonic_s()
        if now_s - self._noted_s >= _NOTE_EVERY_S:
            self._noted_s = now_s
            self._session.printer.note(f"{_words(total)} so far")


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--until-end", is_flag=True, help="End when there is nothing more.")
@with_session
def command(session: Session, file: Path, *, until_end: bool) -> None:
    """Run the connector of FILE until Ctrl-C, or, with --until-end, until nothing more comes.

    It goes on where the last run ended, however that was. A run of the same connector that begins
    later ends this one.

    \b
    Examples:
      medusa connect run incoming.yaml
      medusa connect run results.yaml --until-end
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    described = describe(file, kinds())
    with session.connect() as connections, StopSignals() as stop:
        runner = runner_of(described, connections, session.clock)
        total = run(runner, session.clock, stop.event.is_set, _Notes(session), until_end=until_end)
    session.printer.show(
        {
            "connector": described.document.name,
            "records": total.records,
            "refused": total.refused,
        },
        _words(total),
    )


def _words(total: Total) -> str:
    text = counted(total.records, "record")
    return f"{text}, {counted(total.refused, 'dead letter')}" if total.refused else text
