"""Poll of the catalog; keeps the node registered."""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pipeline.agent.events import CatalogLost, CatalogRead
from pipeline.agent.logged import of_transfer
from pipeline.agent.polls.poll import EmitEvent
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NodeRecord, Transfer
from pipeline.clock import Clock
from pipeline.errors import MedusaError, RetryError
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import NodeId

PAUSE_S: Final = 0.1
GRACE_MS: Final = 2_000
"""How much later other nodes end a move than its target: clocks differ a little."""
FULL_S: Final = 5.0
"""Interval of full reads of the catalog, also without a change of networks or nodes."""

_log = logging.getLogger(__name__)


class CatalogPoll:
    """Sends a snapshot of the catalog as soon as the catalog has changed."""

    def __init__(
        self,
        catalog: Catalog,
        record: NodeRecord,
        clock: Clock,
        emit: EmitEvent,
        log: Callable[[LoggedEvent], None],
    ) -> None:
        self._catalog = catalog
        self._record = record
        self._session = catalog.store.session
        self._clock = clock
        self._emit = emit
        self._log_event = log
        self._seen: tuple[int, tuple[NodeId, ...]] | None = None
        self._read_at_s = 0.0

    def read(self) -> float:
        """Send a snapshot, if the catalog changed or the last one is old."""
        if self._catalog.store.suspended:
            self._lost()
            return PAUSE_S
        catalog, participant = self._catalog, self._record.participant
        now_s = self._clock.monotonic_s()
        try:
            session = self._catalog.store.session
            if session != self._session:
                catalog.nodes.register(self._record)
                self._session = session
            there = catalog.networks.revision(participant), catalog.nodes.names(participant)
            if there != self._seen or now_s - self._read_at_s > FULL_S:
                found = catalog.snapshot(participant)
                self._emit(CatalogRead(found))
                self._end_overdue(found.transfers)
                self._seen, self._read_at_s = there, now_s
        except MedusaError:
            self._lost()
            raise
        return PAUSE_S

    def _end_overdue(self, transfers: tuple[Transfer, ...]) -> None:
        """End moves whose time has passed: a target that is down or hangs does not."""
        now_ms = self._clock.now_ms()
        for one in transfers:
            if now_ms > one.until_ms + GRACE_MS:
                with suppress(RetryError):  # other nodes do the same
                    if self._catalog.transfers.end(one):
                        kind = EventKind.MOVE_EXPIRED
                        self._log_event(of_transfer(kind, one, self._record.node, now_ms))

    def _lost(self) -> None:
        if self._seen is not None:
            _log.warning("the catalog cannot be reached; running lanes continue")
            self._emit(CatalogLost())
            self._seen = None
