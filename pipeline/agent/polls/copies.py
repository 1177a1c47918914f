"""Poll that copies the checkpoints of running fragments when they are due."""

import logging
from typing import Final, Protocol

from pipeline.agent.watched import Watched
from pipeline.checkpoint_store.manifest import CheckpointCopy
from pipeline.clock import Clock
from pipeline.errors import MedusaError
from pipeline.ids import FragmentId

PAUSE_S: Final = 0.25

_log = logging.getLogger(__name__)


class Copying(Protocol):
    """As in `pipeline/spark/run/checkpoint_copies.py`."""

    def copy(self, fragment: FragmentId) -> CheckpointCopy | None:
        """Copy the checkpoint of a fragment; None: nothing runs, or has changed since."""


class CopiesPoll:
    """Copies the checkpoint of each fragment that has passive standbys, as often as it says.

    A store that fails, or hangs, delays the copies of all fragments of the node, and nothing else.

    Args:
        copies: copies one of them.
        watched: which ones, and how often.
        clock: of their intervals.
    """

    def __init__(self, copies: Copying, watched: Watched, clock: Clock) -> None:
        self._copies = copies
        self._watched = watched
        self._clock = clock
        self._begun_s: dict[FragmentId, float] = {}
        self._failing: set[FragmentId] = set()

    def read(self) -> float:
        """Copy those that are due; the first copy is made as soon as a fragment runs."""
        wanted = self._watched.copied
        self._begun_s = {one: at_s for one, at_s in self._begun_s.items() if one in wanted}
        self._failing &= wanted.keys()
        for fragment, every_ms in sorted(wanted.items()):
            now_s, begun_s = self._clock.monotonic_s(), self._begun_s.get(fragment)
            if begun_s is not None and now_s - begun_s < every_ms / 1_000:
                continue
            if self._is_tried(fragment):
                self._begun_s[fragment] = now_s
        return PAUSE_S

    def _is_tried(self, fragment: FragmentId) -> bool:
        """Copy one; returns whether there was anything to copy."""
        label = {"fragment": str(fragment)}
        try:
            copy = self._copies.copy(fragment)
        except MedusaError as error:
            level = logging.DEBUG if fragment in self._failing else logging.WARNING
            _log.log(level, "its checkpoint is not copied: %s", error, extra=label)
            self._failing.add(fragment)
            return True
        if copy is None:
            return False
        if fragment in self._failing:
            self._failing.discard(fragment)
            _log.warning("its checkpoint is copied again", extra=label)
        text = "batch %d of its checkpoint is copied: %d files, %d bytes"
        _log.debug(text, copy.batch, len(copy.files), copy.size, extra=label)
        return True
