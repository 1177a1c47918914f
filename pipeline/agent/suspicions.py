"""The nodes that are suspected by their heartbeats. Thread-safe."""

from collections.abc import Iterable
from typing import Final

from pipeline.catalog.records import NodeRecord
from pipeline.clock import Clock
from pipeline.heartbeats.detector import Suspect

STALE_S: Final = 3.0
"""A suspicion counts for so long: if heartbeats are not read any more, nothing is known."""


class Suspicions:
    """Set by the poll of heartbeats, read by the poll of the catalog and by claims.

    Args:
        clock: of the age of what was noted.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._noted: tuple[frozenset[Suspect], float] = frozenset(), 0.0

    def note(self, suspects: Iterable[Suspect]) -> None:
        """Suspect these from now on, and no others; to be repeated as long as it is so."""
        self._noted = frozenset(suspects), self._clock.monotonic_s()

    @property
    def current(self) -> frozenset[Suspect]:
        """The lives of nodes that are suspected."""
        suspects, noted_s = self._noted
        stale = self._clock.monotonic_s() - noted_s > STALE_S
        return frozenset() if stale else suspects

    def has(self, node: NodeRecord) -> bool:
        """Whether a node that is up by the catalog is suspected in its present life."""
        return Suspect(node.node, node.started_at_ms) in self.current
