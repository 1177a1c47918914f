"""Poll that copies the checkpoints of running fragments when they are due."""

import logging
from typing import Final, Protocol

from pipeline.agent.watched import Watched
from pipeline.checkpoint_store.manifest import CheckpointCopy
from pipeline.errors import MedusaError
from pipeline.ids import FragmentId

PAUSE_S: Final = 0.25

_log = logging.getLogger(__name__)


class Copying(Protocol):
    """As in `pipeline/spark/run/checkpoint_copies.py`."""

    def copy(self, fragment: FragmentId, every_ms: int) -> CheckpointCopy | None:
        """Copy the checkpoint of a fragment, if that is due; None: it is not, or is the same."""


class CopiesPoll:
    """Copies the checkpoint of each fragment that has passive standbys, as often as it says.

    A store that fails, or hangs, delays the copies of all fragments of the node, and nothing else.

    Args:
        copies: copies one of them.
        watched: which ones, and how often.
    """

    def __init__(self, copies: Copying, watched: Watched) -> None:
        self._copies = copies
        self._watched = watched
        self._failing: set[FragmentId] = set()

    def read(self) -> float:
        """Copy those that are due."""
        wanted = self._watched.copied
        self._failing &= wanted.keys()
        for fragment, every_ms in sorted(wanted.items()):
            self._copy(fragment, every_ms)
        return PAUSE_S

    def _copy(self, fragment: FragmentId, every_ms: int) -> None:
        label = {"fragment": str(fragment)}
        try:
            copy = self._copies.copy(fragment, every_ms)
        except MedusaError as error:
            level = logging.DEBUG if fragment in self._failing else logging.WARNING
            _log.log(level, "its checkpoint is not copied: %s", error, extra=label)
            self._failing.add(fragment)
            return
        if copy is None:
            return
        if fragment in self._failing:
            self._failing.discard(fragment)
            _log.warning("its checkpoint is copied again", extra=label)
        text = "batch %d of its checkpoint is copied: %d files, %d bytes"
        _log.debug(text, copy.batch, len(copy.files), copy.size, extra=label)
