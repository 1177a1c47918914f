"""Entry point of `medusa`: the table of verbs, and the exit code of every call."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

import click

from pipeline.cli.common import common_options
from pipeline.cli.failures import error_format, report_bug, report_error, report_usage_error
from pipeline.cli.lazy import Entry, LazyGroup
from pipeline.cli.session import Opener
from pipeline.errors import ExitCode, MedusaError

_HERE = f"{__package__}.commands"
_BEGIN, _NETWORK, _SEE, _DATA, _FEDERATION, _REST = (
    "Begin",
    "Networks",
    "Monitoring",
    "Schemas and records",
    "Federation",
    "Nodes and settings",
)

COMMANDS: dict[str, Entry] = {
    "init": Entry(f"{_HERE}.init", "Write a new project into this folder.", _BEGIN),
    "up": Entry(f"{_HERE}.up", "Start Kafka, ZooKeeper, a registry and a node here.", _BEGIN),
    "down": Entry(f"{_HERE}.down", "Stop what `up --detach` started.", _BEGIN),
    "demo": Entry(f"{_HERE}.demo", "Run the toll network on generated traffic, checked.", _BEGIN),
    "example": Entry(f"{_HERE}.groups", "Run an example, checked.", _BEGIN, "example"),
    "show": Entry(f"{_HERE}.show", "Draw a network document: text, DOT, Mermaid.", _NETWORK),
    "explain": Entry(
        f"{_HERE}.explain", "Show how a network would run: fragments, topics, state.", _NETWORK
    ),
    "test": Entry(f"{_HERE}.test", "Run tests of a network, without servers.", _NETWORK),
    "plan": Entry(f"{_HERE}.plan", "Show what a deploy would change.", _NETWORK),
    "deploy": Entry(f"{_HERE}.deploy", "Make a network run as its document says.", _NETWORK),
    "history": Entry(
        f"{_HERE}.history", "List the versions of a network, or the nodes of a fragment.", _NETWORK
    ),
    "get": Entry(f"{_HERE}.get", "Print the document of a deployed network.", _NETWORK),
    "diff": Entry(f"{_HERE}.diff", "Show the differences between two versions.", _NETWORK),
    "rollback": Entry(f"{_HERE}.rollback", "Deploy an earlier version again.", _NETWORK),
    "pause": Entry(f"{_HERE}.pause", "Pause a network or a fragment of it.", _NETWORK),
    "resume": Entry(f"{_HERE}.resume", "Resume a paused network or fragment.", _NETWORK),
    "undeploy": Entry(f"{_HERE}.undeploy", "Stop a network; topics and progress stay.", _NETWORK),
    "destroy": Entry(f"{_HERE}.destroy", "Remove a network and the topics it made.", _NETWORK),
    "status": Entry(f"{_HERE}.status", "Show fragments: state, records, lag, errors.", _SEE),
    "logs": Entry(f"{_HERE}.logs", "Show what nodes logged about a fragment.", _SEE),
    "events": Entry(f"{_HERE}.events", "Show who did what, and why: the event log.", _SEE),
    "tail": Entry(f"{_HERE}.tail", "Print the records of a stream, decoded.", _SEE),
    "produce": Entry(f"{_HERE}.produce", "Send JSON lines to a stream as Avro.", _DATA),
    "connect": Entry(
        f"{_HERE}.groups", "Read files into a topic, or write results into files.", _DATA, "connect"
    ),
    "generate": Entry(f"{_HERE}.generate", "Make up traffic, for a stream or as JSON.", _DATA),
    "schema": Entry(
        f"{_HERE}.groups", "Avro schemas: register, compare, evolve, move.", _DATA, "schema"
    ),
    "dlq": Entry(f"{_HERE}.groups", "Show, redrive and purge dead letters.", _DATA, "dlq"),
    "replay": Entry(f"{_HERE}.replay", "Compute results again, into a new topic.", _DATA),
    "offsets": Entry(
        f"{_HERE}.groups", "Show and export how far fragments have read.", _DATA, "offsets"
    ),
    "participant": Entry(f"{_HERE}.groups", "Keys of participants.", _FEDERATION, "participant"),
    "contract": Entry(
        f"{_HERE}.groups", "Contracts with other participants.", _FEDERATION, "contract"
    ),
    "ledger": Entry(f"{_HERE}.groups", "What is owed for contracts.", _FEDERATION, "ledger"),
    "catalog": Entry(
        f"{_HERE}.groups", "Back the catalog up, and bring it back.", _REST, "catalog"
    ),
    "move": Entry(f"{_HERE}.move", "Move a running fragment to another node.", _REST),
    "transfers": Entry(f"{_HERE}.transfers", "Show the moves that are not done.", _REST),
    "node": Entry(f"{_HERE}.groups", "Start, list and drain nodes.", _REST, "node"),
    "registry": Entry(f"{_HERE}.groups", "Serve the schema registry.", _REST, "registry"),
    "doctor": Entry(f"{_HERE}.doctor", "Check connections, versions, rights and topics.", _REST),
    "config": Entry(
        f"{_HERE}.groups", "Show the settings and where they come from.", _REST, "config"
    ),
}

_EPILOG = """\b
A first run, in an empty folder:
  medusa init tolls && medusa up --detach && medusa deploy
  python producer.py --seconds 30
  medusa tail toll-notifications
\b
Completion by Tab, of names too: one line in ~/.bashrc, or in ~/.zshrc with zsh_source:
  eval "$(_MEDUSA_COMPLETE=bash_source medusa)"
and in ~/.config/fish/completions/medusa.fish:
  _MEDUSA_COMPLETE=fish_source medusa | source
\b
Exit codes: 0 done, 1 failed, 2 changes pending (plan --detailed-exitcode), 3 a fragment has failed
(status, deploy), 64 usage, 65 bad input, 69 a server or something on this machine is missing,
75 try again, 130 interrupted.
"""


def installed_version() -> str:
    """The version of the installed distribution."""
    try:
        return version("medusa-streams")
    except PackageNotFoundError:
        return "0+source"


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(installed_version(), "-V", "--version", message="medusa %(version)s")
@common_options
def cli(**_options: object) -> None:
    """Stream processing on Kafka, Spark and ZooKeeper, with exact results.

    The options below may be given here or behind a verb.
    """


def run(arguments: Sequence[str], opener: Opener | None = None) -> int:
    """Run one command; returns the exit code and raises nothing.

    Args:
        arguments: those after `medusa`.
        opener: opens the connections; None: to the real servers.
    """
    requested = error_format(arguments)
    try:
        result = cli.main(
            args=list(arguments), prog_name="medusa", standalone_mode=False, obj=opener
        )
        sys.stdout.flush()
    except MedusaError as error:
        return report_error(error, requested)
    except click.ClickException as error:
        return report_usage_error(error, requested)
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("interrupted\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return _exit_on_closed_pipe()
    except Exception as error:  # noqa: BLE001 - the top level: users get no bare trace
        return report_bug(error, requested)
    return result if isinstance(result, int) else ExitCode.DONE


def _exit_on_closed_pipe() -> int:
    """The exit code when the reader of stdout (`| head`) has ended: success, without an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.DONE


def main() -> NoReturn:
    """The console script `medusa`."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
