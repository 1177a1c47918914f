"""Poll of the engine that all lanes run in."""

from collections.abc import Callable
from typing import Final

from pipeline.agent.polls.poll import Ending
from pipeline.errors import MedusaError

PAUSE_S: Final = 0.5


class EnginePoll:
    """Checks the engine that all lanes run in; ends the node if it can run no lane.

    Args:
        trouble: returns the engine's error; None while it works.
        ending: of the node.
    """

    def __init__(self, trouble: Callable[[], MedusaError | None], ending: Ending) -> None:
        self._trouble = trouble
        self._ending = ending

    def read(self) -> float:
        """End the node if the engine has failed; an engine that ends after a stop is no failure."""
        trouble = self._trouble()
        if trouble is not None and not self._ending.stopped:
            self._ending.because(trouble)
        return PAUSE_S
