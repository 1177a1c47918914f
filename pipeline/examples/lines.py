"""What a cut of an example's input closes, and opens again: the feed, or the broker."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pipeline.clock import Clock, Deadline
from pipeline.errors import MedusaError

ANSWERS_WITHIN_S: Final = 60.0
_POLL_S: Final = 0.2


class Line(Protocol):
    """The way of the input, or a part of it."""

    def cut(self) -> None:
        """Let nothing through."""

    def heal(self) -> None:
        """Let everything through again; returns when servers answer. Idempotent.

        Raises:
            RetryError: a server does not answer in time.
        """


@dataclass(frozen=True, slots=True)
class HeldFeed:
    """The producer, which keeps records back while a file exists.

    Args:
        file: the file.
    """

    file: Path

    def cut(self) -> None:
        """Make the file."""
        self.file.touch()

    def heal(self) -> None:
        """Remove it."""
        self.file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class SuspendedBroker:
    """The only broker, whose process is suspended: connections stay open without answers.

    Args:
        pid: of its process.
        ask: raises while it does not answer.
        clock: of the time that it may take.
    """

    pid: int
    ask: Callable[[], object]
    clock: Clock

    def cut(self) -> None:
        """Suspend it."""
        os.kill(self.pid, signal.SIGSTOP)

    def heal(self) -> None:
        """Continue it; it takes a moment until it leads its partitions again."""
        self.go_on()
        deadline = Deadline.after(self.clock, ANSWERS_WITHIN_S, "answers of the broker")
        while not self._answers():
            deadline.check()
            self.clock.sleep(_POLL_S)

    def go_on(self) -> None:
        """Continue it without waiting; one that has ended stays so."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            self.ask()
        except MedusaError:
            return False
        return True
