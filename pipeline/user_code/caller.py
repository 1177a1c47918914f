"""Caller of a function in a child process that may raise, hang, or end at any time."""

import base64
import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from pipeline import durations
from pipeline.user_code import child
from pipeline.user_code.arrow import arrow_schema
from pipeline.user_code.function import Function
from pipeline.user_code.messages import HEAD, Kind, decoded, encoded
from pipeline.user_code.variables import needed

START_S: Final = 60.0
"""Time limit for the start of Python on a busy machine."""
LOAD_S: Final = 30.0
"""Time limit for running a file or module before its function can be called."""
GRACE_S: Final = 10.0
"""Extra time beyond the function's timeout before its process is killed."""
_CHUNK: Final = 1 << 20


class CallError(Exception):
    """A call returned no rows; the message says why, in one line."""


class RaisedError(CallError):
    """The function raised, or broke its contract."""


class EndedError(CallError):
    """The function exceeded its timeout, or ended its process."""


class LoadError(Exception):
    """The function does not exist, or its file or module cannot be run."""


class StartError(Exception):
    """The child process did not start in time; the function was not run."""


class Caller:
    """One function and its process, which is started when needed.

    Not thread-safe.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._child: _Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def call(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The result of the function for a batch: see `contract.py`.

        Raises:
            CallError: there is no such result; the next call is made in a new process if necessary.
            LoadError: it cannot be called at all.
            StartError: its process did not start.
        """
        if self._child is None:
            self._child = self._started()
        try:
            return self._rows(self._child, batch)
        except EndedError:
            self.close()
            raise

    def load(self) -> None:
        """Check that the function exists.

        Raises:
            LoadError, StartError: see `call`.
        """
        if self._child is None:
            self._child = self._started()

    def close(self) -> None:
        """Kill the process, whatever it is doing."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _rows(self, child: "_Child", batch: pa.RecordBatch) -> pa.RecordBatch:
        within_s = self._function.timeout_ms / 1000 + GRACE_S
        try:
            kind, content = child.request(Kind.ROWS, encoded(batch), within_s)
            if kind is Kind.ROWS:
                return decoded(content)
        except (EOFError, OSError, ValueError) as error:
            raise EndedError(_how(child, self._function.timeout_ms)) from error
        raise RaisedError(content.decode("utf-8", "replace"))

    def _started(self) -> "_Child":
        function = self._function
        schema = arrow_schema(function.columns).serialize().to_pybytes()
        content = {
            "name": function.name,
            "source": function.source,
            "columns": base64.b64encode(schema).decode(),
            "timeout_ms": function.timeout_ms,
            "load_s": LOAD_S,
        }
        child = _Child()
        try:
            kind, answer = child.request(Kind.LOAD, json.dumps(content).encode(), START_S + LOAD_S)
        except TimeoutError as error:
            child.end()
            raise StartError(f"Python did not start within {START_S + LOAD_S:g} s") from error
        except (EOFError, OSError, ValueError) as error:
            raise LoadError(f"while it was loaded, {_how(child, round(LOAD_S * 1000))}") from error
        if kind is not Kind.READY:
            child.end()
            raise LoadError(answer.decode("utf-8", "replace"))
        return child


class _Child:
    """A process and the two pipes to it."""

    def __init__(self) -> None:
        requests, self._to = _pipe()
        self._from, answers = _pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - Medusa's own program
                [sys.executable, "-P", "-m", child.__name__, str(requests), str(answers)],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno() if _has_stderr() else None,
                env=needed(os.environ),
                pass_fds=(requests, answers),
                start_new_session=True,
            )
        finally:
            os.close(requests)
            os.close(answers)
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)

    def request(
        self, kind: Kind, content: pa.Buffer | bytes, within_s: float
    ) -> tuple[Kind, bytearray]:
        """Send a message; returns the response.

        Raises:
            TimeoutError: there was none in time.
            EOFError, OSError, ValueError: the process has ended, or sent something else.
        """
        ends_at = time.monotonic() + within_s
        self._write(memoryview(HEAD.pack(kind.value, len(content))), ends_at)
        self._write(memoryview(content), ends_at)
        answer, length = HEAD.unpack(self._read(HEAD.size, ends_at))
        return Kind(answer), self._read(length, ends_at)

    def end(self) -> int | None:
        """Kill it and its child processes; returns its exit code, None if it was running."""
        code = self._ended_within(GRACE_S if self._hung_up() else 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._to, self._from):
            with contextlib.suppress(OSError):
                os.close(pipe)
        return code

    def _hung_up(self) -> bool:
        """Whether the other end of the responses is closed, so that the process is about to end."""
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    def _ended_within(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _write(self, content: memoryview, ends_at: float) -> None:
        while content:
            self._await(self._to, select.POLLOUT, ends_at)
            with contextlib.suppress(BlockingIOError):
                content = content[os.write(self._to, content[:_CHUNK]) :]

    def _read(self, length: int, ends_at: float) -> bytearray:
        content = bytearray(length)
        rest = memoryview(content)
        while rest:
            self._await(self._from, select.POLLIN, ends_at)
            read = os.readv(self._from, [rest])
            if not read:
                raise EOFError
            rest = rest[read:]
        return content

    def _await(self, pipe: int, event: int, ends_at: float) -> None:
        poll = select.poll()
        poll.register(pipe, event)
        if not poll.poll(max(0.0, ends_at - time.monotonic()) * 1000):
            raise TimeoutError


def _pipe() -> tuple[int, int]:
    """A pipe with room for a whole batch, if allowed, so that neither side blocks on the other."""
    ends = os.pipe()
    with contextlib.suppress(OSError):
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, _CHUNK)
    return ends


def _how(child: _Child, within_ms: int) -> str:
    """How a process ended; one that still runs is killed now."""
    code = child.end()
    if code is None or code == -signal.SIGALRM:
        return f"it did not return within {durations.format(within_ms)}"
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"it ended its process with exit code {code}"


def _has_stderr() -> bool:
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True
