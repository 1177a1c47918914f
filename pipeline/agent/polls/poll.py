"""Polls: their interface, their thread, and how a poll ends the node."""

import logging
import threading
from collections.abc import Callable
from typing import Final, Protocol

from pipeline.agent.events import Event
from pipeline.errors import MedusaError, NewerFormatError

AGAIN_S: Final = 1.0
"""The pause after an error."""
EmitEvent = Callable[[Event], None]

_log = logging.getLogger(__name__)


class Poll(Protocol):
    """Reads one source of events."""

    def read(self) -> float:
        """Read, send events, and return the pause in seconds."""


class Ending:
    """The first fatal error of a node; setting it stops the node.

    Args:
        stop: set together with the error.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._why: MedusaError | None = None

    def because(self, error: MedusaError) -> None:
        """Stop the node; only the first error is kept."""
        if self._why is None:
            _log.error("the node ends: %s", error)
            self._why = error
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether the node is stopping, for any reason."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raise the error, if there is one."""
        if self._why is not None:
            raise self._why


def start(poll: Poll, name: str, stop: threading.Event, ending: Ending) -> threading.Thread:
    """Run a poll on a thread of its own until `stop` is set.

    A record of a newer version of Medusa stops the node: a record that cannot be read must not
    be skipped.
    """

    def loop() -> None:
        while not stop.is_set():
            try:
                pause_s = poll.read()
            except NewerFormatError as error:
                ending.because(error)
                return
            except MedusaError as error:
                _log.debug("%s: %s", name, error)
                pause_s = AGAIN_S
            except Exception:  # noqa: BLE001 - a node without one of its polls would be misled
                _log.exception("%s failed", name)
                pause_s = AGAIN_S
            stop.wait(pause_s)

    thread = threading.Thread(target=loop, name=name, daemon=True)
    thread.start()
    return thread
