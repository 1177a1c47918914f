"""Reads the catalog, and keeps the node registered."""

import logging
from typing import Final

from pipeline.agent.events import CatalogLost, CatalogRead
from pipeline.agent.polls.poll import Tell
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NodeRecord
from pipeline.clock import Clock
from pipeline.errors import MedusaError
from pipeline.ids import NodeId

PAUSE_S: Final = 0.1
FULL_S: Final = 5.0
"""Also without a change of networks or nodes the catalog is read in full this often."""

_log = logging.getLogger(__name__)


class CatalogPoll:
    """Tells what the catalog holds, as soon as it has changed."""

    def __init__(self, catalog: Catalog, record: NodeRecord, clock: Clock, tell: Tell) -> None:
        self._catalog = catalog
        self._record = record
        self._session = catalog.store.session
        self._clock = clock
        self._tell = tell
        self._seen: tuple[int, tuple[NodeId, ...]] | None = None
        self._read_at_s = 0.0

    def look(self) -> float:
        """Tell what is there, if the catalog changed or it was long ago."""
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
                self._tell(CatalogRead(catalog.snapshot(participant)))
                self._seen, self._read_at_s = there, now_s
        except MedusaError:
            self._lost()
            raise
        return PAUSE_S

    def _lost(self) -> None:
        if self._seen is not None:
            _log.warning("the catalog cannot be reached; running lanes go on")
            self._tell(CatalogLost())
            self._seen = None
