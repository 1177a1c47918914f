"""`medusa schema export`: export of registry contents into a file."""

from pathlib import Path

import click

from pipeline.cli.commands.schema.names import prefix_of_subjects
from pipeline.cli.new_file import exists, write_new
from pipeline.cli.options import with_registry
from pipeline.cli.session import Session
from pipeline.cli.slowly import SlowProgress
from pipeline.clock import rfc3339
from pipeline.counting import counted
from pipeline.errors import UsageError
from schemas.dump import Dump, lines
from schemas.moving import read

_ARGUMENTS_MAX = 2


@click.command("export")
@click.argument("arguments", nargs=-1, metavar="[PREFIX] FILE", type=click.Path())
@with_registry
def command(session: Session, arguments: tuple[str, ...]) -> None:
    """Write the subjects that begin with PREFIX, or all, into FILE (- for stdout) as JSON lines.

    Every version is in it with its id, what it refers to, and metadata, also those that are
    deleted; so are levels and modes. Without PREFIX, general settings are in it, too. FILE must not
    exist. `medusa schema import` brings it into another registry.

    \b
    Examples:
      medusa schema export registry.jsonl
      medusa schema export car- cars.jsonl --registry http://registry:8081
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if not 1 <= len(arguments) <= _ARGUMENTS_MAX:
        raise UsageError("write [PREFIX] FILE", hint="see `medusa schema export --help`.")
    typed, file = ("", *arguments)[-2:]
    prefix = prefix_of_subjects(typed)
    if file != "-" and Path(file).exists():
        raise exists(Path(file))
    with session.connect() as connections:
        registry = connections.registry
        progress = SlowProgress(session.printer, session.clock)
        versions, configs, modes = read(registry.admin, prefix, progress)
    made_at = rfc3339(session.clock.now_ms())
    dump = Dump(registry.url, prefix, made_at, versions, configs, modes)
    subjects = {one.subject for one in versions}
    words = f"{counted(len(subjects), 'subject')}, {counted(len(versions), 'version')}"
    others = sorted(scope for scope, one in configs.items() if scope and one.get("alias"))
    if others:
        session.printer.note(
            f"only the aliases of these subjects are written: {', '.join(others)}; if they have "
            "versions of their own, remove the alias and export again."
        )
    if file == "-":
        for line in lines(dump):
            session.printer.line(line)
        session.printer.note(f"wrote {words}")
        return
    write_new(Path(file), (f"{line}\n" for line in lines(dump)))
    session.printer.show(
        {
            "file": file,
            "registry": registry.url,
            "prefix": prefix,
            "made_at": made_at,
            "subjects": sorted(subjects),
            "versions": len(versions),
            "configs": len(configs),
            "modes": len(modes),
        },
        f"wrote {file}: {words}",
    )
