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
        self._where, _, self._name = content["name"].partition(":")
        self._source: str = content["source"]
        self._module = _MODULE if self._source else self._where
        self._wanted = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content["columns"])))
        self._seconds = content["timeout_ms"] / 1000
        self._load_seconds: float = content["load_s"]

    def load(self) -> None:
        """Run the file or module, and find the function in it."""
        pa.array([0])  # the first one imports pandas: no call is to take that time
        with _limited(self._load_seconds):
            module = self._of_file() if self._source else importlib.import_module(self._where)
            self._function = _found(module, self._where, self._name)

    def _of_file(self) -> ModuleType:
        module = ModuleType(_MODULE)
        module.__file__ = self._where
        sys.modules[_MODULE] = module
        code = compile(self._source, self._where, "exec")
        exec(code, module.__dict__)  # noqa: S102 - what this is for
        return module

    def call(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The function's answer, as the contract has it."""
        with _limited(self._seconds):
            returned = self._function(batch)
        return fitted(returned, batch.num_rows, self._wanted)

    def told(self, error: BaseException) -> str:
        """The last line of a traceback, and the last line of the user's code in it."""
        last, places = _one_line(error), [*_unparsed(error), *self._places(error)[-1:]]
        return f"{last} ({', '.join(places)})" if places else last

    def _places(self, error: BaseException) -> list[str]:
        """The lines of the function's file that a traceback goes through, the innermost last."""
        return [
            _place(frame.f_code.co_filename, line)
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_globals.get("__name__") == self._module
            and frame.f_globals.get("__file__") == frame.f_code.co_filename
        ]


def _unparsed(error: BaseException) -> list[str]:
    """Where a text stands that is no Python: no frame of a traceback tells."""
    if not isinstance(error, SyntaxError):
        return []
    file, line = error.filename, error.lineno  # whoever raises it may have said anything
    return [_place(file, line)] if isinstance(file, str) and isinstance(line, int) else []


def _place(file: str, line: int) -> str:
    return f"{_printable(PurePath(file).name)}:{line}"


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
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{name} in {where} is an async function: it has to be a plain one, def")
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
    shown = _printable(text.strip().removeprefix(f"{_MODULE}."))
    return shown if len(shown) <= SAID_MAX else shown[: SAID_MAX - 1] + "…"


def _printable(text: str) -> str:
    """A text with nothing in it that a terminal would carry out."""
    sound = text.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in sound)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until nobody asks any more."""
    served: _Served | None = None
    process = os.getpid()
    while len(head := requests.read(HEAD.size)) == HEAD.size:
        kind, length = HEAD.unpack(head)
        content = requests.read(length)
        try:
            if Kind(kind) is Kind.LOAD:
                served = _Served(json.loads(content))
                served.load()
                answer: tuple[Kind, Any] = (Kind.READY, b"")
            else:
                assert served is not None, "a function is loaded first"  # noqa: S101
                answer = (Kind.ROWS, encoded(served.call(decoded(content))))
        except BaseException as error:  # noqa: BLE001 - whatever a user's code raises is an answer
            told = served.told(error) if served else _one_line(error)
            answer = (Kind.FAILED, told.encode())
        if os.getpid() != process:
            _end_copy()
        _flush()
        answers.write(HEAD.pack(answer[0].value, len(answer[1])))
        answers.write(answer[1])
        answers.flush()


def _end_copy() -> None:
    """End a copy that the user's code has made of this process: it is not the one that is asked.

    What the code does in a copy is its own business until it returns; two that answer are none.
    """
    message = "a function called os.fork(), and the copy of its process came back: it is ended\n"
    with contextlib.suppress(OSError):
        os.write(2, message.encode())
    os._exit(0)


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
