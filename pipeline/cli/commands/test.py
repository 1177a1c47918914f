"""`medusa test`: test runner for networks, in memory."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.options import document_option, with_session
from pipeline.cli.progress import StepPrinter
from pipeline.cli.project import TESTS_FOLDER, relative_to_cwd
from pipeline.cli.session import Session
from pipeline.counting import counted
from pipeline.errors import ExitCode, MedusaError
from schemas.json_value import JsonObject

if TYPE_CHECKING:
    from pipeline.testing.lane import StartQuery
    from pipeline.testing.load import Loaded
    from pipeline.testing.run import Failure


@click.command("test")
@click.argument("tests", nargs=-1, type=click.Path(path_type=Path))
@document_option
@with_session
def command(session: Session, tests: tuple[Path, ...], file: str | None) -> None:
    """Run tests of a network: records in, expected records out, time by command. No servers.

    TESTS are files or folders; without any, all of tests/ beside the network run. The exit code
    is 0 when all pass, 1 when one fails.

    \b
    Examples:
      medusa test
      medusa test tests/tolls.yaml -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    # PySpark takes seconds to import; errors in the tests are reported before.
    from pipeline.testing.load import Loader, find_tests  # noqa: PLC0415

    loaded = Loader(lambda: session.project.document(file)).all(
        find_tests(tests, relative_to_cwd(session.project.folder / TESTS_FOLDER))
    )
    from pipeline.testing.session import open_tests  # noqa: PLC0415

    with (
        session.printer.waiting(f"running {counted(len(loaded), 'test')}"),
        open_tests(session.settings, StepPrinter(session.printer)) as queries,
    ):
        results = [_run_test(one, queries, session) for one in loaded]
    failed = sum(1 for one in results if not one["passed"])
    passed = counted(len(results) - failed, "test")
    session.printer.show(
        {
            "passed": len(results) - failed,
            "failed": failed,
            "tests": results,
        },
        f"{passed} passed, {failed:,} failed",
    )
    if failed:
        raise click.exceptions.Exit(ExitCode.FAILED)


def _run_test(loaded: "Loaded", queries: "StartQuery", session: Session) -> JsonObject:
    """Run one test and print its result; return it as data."""
    from pipeline.testing.run import run_steps  # noqa: PLC0415

    started_s = session.clock.monotonic_s()
    error = ""
    failures: tuple[Failure, ...] = ()
    try:
        failures = run_steps(loaded.test, queries, loaded.file)
    except MedusaError as raised:
        error = str(raised)
    seconds = round(session.clock.monotonic_s() - started_s, 1)
    passed = not (failures or error)
    session.printer.note(f"{'ok    ' if passed else 'FAILED'}  {loaded.name}  {seconds}s")
    for text in (*failures, *((error,) if error else ())):
        session.printer.note("\n".join(f"  {line}" for line in str(text).splitlines()))
    return {
        "name": loaded.name,
        "file": loaded.file,
        "passed": passed,
        "seconds": seconds,
        "failures": [failure.as_data() for failure in failures],
        "error": error,
    }
