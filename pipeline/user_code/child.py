"""Calls a user's function, as the main program of a process of its own.

    python -P -m pipeline.user_code.child REQUESTS ANSWERS

Requests come and answers go through two file descriptors; standard output is joined to standard
error, so that nothing that a function prints is taken for an answer. The kernel keeps the time of a
call: a function that does not come back ends with this process, even if nobody waits for it.
"""

import base64
import contextlib
import importlib
import inspect
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import PurePath
from types import ModuleType
from typing import Any, BinaryIO, Final

import pyarrow as pa

from pipeline.user_code.contract import ContractError, fitted
from pipeline.user_code.messages import HEAD, Kind, decoded, encoded

SAID_MAX: Final = 400
"""How much is told of what was raised, in characters."""
_MODULE: Final = "medusa_function"
"""What a file is called while it runs."""
_FIRST_TO_GO: Final = "1000"


class _Served:
    """The function that this process is for."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._file = ""
        self._wanted = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content["columns"])))
        self._seconds = content["timeout_ms"] / 1000
        where, _, name = content["name"].partition(":")
        with _limited(content["load_s"]):
            module = self._of_file(where, content["source"]) if content["source"] else None
            self._function = _found(module or importlib.import_module(where), where, name)
        self._file = self._file or str(getattr(sys.modules.get(where), "__file__", ""))

    def _of_file(self, where: str, source: str) -> ModuleType:
        self._file = where
        module = ModuleType(_MODULE)
        module.__file__ = where
        sys.modules[_MODULE] = module
        exec(compile(source, where, "exec"), module.__dict__)  # noqa: S102 - what this is for
        return module

    def call(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The function's answer, as the contract has it."""
        with _limited(self._seconds):
            returned = self._function(batch)
        return fitted(returned, batch.num_rows, self._wanted)

    def told(self, error: BaseException) -> str:
        """The last line of a traceback, and the last line of the user's code in it."""
        last = _one_line(error)
        lines = [
            line
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code.co_filename == self._file
        ]
        return f"{last} ({PurePath(self._file).name}:{lines[-1]})" if lines else last


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Let a block take so long; then the kernel ends this process."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _found(module: ModuleType, where: str, name: str) -> Callable[[pa.RecordBatch], object]:
    function = getattr(module, name, None)
    if function is None:
        raise AttributeError(f"there is no {name} in {where}")
    if not callable(function):
        raise TypeError(f"{name} in {where} is a {type(function).__name__}, not a function")
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise TypeError(f"{name} has to take one argument, the record batch: {error}") from error
    except ValueError:
        pass  # written in C: nobody knows what it takes
    return function  # type: ignore[no-any-return]


def _one_line(error: BaseException) -> str:
    """What Python prints last of an error; bounded. Of one of ours, what it says."""
    try:
        ours = isinstance(error, ContractError)
        told = str(error) if ours else "".join(traceback.format_exception_only(error))
        text = (told.strip().splitlines() or [type(error).__name__])[-1]
    except BaseException:  # noqa: BLE001 - an exception of the user's that cannot even be shown
        text = type(error).__name__
    shown = text.encode("utf-8", "backslashreplace").decode().strip().removeprefix(f"{_MODULE}.")
    # Nothing that a terminal would carry out.
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)
    return shown if len(shown) <= SAID_MAX else shown[: SAID_MAX - 1] + "…"


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until nobody asks any more."""
    served: _Served | None = None
    while len(head := requests.read(HEAD.size)) == HEAD.size:
        kind, length = HEAD.unpack(head)
        content = requests.read(length)
        try:
            if Kind(kind) is Kind.LOAD:
                served = _Served(json.loads(content))
                answer: tuple[Kind, Any] = (Kind.READY, b"")
            else:
                assert served is not None, "a function is loaded first"  # noqa: S101
                answer = (Kind.ROWS, encoded(served.call(decoded(content))))
        except BaseException as error:  # noqa: BLE001 - whatever a user's code raises is an answer
            told = served.told(error) if served else _one_line(error)
            answer = (Kind.FAILED, told.encode())
        _flush()
        answers.write(HEAD.pack(answer[0].value, len(answer[1])))
        answers.write(answer[1])
        answers.flush()


def _flush() -> None:
    """What a function has printed goes where errors go, before it is known what became of it."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Serve, then end at once, whatever threads the function has started."""
    requests, answers = (int(number) for number in arguments)
    for descriptor in (requests, answers):
        os.set_inheritable(descriptor, False)
    os.dup2(2, 1)
    # If memory runs out, it is this process that has to go.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
        score.write(_FIRST_TO_GO)
    with os.fdopen(requests, "rb") as source, os.fdopen(answers, "wb") as sink:
        serve(source, sink)
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
