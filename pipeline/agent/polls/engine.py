"""Watches the engine that all lanes run in."""

from collections.abc import Callable
from typing import Final

from pipeline.agent.polls.poll import Ending
from pipeline.errors import MedusaError

PAUSE_S: Final = 0.5


class EnginePoll:
    """Watches the engine that all lanes run in; when it cannot run any, the node has to end.

    Args:
        trouble: tells why it cannot; None as long as it can.
        ending: of the node.
    """

    def __init__(self, trouble: Callable[[], MedusaError | None], ending: Ending) -> None:
        self._trouble = trouble
        self._ending = ending

    def look(self) -> float:
        """End the node if the engine is of no use; once the node was stopped, that is no loss."""
        trouble = self._trouble()
        if trouble is not None and not self._ending.stopped:
            self._ending.because(trouble)
        return PAUSE_S
