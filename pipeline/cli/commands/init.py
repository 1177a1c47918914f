"""`medusa init`: writes a project that runs as it is, or one to fill in."""

from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from pipeline.cli.options import with_session
from pipeline.cli.output import names
from pipeline.cli.project import DOCUMENT_FILE, PROJECT_FILE, TESTS_FOLDER
from pipeline.cli.session import Session
from pipeline.counting import counted
from pipeline.errors import EnvironmentProblem, RefusedError
from pipeline.examples.catalogue import EXAMPLES
from pipeline.examples.tolls import TOLLS

BLANK = "blank"
"""The project that is no example."""


@click.command("init")
@click.argument("template", type=click.Choice((*EXAMPLES, BLANK)), default=TOLLS.name)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Where to write; the default is the current folder.",
)
@with_session
def command(session: Session, template: str, into: Path) -> None:
    """Write a new project into this folder: settings, a network, its schemas, a producer.

    TEMPLATE is one of `medusa example list`; the default is `tolls`, road tolls from car sightings,
    which has a test as well. `blank` has settings and a network with one stream to fill in.
    Nothing that exists is overwritten.

    \b
    Examples:
      medusa init tolls
      medusa init blank
      medusa init tolls --into my-project
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    files = template_files(resources.files("pipeline.projects") / template)
    write_project(files, into)
    session.printer.show(
        {"template": template, "folder": str(into.resolve()), "files": list(files)},
        "\n".join(
            [
                f"Wrote {counted(len(files), 'file')}: {names(tuple(files), 12)}",
                "Next:",
                *(f"  {line}" for line in _next(template, files, into)),
            ]
        ),
    )


def _next(template: str, files: Mapping[str, bytes], into: Path) -> Iterator[str]:
    """What to do with a project that was just written."""
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
    """Write the files of a project into a folder that has none.

    Raises:
        RefusedError: a file is there already; nothing was written.
        EnvironmentProblem: the folder cannot be written.
    """
    taken = [name for name in sorted({*files, PROJECT_FILE}) if (into / name).exists()]
    if taken:
        raise RefusedError(
            f"this folder has a project already: {names(taken)}",
            place=str(into.resolve()),
            hint="use an empty folder, or --into FOLDER.",
        )
    for name, content in files.items():
        _write(into / name, content)


def template_files(source: Traversable, prefix: str = "") -> dict[str, bytes]:
    """The files of a template by relative path, in order of their names."""
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
