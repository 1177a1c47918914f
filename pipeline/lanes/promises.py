"""Boundaries of a lane's derived inputs, passed from its agent to the lane."""

from collections.abc import Mapping

from pipeline.ids import Millis, StreamName


class Promises:
    """Boundaries by stream: set by the agent, read by the lane. Thread-safe."""

    def __init__(self) -> None:
        self._known: Mapping[StreamName, Millis] = {}

    def note(self, promised: Mapping[StreamName, Millis]) -> None:
        """Replace the boundaries by those that finished batches cover."""
        self._known = dict(promised)

    def of(self, stream: StreamName) -> Millis | None:
        """The boundary of a stream; None: there is none."""
        return self._known.get(stream)
