"""`medusa init`: writes a project that runs as it is."""

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from pipeline.cli.modules import PROJECTS
from pipeline.cli.options import with_session
from pipeline.cli.output import names
from pipeline.cli.project import PROJECT_FILE, TESTS_FOLDER
from pipeline.cli.session import Session
from pipeline.counting import counted
from pipeline.errors import EnvironmentProblem, RefusedError
from pipeline.examples.catalogue import EXAMPLES
from pipeline.examples.tolls import TOLLS


@click.command("init")
@click.argument("template", type=click.Choice(tuple(EXAMPLES)), default=TOLLS.name)
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
    which has a test as well. Nothing that exists is overwritten.

    \b
    Examples:
      medusa init tolls
      medusa init tolls --into my-project
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    source = resources.files(PROJECTS) / template
    files = template_files(source)
    taken = [name for name in sorted({*files, PROJECT_FILE}) if (into / name).exists()]
    if taken:
        raise RefusedError(
            f"this folder has a project already: {names(taken)}",
            place=str(into.resolve()),
            hint="use an empty folder, or --into FOLDER.",
        )
    for name, content in files.items():
        _write(into / name, content)
    where = "" if into == Path() else f"cd {into} && "
    tested = any(Path(name).parts[0] == TESTS_FOLDER for name in files)
    first, *then = ["medusa test"] * tested + ["medusa up --detach", "medusa deploy"]
    session.printer.show(
        {"template": template, "folder": str(into.resolve()), "files": list(files)},
        "\n".join(
            [
                f"Wrote {counted(len(files), 'file')}: {names(tuple(files), 12)}",
                "Next:",
                f"  {where}{first}",
                *(f"  {command}" for command in then),
                "  python producer.py --seconds 180",
                f"  medusa tail {EXAMPLES[template].topic}",
            ]
        ),
    )


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
