"""`medusa node start`: agent process with its own Spark session."""

import os
from pathlib import Path

import click

from pipeline.cli.node_lock import only_node
from pipeline.cli.node_log import log_to
from pipeline.cli.options import with_session
from pipeline.cli.project import from_assignments
from pipeline.cli.session import Session
from pipeline.cli.stop_signals import StopSignals
from pipeline.errors import EnvironmentProblem


@click.command("start")
@click.option("--name", help="The node's name; short for --set node=NAME.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="A label, by which placements select nodes; may be repeated. Instead of --set labels=….",
)
@click.option(
    "--capacity",
    type=click.IntRange(0, 999_999),
    help="How much it can do, compared with other nodes; 0: it is a spare. Short for --set "
    "capacity=N.",
)
@click.option(
    "--most-fragments",
    type=click.IntRange(1, 9_999),
    help="How many fragments may run on it at the same time; any number, if left out. Short for "
    "--set most_fragments=N.",
)
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the process id into FILE once the node takes up fragments; until then it is not "
    "there.",
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
    session: Session,
    name: str | None,
    labels: tuple[str, ...],
    capacity: int | None,
    ready_file: Path | None,
    servers_within: float,
    *,
    most_fragments: int | None,
) -> None:
    """Run a node until SIGTERM or Ctrl-C: it finds its fragments in the catalog and runs them.

    Its lanes end at the end of a batch; a second Ctrl-C does not wait for that. After Ctrl-C the
    exit code is 130, after SIGTERM 0. The log is node-NAME.log in the folder for logs; `medusa
    logs` shows it.

    \b
    Examples:
      medusa node start
      medusa node start --name node2 --set spark.master=local[4]
      medusa node start --name a --capacity 200 --label zone=a --label disk=ssd
      medusa node start --name b --most-fragments 8
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    flags = {
        "node": name,
        "labels": ",".join(labels),
        "capacity": capacity,
        "most_fragments": most_fragments,
    }
    assignments = tuple(f"{key}={value}" for key, value in flags.items() if value not in {None, ""})
    session.flags = {**session.flags, **from_assignments(assignments)}
    settings = session.settings
    log = session.project.logs / f"node-{settings.node}.log"
    stop = StopSignals()

    def ready() -> None:
        session.printer.note(f"node {settings.node} is up; its log is {log}")
        if ready_file is not None:
            _write_ready_file(ready_file)

    # The lock comes first, so that a second process does not write into the log of a running node.
    with (
        only_node(session.project.data, settings.node),
        log_to(log, verbose=session.verbose),
        stop,
        session.suggesting_up(),
    ):
        if ready_file is not None:
            _remove_ready_file(ready_file)
        # PySpark takes seconds to import; only this command needs it.
        from pipeline.node.run import run_node  # noqa: PLC0415

        run_node(
            settings,
            stop.event,
            ready,
            progress=session.printer.note,
            servers_within_s=servers_within,
        )
    if stop.by_hand:
        raise KeyboardInterrupt


def _remove_ready_file(path: Path) -> None:
    """Remove the ready file of an earlier process."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise EnvironmentProblem(
            f"the file cannot be removed: {error.strerror}", place=str(path)
        ) from error


def _write_ready_file(path: Path) -> None:
    """Write the process id atomically: a waiting process never reads a part of it."""
    try:
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_text(f"{os.getpid()}\n", encoding="ascii")
        partial.replace(path)
    except OSError as error:
        raise EnvironmentProblem(
            f"the file cannot be written: {error.strerror}", place=str(path)
        ) from error
