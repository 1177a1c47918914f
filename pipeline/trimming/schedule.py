"""Schedule of a removal: at intervals, in the background of a lane."""

import logging
import threading
from collections.abc import Callable, Mapping

from pipeline.clock import Clock
from pipeline.errors import MedusaError
from pipeline.ids import FragmentId, Offset


class Trimmer:
    """Removes records at intervals, on a thread of its own. One caller.

    Args:
        what: the records, for messages.
        remove: removes them; returns per partition the offset below which it did.
        every_s: the interval.
        fragment: that writes them.
        clock: of the interval.
        level: of the message about what was removed.
    """

    def __init__(
        self,
        what: str,
        remove: Callable[[], Mapping[int, Offset]],
        every_s: float,
        fragment: FragmentId,
        clock: Clock,
        level: int = logging.INFO,
    ) -> None:
        self._what = what
        self._remove = remove
        self._every_s = every_s
        self._clock = clock
        self._level = level
        self._due_s = clock.monotonic_s()
        self._thread: threading.Thread | None = None
        self._failed = ""
        self._log = logging.LoggerAdapter(logging.getLogger(__name__), {"fragment": str(fragment)})

    def trim_if_due(self) -> None:
        """Start the removal if it is due; never blocks, never raises."""
        now_s = self._clock.monotonic_s()
        if now_s < self._due_s or (self._thread is not None and self._thread.is_alive()):
            return
        self._due_s = now_s + self._every_s
        self._thread = threading.Thread(target=self.trim, name=self._what, daemon=True)
        self._thread.start()

    def trim(self) -> None:
        """Remove records; a failure is a warning, unless it equals the last one."""
        try:
            until = self._remove()
        except MedusaError as error:
            if str(error) != self._failed:
                self._log.warning("%s are not removed: %s", self._what, error)
            self._failed = str(error)
            return
        self._failed = ""
        if until:
            self._log.log(self._level, "%s are removed, below offsets %s", self._what, dict(until))
