"""Main program of a child process that runs a Python file with the description of a network.

    python -P -m pipeline.builder.run FILE SECONDS DESCRIPTOR

The result is written to the file descriptor as one JSON text, in the form of `written_as_data`, or
as `{"problems": […]}`. Standard output is redirected to standard error: the caller's is for data.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Final

from pipeline.builder.network import NetworkBuilder
from pipeline.errors import DocumentError, Problem
from pipeline.nearest import nearest_first
from pipeline.network.written import Written, node_as_data
from schemas.json_value import JsonObject

VARIABLE: Final = "network"
"""The variable of a file that contains its network."""

_MODULE = "medusa_network"
"""The module name of a file while it runs; not `__main__`, so that it can also be a program."""
_GRACE_S = 2
_HOW = f'{VARIABLE} = NetworkBuilder("…") at the top of the file, from medusa_streams.builder'


class TooSlowError(BaseException):
    """The time limit has passed. No `Exception`, so that handlers of the file do not catch it."""


def describe(file: Path, within_s: float) -> Written:
    """Run a file, with a time limit; returns the document that it describes.

    Raises:
        DocumentError: it cannot be run, raises, or has no network.
    """
    shown = str(file)
    try:
        code = compile(file.read_bytes(), shown, "exec")
    except (SyntaxError, ValueError) as error:
        line = error.lineno or 0 if isinstance(error, SyntaxError) else 0
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        raise DocumentError((Problem(f"this is not Python: {what}", shown, line),)) from error
    module = ModuleType(_MODULE)
    module.__file__ = shown
    sys.modules[_MODULE] = module
    sys.path.insert(0, str(file.parent.absolute()))
    try:
        with _limited(within_s):
            exec(code, module.__dict__)  # noqa: S102 - running the user's file is the purpose
    except DocumentError:
        raise
    except BaseException as error:
        raise DocumentError((_failure(error, file),)) from error
    found = module.__dict__.get(VARIABLE)
    if not isinstance(found, NetworkBuilder):
        raise DocumentError((_no_network(module, shown),))
    return found.written()


def written_as_data(written: Written) -> JsonObject:
    """A description as data for the parent process; paths below the current folder are relative."""
    return {
        "tree": node_as_data(written.tree) if written.tree else None,
        "places": [[_short(place.file), place.line] for place in written.places],
    }


def problems_as_data(error: DocumentError) -> JsonObject:
    """Problems as data for the parent process."""
    return {
        "problems": [
            {
                "message": problem.message,
                "file": _short(problem.file),
                "line": problem.line,
                "box": problem.box,
                "choices": list(problem.choices),
                "hint": problem.hint,
            }
            for problem in error.problems
        ]
    }


def _failure(error: BaseException, file: Path) -> Problem:
    """An exception of the user's code: its last line, at the place where that code raised it."""
    where = list(_frames(error.__traceback__))
    folder = file.parent.absolute()
    own = [(name, line) for name, line in where if _is_own(name, folder)]
    name, line = own[-1] if own else (str(file), 0)
    if isinstance(error, TooSlowError):
        hint = "a file only describes a network; what takes long does not belong into it"
        return Problem(f"{file.name} does not end: {error}", name, line, hint=hint)
    if isinstance(error, SystemExit):
        return Problem(f"{file.name} ended the program: {error!r}", name, line)
    if isinstance(error, SyntaxError) and error.filename:
        return Problem(f"this is not Python: {error.msg}", error.filename, error.lineno or 0)
    last = traceback.format_exception_only(error)[-1].strip()
    hint = ""
    if isinstance(error, ModuleNotFoundError):
        hint = f"modules are looked for beside {file.name}, and where {sys.executable} has its own"
    return Problem(last, name, line, hint=hint)


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    for frame, line in traceback.walk_tb(trace):
        yield frame.f_code.co_filename, line


def _is_own(name: str, folder: Path) -> bool:
    """Whether a file is in the document's folder, and so is not a library's."""
    path = Path(name).absolute()
    return not name.startswith("<") and path.is_relative_to(folder) and "site-packages" not in name


def _no_network(module: ModuleType, file: str) -> Problem:
    if not hasattr(module, VARIABLE):
        others = [n for n, v in vars(module).items() if isinstance(v, NetworkBuilder)]
        message = f"there is no variable called {VARIABLE}"
        return Problem(message, file, choices=nearest_first(VARIABLE, others), hint=_HOW)
    kind = type(getattr(module, VARIABLE)).__name__
    return Problem(f"{VARIABLE} is of type {kind}, not NetworkBuilder", file, hint=_HOW)


def _short(name: str) -> str:
    path, here = Path(name), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else name


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Run the file with a time limit: first raise in it, then, if that does not help, kill it.

    The kernel enforces the limit, so the process ends even without a parent.
    """

    def over(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_GRACE_S)
        raise TooSlowError(f"it has run for {seconds:g} s")

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main(arguments: list[str]) -> None:
    """Respond and exit at once, whatever threads the file has started."""
    file, seconds, descriptor = Path(arguments[0]), float(arguments[1]), int(arguments[2])
    os.set_inheritable(descriptor, False)
    os.dup2(2, 1)
    try:
        data = written_as_data(describe(file, seconds))
    except DocumentError as error:
        data = problems_as_data(error)
    sys.stdout.flush()
    with os.fdopen(descriptor, "w", encoding="utf-8") as answer:
        json.dump(data, answer)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
