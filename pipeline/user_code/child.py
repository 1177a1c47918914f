"""Main program of a child process that calls a user's function.

    python -P -m pipeline.user_code.child REQUESTS RESPONSES

Requests and responses are transferred through two file descriptors; standard output is redirected
to standard error, so that output of a function is never read as a response. The kernel enforces the
time limit of a call: a function that hangs ends with this process, even without a parent.
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

MESSAGE_MAX: Final = 400
"""Maximum length of an error message, in characters."""
_MODULE: Final = "medusa_function"
"""The module name of a file while it runs."""
_OOM_SCORE_MAX: Final = "1000"


class _Served:
    """The function of this process."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._where, _, self._name = content["name"].partition(":")
        self._source: str = content["source"]
        self._module = _MODULE if self._source else self._where
        self._wanted = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content["columns"])))
        self._seconds = content["timeout_ms"] / 1000
        self._load_seconds: float = content["load_s"]

    def load(self) -> None:
        """Run the file or module, and find the function in it."""
        with _limited(self._load_seconds):
            module = self._of_file() if self._source else importlib.import_module(self._where)
            self._function = _found(module, self._where, self._name)
        pa.array([0])  # the first one imports pandas: no call should include that time

    def _of_file(self) -> ModuleType:
        module = ModuleType(_MODULE)
        module.__file__ = self._where
        sys.modules[_MODULE] = module
        code = compile(self._source, self._where, "exec")
        exec(code, module.__dict__)  # noqa: S102 - running the user's code is the purpose
        return module

    def call(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The function's result, checked against the contract."""
        with _limited(self._seconds):
            returned = self._function(batch)
        return fitted(returned, batch.num_rows, self._wanted)

    def description(self, error: BaseException) -> str:
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
    """The place of a syntax error, which no frame of a traceback contains."""
    if not isinstance(error, SyntaxError):
        return []
    file, line = error.filename, error.lineno  # user code may set any value
    return [_place(file, line)] if isinstance(file, str) and isinstance(line, int) else []


def _place(file: str, line: int) -> str:
    return f"{_printable(PurePath(file).name)}:{line}"


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Run a block with a time limit, at which the kernel ends this process."""
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
        pass  # written in C: its parameters are unknown
    return function  # type: ignore[no-any-return]


def _one_line(error: BaseException) -> str:
    """The last line that Python prints of an error; bounded. Of one of Medusa's, its message."""
    try:
        ours = isinstance(error, ContractError)
        full = str(error) if ours else "".join(traceback.format_exception_only(error))
        text = (full.strip().splitlines() or [type(error).__name__])[-1]
    except BaseException:  # noqa: BLE001 - a user's exception that cannot even be formatted
        text = type(error).__name__
    shown = _printable(text.strip().removeprefix(f"{_MODULE}."))
    return shown if len(shown) <= MESSAGE_MAX else shown[: MESSAGE_MAX - 1] + "…"


def _printable(text: str) -> str:
    """A text without control characters that a terminal would interpret."""
    sound = text.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in sound)


def serve(requests: BinaryIO, responses: BinaryIO) -> None:
    """Answer requests until the pipe is closed."""
    served: _Served | None = None
    process = os.getpid()
    while len(head := requests.read(HEAD.size)) == HEAD.size:
        kind, length = HEAD.unpack(head)
        content = requests.read(length)
        try:
            if Kind(kind) is Kind.LOAD:
                served = _Served(json.loads(content))
                served.load()
                response: tuple[Kind, Any] = (Kind.READY, b"")
            else:
                assert served is not None, "a function is loaded first"  # noqa: S101
                response = (Kind.ROWS, encoded(served.call(decoded(content))))
        except BaseException as error:  # noqa: BLE001 - any user exception is a response
            text = served.description(error) if served else _one_line(error)
            response = (Kind.FAILED, text.encode())
        if os.getpid() != process:
            _end_copy()
        _flush()
        responses.write(HEAD.pack(response[0].value, len(response[1])))
        responses.write(response[1])
        responses.flush()


def _end_copy() -> None:
    """End a copy of this process that the user's code has forked: only the original may respond.

    The copy runs the user's code until that returns; two responses would break the protocol.
    """
    message = "a function called os.fork(), and the copy of its process came back: it is ended\n"
    with contextlib.suppress(OSError):
        os.write(2, message.encode())
    os._exit(0)


def _flush() -> None:
    """Flush the function's output to standard error before the response is sent."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Serve, then end at once, whatever threads the function has started."""
    requests, responses = (int(number) for number in arguments)
    for descriptor in (requests, responses):
        os.set_inheritable(descriptor, False)
    os.dup2(2, 1)
    # If memory runs out, this process has to be killed.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
        score.write(_OOM_SCORE_MAX)
    with os.fdopen(requests, "rb") as source, os.fdopen(responses, "wb") as sink:
        serve(source, sink)
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
