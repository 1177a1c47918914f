"""The nodes that are suspected by their heartbeats. Thread-safe."""

from collections.abc import Iterable

from pipeline.catalog.records import NodeRecord
from pipeline.heartbeats.detector import Suspect


class Suspicions:
    """Set by the poll of heartbeats, read by the poll of the catalog and by claims."""

    def __init__(self) -> None:
        self.current: frozenset[Suspect] = frozenset()
        """The lives of nodes that are suspected; replaced as a whole."""

    def note(self, suspects: Iterable[Suspect]) -> None:
        """Suspect these from now on, and no others."""
        self.current = frozenset(suspects)

    def has(self, node: NodeRecord) -> bool:
        """Whether a node that is up by the catalog is suspected in its present life."""
        return Suspect(node.node, node.started_at_ms) in self.current
