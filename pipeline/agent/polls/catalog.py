"""Poll of the catalog; keeps the node registered, and what it reports of its standbys."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from pipeline.agent.events import CatalogLost, CatalogRead
from pipeline.agent.logged import of_transfer
from pipeline.agent.polls.poll import EmitEvent
from pipeline.agent.suspicions import Suspicions
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NodeRecord, Standby, Transfer
from pipeline.catalog.snapshot import CatalogSnapshot
from pipeline.clock import Clock
from pipeline.errors import MedusaError, RetryError
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.heartbeats.detector import Suspect
from pipeline.ids import NodeId

PAUSE_S: Final = 0.1
GRACE_S: Final = 2.0
"""How much later other nodes end a move than its target: they read of it at other times."""
RELEASED_S: Final = 15.0
"""How long a fragment that was released for its move waits for the target alone: that is up, but
may be unable to claim. Then its placement decides."""
FULL_S: Final = 5.0
"""Interval of full reads of the catalog, also without a change of networks or nodes."""
HASTE_S: Final = 0.5
"""The same while a fragment has no node that works: nodes may disagree on who takes it."""
OVERDUE_S: Final = 3.0
"""How long a node that suspects another one leaves its fragments to whom the placement names."""
REACHED_S: Final = 2.0
"""How often it is reported at most how far the states of followers are, if nothing else changes."""

_Seen = tuple[int, tuple[NodeId, ...], frozenset[Suspect]]
"""Revision of the catalog, nodes that are up, and lives of nodes that are suspected."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class CatalogPoll:
    """Sends a snapshot of the catalog as soon as the catalog has changed.

    Args:
        catalog: of the installation.
        record: of this node, which it keeps registered.
        clock: of overdue moves, and of full reads.
        emit: receives the snapshots.
        log: receives entries of the event log.
        suspicions: the nodes that count as down.
        standbys: how far the followers are that the node has as a secondary; it reports them.
    """

    catalog: Catalog
    record: NodeRecord
    clock: Clock
    emit: EmitEvent
    log: Callable[[LoggedEvent], None]
    suspicions: Suspicions
    standbys: Callable[[], tuple[Standby, ...]]
    _session: int = field(init=False)
    _reported: tuple[Standby, ...] = field(init=False, default=())
    _reported_s: float = field(init=False, default=0.0)
    _seen: _Seen | None = field(init=False, default=None)
    _read_at_s: float = field(init=False, default=0.0)
    _interval_s: float = field(init=False, default=FULL_S)
    _since_s: dict[Suspect, float] = field(init=False, default_factory=dict)
    _warned: bool = field(init=False, default=False)
    _moves_s: dict[tuple[Transfer, bool], float] = field(init=False, default_factory=dict)
    """Since when a move is known, and known to be released, by the steady clock: clocks of machines
    are not compared."""

    def __post_init__(self) -> None:
        self._session = self.catalog.store.session

    def read(self) -> float:
        """Send a snapshot, if the catalog changed or the last one is old."""
        if self.catalog.store.suspended:
            self._lost()
            return PAUSE_S
        catalog, participant = self.catalog, self.record.participant
        now_s = self.clock.monotonic_s()
        try:
            session = self.catalog.store.session
            if session != self._session:
                catalog.nodes.register(self.record)
                self._session, self._reported = session, ()
            revision, up = catalog.networks.revision(participant), catalog.nodes.names(participant)
            self.suspicions.note_up(up)
            suspects = self.suspicions.current
            there = revision, up, suspects
            self._since_s = {one: self._since_s.get(one, now_s) for one in suspects}
            if there != self._seen or now_s - self._read_at_s > self._interval_s:
                found = self._judged(catalog.snapshot(participant), now_s)
                self.emit(CatalogRead(found))
                self._end_overdue(found, now_s)
                self._seen, self._read_at_s = there, now_s
                self._interval_s = HASTE_S if found.is_deserted else FULL_S
        except MedusaError:
            self._lost()
            raise
        self._report_standbys(now_s)
        return PAUSE_S

    def _judged(self, found: CatalogSnapshot, now_s: float) -> CatalogSnapshot:
        """The snapshot with the nodes that are suspected, and those that have been so for long."""
        since_s = {
            one.node: since_s
            for one in found.nodes
            if (since_s := self._since_s.get(Suspect(one.node, one.started_at_ms))) is not None
        }
        overdue = (node for node, begun_s in since_s.items() if now_s - begun_s > OVERDUE_S)
        return replace(found, suspected=frozenset(since_s), overdue=frozenset(overdue))

    def _report_standbys(self, now_s: float) -> None:
        """Report how far the followers are that this node has as a secondary, if it has changed."""
        found, before = self.standbys(), self._reported
        if found == before:
            return
        is_same = len(found) == len(before) and all(map(Standby.is_same, found, before))
        if is_same and now_s - self._reported_s < REACHED_S:
            return
        try:
            self.catalog.standbys.report(self.record, found)
        except MedusaError as error:
            level = logging.DEBUG if self._warned else logging.WARNING
            _log.log(level, "how far its followers are is not reported: %s", error)
            self._warned = True
        else:
            self._reported, self._reported_s, self._warned = found, now_s, False

    def _end_overdue(self, found: CatalogSnapshot, now_s: float) -> None:
        """End moves whose time has passed: a target that is down or hangs does not."""
        released = {one.as_asked for at, one in found.moving.values() if at.owner is None}
        asked = {one.as_asked: one for one in found.transfers}
        limits_s = {(one, False): one.within_s + GRACE_S for one in asked}
        limits_s |= {(one, True): RELEASED_S for one in released}
        self._moves_s = {key: self._moves_s.get(key, now_s) for key in limits_s}
        passed = (key for key, limit_s in limits_s.items() if now_s - self._moves_s[key] > limit_s)
        for one in dict.fromkeys(one for one, _ in passed):
            self._end(asked[one])

    def _end(self, transfer: Transfer) -> None:
        now_ms = self.clock.now_ms()
        with suppress(RetryError):  # other nodes do the same
            if self.catalog.transfers.end(transfer):
                self.log(of_transfer(EventKind.MOVE_EXPIRED, transfer, self.record.node, now_ms))

    def _lost(self) -> None:
        if self._seen is not None:
            _log.warning("the catalog cannot be reached; running lanes continue")
            self.emit(CatalogLost())
            self._seen = None
