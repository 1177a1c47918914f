"""What the writers of a lane's derived inputs have promised, as its agent has heard."""

from collections.abc import Mapping

from pipeline.ids import Millis, StreamName


class Promises:
    """Noted by the agent, looked up by the lane; safe from any thread."""

    def __init__(self) -> None:
        self._known: Mapping[StreamName, Millis] = {}

    def note(self, promised: Mapping[StreamName, Millis]) -> None:
        """Replace what is known: by stream, the boundary that finished batches cover."""
        self._known = dict(promised)

    def of(self, stream: StreamName) -> Millis | None:
        """The boundary of a stream; None: none is known."""
        return self._known.get(stream)
