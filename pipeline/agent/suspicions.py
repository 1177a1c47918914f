"""The nodes that are suspected by their heartbeats, and when losses were noticed. Thread-safe."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pipeline.catalog.records import NodeRecord, OwnerRecord
from pipeline.clock import Clock, steady_ms
from pipeline.heartbeats.detector import Suspect, Suspicion
from pipeline.ids import NodeId, SteadyMillis

STALE_S: Final = 3.0
"""A suspicion counts for so long: if heartbeats are not read any more, nothing is known."""
LOST_MOST_MS: Final = 3_600_000
"""The time of a loss is forgotten after this: what the node owned is claimed, or no node may."""
BY_SESSION: Final = "session"
"""A loss that was noticed since the node is not up by the catalog any more."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """How the loss of a node was noticed; steady times of this process.

    Args:
        by: a reason of suspicions, or `BY_SESSION`.
        at_ms: when.
        sign_ms: the last sign of the node before; None: by its session, which has no such time.
    """

    by: str
    at_ms: SteadyMillis
    sign_ms: SteadyMillis | None = None


class Suspicions:
    """Set by the polls of heartbeats and of the catalog, read by the latter and by claims.

    Args:
        clock: of the age of what was noted.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._noted: tuple[Mapping[Suspect, Noticed], float] = {}, 0.0
        self._up: frozenset[NodeId] = frozenset()
        self._lost: Mapping[NodeId, Noticed] = {}

    def note(self, suspicions: Mapping[Suspect, Suspicion]) -> None:
        """Suspect these from now on, and no others; to be repeated as long as it is so."""
        before, now_ms = self._current, steady_ms(self._clock)
        found = {
            suspect: before.get(suspect) or Noticed(one.why.value, now_ms, one.sign_ms)
            for suspect, one in suspicions.items()
        }
        self._noted = found, self._clock.monotonic_s()

    def note_up(self, nodes: Iterable[NodeId]) -> None:
        """The nodes that are up by the catalog; of those that are not any more it keeps since when.

        Called by one thread.
        """
        now_ms = steady_ms(self._clock)
        last, self._up = self._up, frozenset(nodes)
        new = {node: Noticed(BY_SESSION, now_ms) for node in last - self._up}
        self._lost = {
            node: one
            for node, one in {**self._lost, **new}.items()
            if node not in self._up and now_ms - one.at_ms < LOST_MOST_MS
        }

    @property
    def current(self) -> frozenset[Suspect]:
        """The lives of nodes that are suspected."""
        return frozenset(self._current)

    def has(self, node: NodeRecord) -> bool:
        """Whether a node that is up by the catalog is suspected in its present life."""
        return Suspect(node.node, node.started_at_ms) in self._current

    def noticed(self, owner: OwnerRecord) -> Noticed | None:
        """How the loss of an owner was noticed; None: that is not known here."""
        suspected = self._current.get(Suspect(owner.node, owner.life))
        return suspected or self._lost.get(owner.node)

    @property
    def _current(self) -> Mapping[Suspect, Noticed]:
        suspects, noted_s = self._noted
        return {} if self._clock.monotonic_s() - noted_s > STALE_S else suspects
