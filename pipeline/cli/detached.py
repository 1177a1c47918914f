"""Daemon start of `medusa up --detach`: `medusa up` in a new session, awaited until it is ready.

The daemon reports through a pipe with a JSON object per line: `step` for progress, `error` for a
failure, `ready` at the end. If the pipe ends without `ready`, the daemon has died; the error
contains the end of its log.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType
from typing import Self

from brokers.embedded.processes import read_tail
from brokers.embedded.progress import Progress, Step
from brokers.embedded.stack import STOPPING
from pipeline.cli import modules
from pipeline.cli.project import Project
from pipeline.clock import Clock, Deadline
from pipeline.errors import (
    EnvironmentProblem,
    InputError,
    MedusaError,
    RefusedError,
    RetryError,
    UnavailableError,
    UsageError,
)
from schemas.json_value import Encodable

_STARTS_WITHIN_S = 900.0
"""Includes fetching the jars into an empty cache."""
_ENDS_WITHIN_S = 60.0
_POLL_S = 0.5
_LOG_LINES = 15
_ERRORS: dict[str, type[MedusaError]] = {
    kind.code: kind
    for kind in (
        EnvironmentProblem,
        InputError,
        RefusedError,
        RetryError,
        UnavailableError,
        UsageError,
    )
}


class StartupReporter:
    """Writing end of the pipe, in the daemon that runs the stack.

    Args:
        descriptor: the pipe to the parent process; None: started without `--detach`.
        progress: shows progress as well.
    """

    def __init__(self, descriptor: int | None, progress: Progress) -> None:
        self._pipe = None if descriptor is None else os.fdopen(descriptor, "w", buffering=1)
        self._progress = progress

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, MedusaError):
            head = {"code": error.code, "message": error.message}
            self._write({"error": head | {"place": error.place, "hint": error.hint}})
        self._close()

    def step(self, step: Step) -> None:
        """Report progress."""
        self._progress(step)
        self._write({"step": asdict(step)})

    def ready(self) -> None:
        """Report that all servers answer; ends the reports."""
        self._write({"ready": True})
        self._close()

    def _write(self, message: Mapping[str, Encodable]) -> None:
        if self._pipe is not None:
            # The parent process may have ended; the stack runs on without it.
            with suppress(BrokenPipeError):
                self._pipe.write(json.dumps(message) + "\n")

    def _close(self) -> None:
        if self._pipe is not None:
            with suppress(BrokenPipeError):
                self._pipe.close()
            self._pipe = None


def start_detached(
    arguments: list[str], project: Project, progress: Progress, clock: Clock
) -> None:
    """Start `medusa up` with these arguments and return when it is ready.

    Raises:
        MedusaError: the error of the started process, which has ended.
    """
    log = project.logs / "up.log"
    read_end, write_end = os.pipe()
    try:
        process, began_at = _spawn([*arguments, f"--tell-fd={write_end}"], project, write_end)
    except OSError as error:
        os.close(read_end)
        raise EnvironmentProblem(
            f"the log cannot be written: {error.strerror}",
            place=str(log),
            hint="choose another data folder with --data FOLDER.",
        ) from error
    finally:
        os.close(write_end)
    deadline = Deadline.after(clock, _STARTS_WITHIN_S, "starting the stack")
    try:
        _await_ready(read_end, progress, deadline, lambda: read_tail(log, began_at))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            progress(STOPPING)
        _end(process)
        raise


def _spawn(
    arguments: list[str], project: Project, inherited: int
) -> tuple["subprocess.Popen[bytes]", int]:
    """The process, and the position in the log at which its output begins."""
    project.logs.mkdir(parents=True, exist_ok=True)
    log = project.logs / "up.log"
    with log.open("ab") as output:
        began_at = output.tell()
        process = subprocess.Popen(  # noqa: S603 - our own program
            medusa_command("up", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=(inherited,),
            cwd=project.folder,
        )
    return process, began_at


ARCHIVE_PROGRAM = (sys.executable, "-P", "-m", modules.CLASS_ARCHIVE)
"""Creates the class archive, in a separate process because it opens a Spark session."""


def medusa_command(*arguments: str) -> tuple[str, ...]:
    """Command line of this program; -P keeps the current folder out of the import path."""
    return (sys.executable, "-P", "-m", modules.MAIN, *arguments)


def _await_ready(
    descriptor: int, progress: Progress, deadline: Deadline, log: Callable[[], str]
) -> None:
    """Show progress until the daemon is ready; raise the error that it reports."""
    for line in _lines(descriptor, deadline):
        message = json.loads(line)
        if "ready" in message:
            return
        if "step" in message:
            progress(Step(**message["step"]))
        if "error" in message:
            failure = message["error"]
            kind = _ERRORS.get(failure["code"], EnvironmentProblem)
            raise kind(failure["message"], place=failure["place"], hint=failure["hint"])
    lines = "\n    ".join(log().strip().splitlines()[-_LOG_LINES:])
    raise EnvironmentProblem(f"the stack ended while it started; its last lines:\n    {lines}")


def _lines(descriptor: int, deadline: Deadline) -> Iterator[bytes]:
    with os.fdopen(descriptor, "rb", buffering=0) as pipe, selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        buffered = b""
        while True:
            deadline.check("its log is up.log in the folder for logs.")
            if not selector.select(_POLL_S):
                continue
            part = pipe.read(65_536)
            if not part:
                return
            *lines, buffered = (buffered + part).split(b"\n")
            yield from lines


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
