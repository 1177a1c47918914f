"""`medusa up --detach`: starts `medusa up` in a session of its own and waits until it is ready.

The two talk through a pipe: a JSON object a line, `step` for progress, `error` for what went wrong,
`ready` at the end. If the pipe ends before that, the process has died; its log says why.
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
"""With a cold cache the jars are fetched first."""
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


class Teller:
    """The side of the process that runs the stack.

    Args:
        descriptor: the pipe to whoever started it; None: a person did.
        shown: shows progress as well.
    """

    def __init__(self, descriptor: int | None, shown: Progress) -> None:
        self._pipe = None if descriptor is None else os.fdopen(descriptor, "w", buffering=1)
        self._shown = shown

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, MedusaError):
            told = {"code": error.code, "message": error.message}
            self._tell({"error": told | {"place": error.place, "hint": error.hint}})
        self._close()

    def step(self, step: Step) -> None:
        """Tell how far it is."""
        self._shown(step)
        self._tell({"step": asdict(step)})

    def ready(self) -> None:
        """Tell that everything answers; nothing is told after that."""
        self._tell({"ready": True})
        self._close()

    def _tell(self, message: Mapping[str, Encodable]) -> None:
        if self._pipe is not None:
            # Whoever started us may have gone; the stack runs on without.
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
        MedusaError: what the started process failed with; it has ended then.
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
    """The process, and where its part of the log begins."""
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
"""Makes the archive of classes; a process of its own, since it opens a Spark session."""


def medusa_command(*arguments: str) -> tuple[str, ...]:
    """This program with other arguments; -P keeps the current folder out of the import path."""
    return (sys.executable, "-P", "-m", modules.MAIN, *arguments)


def _await_ready(
    descriptor: int, progress: Progress, deadline: Deadline, log: Callable[[], str]
) -> None:
    """Show progress until it is ready; raise what it failed with."""
    for line in _lines(descriptor, deadline):
        message = json.loads(line)
        if "ready" in message:
            return
        if "step" in message:
            progress(Step(**message["step"]))
        if "error" in message:
            told = message["error"]
            kind = _ERRORS.get(told["code"], EnvironmentProblem)
            raise kind(told["message"], place=told["place"], hint=told["hint"])
    lines = "\n    ".join(log().strip().splitlines()[-_LOG_LINES:])
    raise EnvironmentProblem(f"the stack ended while it started; its last lines:\n    {lines}")


def _lines(descriptor: int, deadline: Deadline) -> Iterator[bytes]:
    with os.fdopen(descriptor, "rb", buffering=0) as pipe, selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        held = b""
        while True:
            deadline.check("its log is up.log in the folder for logs.")
            if not selector.select(_POLL_S):
                continue
            part = pipe.read(65_536)
            if not part:
                return
            *whole, held = (held + part).split(b"\n")
            yield from whole


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
