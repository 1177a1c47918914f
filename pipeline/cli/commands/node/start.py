"""`medusa node start`: an agent process with its own Spark session."""

import os
import signal
import threading
from pathlib import Path
from types import FrameType

import click

from pipeline.cli.node_log import log_to
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.errors import EnvironmentProblem


@click.command("start")
@click.option("--name", help="The node's name; short for --set node=NAME.")
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the process id into FILE once the node takes up fragments.",
)
@click.option(
    "--servers-within",
    type=click.FloatRange(0, 3600),
    default=0.0,
    metavar="SECONDS",
    help="Let Kafka, ZooKeeper and the registry still be starting for so long.",
)
@with_session
def command(
    session: Session, name: str | None, ready_file: Path | None, servers_within: float
) -> None:
    """Run a node until SIGTERM or Ctrl-C: it finds its fragments in the catalog and runs them.

    The log is node-NAME.log in the folder for logs; `medusa logs` shows it.

    \b
    Examples:
      medusa node start
      medusa node start --name node2 --set spark.master=local[4]
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    # PySpark takes seconds to import; only this command needs it.
    from pipeline.brain.node import run_node  # noqa: PLC0415

    if name:
        session.flags = {**session.flags, "node": name}
    settings = session.settings
    log = session.project.logs / f"node-{settings.node}.log"
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)

    def ready() -> None:
        session.printer.note(f"node {settings.node} is up; its log is {log}")
        if ready_file is not None:
            _write(ready_file)

    with log_to(log, verbose=session.verbose):
        run_node(settings, stop, ready, servers_within_s=servers_within)


def _write(path: Path) -> None:
    """Write our process id, so that whoever waits never reads half of it."""
    try:
        half = path.with_name(f"{path.name}.{os.getpid()}")
        half.write_text(f"{os.getpid()}\n", encoding="ascii")
        half.replace(path)
    except OSError as error:
        raise EnvironmentProblem(
            f"the file cannot be written: {error.strerror}", place=str(path)
        ) from error
