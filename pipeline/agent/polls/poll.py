"""What a poll is, the thread that it runs on, and what ends a node from within one."""

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from pipeline.agent.events import Event
from pipeline.errors import MedusaError, NewerFormatError

Tell = Callable[[Event], None]

_log = logging.getLogger(__name__)


class Poll(Protocol):
    """One look at the world."""

    def look(self) -> float:
        """Look, tell, and say how many seconds to pause."""


class Ending:
    """Why a node has to end by itself, if it has to.

    Args:
        stop: set when there is a reason.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._why: MedusaError | None = None

    def because(self, error: MedusaError) -> None:
        """End the node; the first reason counts."""
        if self._why is None:
            _log.error("the node ends: %s", error)
            self._why = error
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether the node ends, for whatever reason."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raise the reason, if there is one."""
        if self._why is not None:
            raise self._why


def start(poll: Poll, name: str, stop: threading.Event, ending: Ending) -> threading.Thread:
    """Run a poll on a thread of its own until `stop` is set.

    What a newer version of Medusa wrote ends the node: what it cannot read it must not pass over.
    """

    def loop() -> None:
        while not stop.is_set():
            try:
                pause_s = poll.look()
            except NewerFormatError as error:
                ending.because(error)
                return
            except MedusaError as error:
                _log.debug("%s: %s", name, error)
                pause_s = 1.0
            stop.wait(pause_s)

    thread = threading.Thread(target=loop, name=name, daemon=True)
    thread.start()
    return thread
