"""Supervised child processes with a log and a guard process, started and stopped with timeouts."""

import os
import selectors
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from brokers.embedded import guard
from pipeline.errors import EnvironmentProblem

_GUARD_ANSWERS_WITHIN_S = 20.0
_GUARD_ENDS_WITHIN_S = 5.0
"""Timeout for the guard to end, after the grace of the child itself."""
_LOG_BYTES_MAX = 5_000_000
_TAIL_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """Specification of a child: command, working folder, environment, output files.

    Args:
        name: its name in messages.
        command: the program and its arguments.
        output: the file that both outputs are appended to; rotated at the start when it is large.
        folder: the working folder.
        logs: further files that the program itself writes, most informative first.
        environment: variables added to those of this process.
        grace_s: seconds between SIGTERM and SIGKILL.
    """

    name: str
    command: tuple[str, ...]
    output: Path
    folder: Path
    logs: tuple[Path, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    grace_s: float = 10.0


@dataclass(slots=True)
class Child:
    """A child with its guard. It ends at the latest when this process does."""

    spec: ChildSpec
    pid: int
    _guard: "subprocess.Popen[bytes]" = field(repr=False)
    _logs_began_at: tuple[tuple[Path, int], ...] = field(repr=False)

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs; 128 + n if signal n ended it."""
        return self._guard.poll()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self.exit_code is None

    def last_lines(self, count: int = 15) -> str:
        """The last lines of its logs since this start, for an error message."""
        for path, began_at in self._logs_began_at:
            text = read_tail(path, began_at)
            if text.strip():
                return "\n".join(text.strip().splitlines()[-count:])
        return ""

    def failure(self, what: str) -> EnvironmentProblem:
        """The error about the failure of this child, with its last log lines."""
        lines = "\n    ".join(self.last_lines().splitlines())
        logs = ", ".join(str(path) for path, _ in self._logs_began_at)
        return EnvironmentProblem(
            f"{what}; its last lines:\n    {lines}" if lines else f"{what}; it wrote nothing",
            place=self.spec.name,
            hint=f"more is in {logs}",
        )

    def begin_stop(self) -> None:
        """Begin to stop it, without waiting; `stop` waits."""
        if self._guard.stdin is not None and not self._guard.stdin.closed:
            self._guard.stdin.close()

    def stop(self) -> None:
        """Stop it: SIGTERM, after the grace SIGKILL. Does nothing when it has ended."""
        self.begin_stop()
        try:
            self._guard.wait(self.spec.grace_s + _GUARD_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait(_GUARD_ENDS_WITHIN_S)


def start_child(spec: ChildSpec, pass_fds: tuple[int, ...] = ()) -> Child:
    """Start a child with a guard.

    Args:
        spec: what to run.
        pass_fds: file descriptors that the guard inherits and keeps open (of a lock).

    Raises:
        EnvironmentProblem: it cannot be started or its log cannot be written.
    """
    try:
        spec.output.parent.mkdir(parents=True, exist_ok=True)
        _rotate(spec.output)
        began_at = tuple((path, _size(path)) for path in (*spec.logs, spec.output))
        with spec.output.open("ab") as output:
            process = _spawn_guard(spec, output, pass_fds)
    except OSError as error:
        raise EnvironmentProblem(f"{spec.name} cannot be started: {error}") from error
    child = Child(spec, 0, process, began_at)
    try:
        child.pid = _announced_pid(process)
    except (ValueError, TimeoutError) as error:
        child.stop()
        raise child.failure("it could not be started") from error
    return child


def read_tail(path: Path, began_at: int = 0) -> str:
    """The last few KB of a file from a position on; empty if the file does not exist."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            # A file that shrank was rotated: all of it is new.
            file.seek(max(began_at if began_at <= size else 0, size - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def _spawn_guard(
    spec: ChildSpec, output: IO[bytes], pass_fds: tuple[int, ...]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - our own guard
        [sys.executable, "-I", "-S", guard.__file__, str(spec.grace_s), *spec.command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
        cwd=spec.folder,
        env={**os.environ, **dict(spec.environment)},
        pass_fds=pass_fds,
        # Ctrl-C in the terminal must reach this process only, which stops the children in order.
        start_new_session=True,
    )


def _announced_pid(process: "subprocess.Popen[bytes]") -> int:
    if process.stdout is None:
        raise ValueError("the guard has no output")
    ends_at = time.monotonic() + _GUARD_ANSWERS_WITHIN_S
    line = b""
    with process.stdout as announced, selectors.DefaultSelector() as selector:
        selector.register(announced, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, ends_at - time.monotonic())):
                raise TimeoutError("the guard did not answer")
            piece = os.read(announced.fileno(), 64)
            if not piece:
                break
            line += piece
    return int(line)


def _rotate(log: Path) -> None:
    """Rotate a large log, keeping one older file, so that logs stay bounded over many starts."""
    if _size(log) > _LOG_BYTES_MAX:
        log.replace(log.with_name(f"{log.name}.1"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
