"""`medusa init`: new projects from an example, for a topic, or blank."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from pipeline import durations
from pipeline.cli.completing import streams
from pipeline.cli.modules import PROJECTS
from pipeline.cli.options import with_registry
from pipeline.cli.output import names
from pipeline.cli.project import DOCUMENT_FILE, PROJECT_FILE, TESTS_FOLDER
from pipeline.cli.session import Session
from pipeline.counting import counted
from pipeline.errors import EnvironmentProblem, RefusedError, UsageError
from pipeline.examples.catalogue import EXAMPLES
from pipeline.examples.tolls import TOLLS
from pipeline.ids import TopicName
from schemas.json_value import JsonObject

BLANK = "blank"
"""Template with one stream to fill in; not an example."""


@click.command("init")
@click.argument("template", required=False, type=click.Choice((*EXAMPLES, BLANK)))
@click.option(
    "--topic",
    shell_complete=streams,
    metavar="TOPIC",
    help="A network for this topic, instead of TEMPLATE: with its schema from the registry, and "
    "with times measured on its newest records.",
)
@click.option(
    "--event-time",
    metavar="EXPR",
    help="With --topic: the column with the event time, or an expression for it. Default: the "
    "most likely column.",
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Where to write; the default is the current folder.",
)
@with_registry
def command(
    session: Session, template: str | None, topic: str | None, event_time: str | None, into: Path
) -> None:
    """Write a new project into this folder: settings, a network, its schemas, a producer.

    TEMPLATE is one of `medusa example list`; the default is `tolls`, road tolls from car sightings,
    which has a test as well. `blank` has settings and a network with one stream to fill in. With
    --topic it is a network that counts the records of a topic per minute, ready to be deployed.
    Nothing that exists is overwritten.

    \b
    Examples:
      medusa init tolls
      medusa init blank
      medusa init --topic trades
      medusa init --topic trades --set kafka.bootstrap_servers=kafka:9092 --registry http://registry:8081
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if topic is not None:
        if template is not None:
            raise UsageError("there is a template, and --topic", hint="leave one of them out.")
        _for_topic(session, TopicName(topic), event_time, into)
        return
    if event_time is not None or session.elsewhere:
        raise UsageError(f"{'--registry' if session.elsewhere else '--event-time'} needs --topic")
    template = template or TOLLS.name
    files = template_files(resources.files(PROJECTS) / template)
    write_project(files, into)
    data: JsonObject = {"template": template, "folder": str(into.resolve()), "files": list(files)}
    _show(session, data, tuple(files), _next_steps(template, files, into))


def _for_topic(session: Session, topic: TopicName, event_time: str | None, into: Path) -> None:
    # The drivers take a third of a second to import; only --topic needs them.
    from pipeline.cli.topic_project import project_files  # noqa: PLC0415
    from pipeline.operations.proposals.topic import propose  # noqa: PLC0415

    refuse_existing((PROJECT_FILE, DOCUMENT_FILE), into)
    with session.connect() as connections, session.printer.waiting(f"looking into {topic}"):
        proposal = propose(
            topic, event_time, DOCUMENT_FILE, session.settings, connections, session.clock
        )
    files = project_files(proposal, session.settings)
    write_project(files, into)
    data: JsonObject = {
        "topic": topic,
        "folder": str(into.resolve()),
        "files": list(files),
        "records": proposal.found.records,
        "event_time": proposal.found.event_time.expression,
        "lateness": durations.format(proposal.lateness_ms),
        "idle_after": durations.format(proposal.idle_after_ms),
        "key": proposal.found.key,
    }
    where = "" if into == Path() else f"cd {into} && "
    steps = (
        f"check {into / DOCUMENT_FILE}: its comments contain what was measured",
        f"{where}medusa node start     in another terminal, if no node runs yet",
        f"{where}medusa deploy",
        f"{where}medusa tail {proposal.output}",
    )
    _show(session, data, tuple(files), steps)


def _show(session: Session, data: JsonObject, files: Sequence[str], steps: Iterable[str]) -> None:
    wrote = f"Wrote {counted(len(files), 'file')}: {names(tuple(files), 12)}"
    session.printer.show(data, "\n".join([wrote, "Next:", *(f"  {line}" for line in steps)]))


def _next_steps(template: str, files: Mapping[str, bytes], into: Path) -> Iterator[str]:
    """Instructions printed after a project was written."""
    where = "" if into == Path() else f"cd {into} && "
    if template == BLANK:
        yield f"fill in the stream of {into / DOCUMENT_FILE}"
        yield f"{where}medusa up --detach, if no servers run yet"
        yield "medusa plan"
        yield "medusa deploy"
        return
    tested = any(Path(name).parts[0] == TESTS_FOLDER for name in files)
    first, *then = ["medusa test"] * tested + ["medusa up --detach", "medusa deploy"]
    yield f"{where}{first}"
    yield from then
    yield "python producer.py --seconds 180"
    yield f"medusa tail {EXAMPLES[template].topic}"


def write_project(files: Mapping[str, bytes], into: Path) -> None:
    """Write the files of a project into a folder without a project.

    Raises:
        RefusedError: one of the files exists; nothing was written.
        EnvironmentProblem: the folder cannot be written.
    """
    refuse_existing({*files, PROJECT_FILE}, into)
    for name, content in files.items():
        _write(into / name, content)


def refuse_existing(files: Iterable[str], into: Path) -> None:
    """Reject a folder in which a file would be overwritten.

    Raises:
        RefusedError: one of the files exists.
    """
    existing = [name for name in sorted(files) if (into / name).exists()]
    if existing:
        raise RefusedError(
            f"this folder has a project already: {names(existing)}",
            place=str(into.resolve()),
            hint="use an empty folder, or --into FOLDER.",
        )


def template_files(source: Traversable, prefix: str = "") -> dict[str, bytes]:
    """Files of a template by relative path, sorted by name."""
    found: dict[str, bytes] = {}
    for entry in sorted(source.iterdir(), key=lambda e: e.name):
        if entry.name.startswith(("__", ".")):
            continue
        if entry.is_dir():
            found.update(template_files(entry, f"{prefix}{entry.name}/"))
        else:
            found[f"{prefix}{entry.name}"] = entry.read_bytes()
    return found


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise EnvironmentProblem(
            f"the file cannot be written: {error.strerror}",
            place=str(path),
            hint="choose a folder that you can write to.",
        ) from error
