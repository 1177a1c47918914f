"""`medusa schema import`: import of an exported registry file."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from pipeline.cli.options import with_registry
from pipeline.cli.output import Printer
from pipeline.cli.session import Session
from pipeline.cli.slowly import SlowProgress
from pipeline.counting import counted
from pipeline.errors import InputError
from schemas.dump import loads
from schemas.json_value import JsonObject
from schemas.moving import Plan, bring_in, plan, still_importing


@click.command("import")
@click.argument("file", type=click.Path())
@click.option("--whole", is_flag=True, help="Put the whole registry into mode IMPORT meanwhile.")
@click.option("--modes", is_flag=True, help="Set the modes of the file, too.")
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@with_registry
def command(session: Session, file: str, *, whole: bool, modes: bool, dry_run: bool) -> None:
    """Register what `medusa schema export` wrote into FILE (- for stdin), ids and all.

    Nothing is done unless all of it fits: where an id or a version has another content, that is
    named (65). What is there already is left alone, so a second import changes nothing, and one
    that was cut off goes on. Subjects that change are in mode IMPORT meanwhile, so other clients
    cannot register there; their mode is always restored. Levels are set as in the file.

    \b
    Examples:
      medusa schema import registry.jsonl --dry-run --registry http://registry:8081
      medusa schema import registry.jsonl --registry http://registry:8081
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    dump = loads(_text(file), file)
    with session.connect() as connections:
        registry = connections.registry
        progress = SlowProgress(session.printer, session.clock)
        place = f"schema registry {registry.url}"
        steps = plan(registry.admin, dump, place, progress, modes=modes)
        if not dry_run:
            with _interrupted_once(session.printer):
                bring_in(registry.admin, steps, progress, whole=whole)
        importing = still_importing(registry.admin, (one.subject for one in dump.versions))
    data: JsonObject = {
        "file": file,
        "registry": registry.url,
        "dry_run": dry_run,
        "registered": [
            {"subject": one.subject, "version": one.version, "id": one.id} for one in steps.register
        ],
        "deleted": [{"subject": use.subject, "version": use.version} for use in steps.delete],
        "unchanged": steps.unchanged,
        "configs": [{"scope": scope, "config": config} for scope, config in steps.configs.items()],
        "modes": [{"scope": scope, "mode": mode.value} for scope, mode in steps.modes.items()],
    }
    data["importing"] = list(importing)
    session.printer.show(data, _summary(steps, dry_run=dry_run))
    if importing:
        session.printer.note(
            f"in mode IMPORT by themselves: {', '.join(importing)}. If an import that was killed "
            "left it there, `medusa schema mode SUBJECT --reset` resets it."
        )


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"the file cannot be read: {why}", place=file) from error


def _summary(steps: Plan, *, dry_run: bool) -> str:
    if not (steps.register or steps.delete or steps.configs or steps.modes):
        return f"nothing to do: {counted(steps.unchanged, 'version')} there already"
    before = "would register" if dry_run else "registered"
    versions = counted(len(steps.register), "version")
    subjects = counted(len(steps.subjects), "subject")
    lines = [f"{before} {versions} of {subjects}; {steps.unchanged} there already"]
    lines += [f"  {one.use} with id {one.id}" for one in steps.register if dry_run]
    if steps.delete:
        lines.append(f"  deleted as in the file: {', '.join(map(str, steps.delete))}")
    for scope, config in steps.configs.items():
        words = ", ".join(f"{key} {value}" for key, value in config.items())
        lines.append(f"  {scope or 'for all subjects'}: {words}")
    for scope, mode in steps.modes.items():
        lines.append(f"  {scope or 'for all subjects'}: mode {mode.value}")
    return "\n".join(lines)


@contextmanager
def _interrupted_once(printer: Printer) -> Iterator[None]:
    """Raise KeyboardInterrupt at the first signal; ignore further ones while modes are restored."""
    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        del number, frame
        if interrupted:
            printer.note("putting modes back; it takes a moment")
            return
        interrupted = True
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
