"""What a follower notes about its move in the catalog, and what it writes into the event log."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.agent.logged import discarded, of_transfer
from pipeline.catalog.records import Transfer
from pipeline.catalog.transfers import Transfers
from pipeline.clock import Clock
from pipeline.errors import MedusaError
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import FragmentId, NodeId

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NotesContext:
    """What the notes of a node's followers share.

    Args:
        transfers: the transfers of the catalog.
        clock: of the end of a transfer.
        log: receives entries of the event log.
        node: of the followers.
    """

    transfers: Transfers
    clock: Clock
    log: Callable[[LoggedEvent], None]
    node: NodeId


class FollowerNotes:
    """The notes of one follower. A catalog that does not answer is asked again. Not thread-safe.

    Args:
        fragment: that it follows.
        context: of the node's followers.
    """

    def __init__(self, fragment: FragmentId, context: NotesContext) -> None:
        self._fragment = fragment
        self._context = context
        self._label = {"fragment": str(fragment)}
        self._ready: Transfer | None = None
        self._known: Transfer | None = None
        self._known_s = 0.0

    def begun(self) -> None:
        """Note that it is begun anew: of an earlier one nothing is level any more."""
        self._ready = None

    def ready(self, transfer: Transfer) -> None:
        """Note that it is level; once."""
        if self._ready is not None and self._ready.is_same(transfer):
            return
        try:
            if self._context.transfers.note_ready(transfer):
                _log.info("level: its owner may release it", extra=self._label)
                self._log_step(EventKind.FOLLOWER_LEVEL, transfer)
        except MedusaError as error:
            _log.debug("not noted to be level yet: %s", error)
        else:
            self._ready = transfer

    def failed(self, transfer: Transfer, problem: str) -> None:
        """Note that it has failed."""
        self._log_step(EventKind.FOLLOWER_FAILED, transfer, problem)
        try:
            self._context.transfers.note_failed(transfer, problem)
        except MedusaError as error:
            _log.debug("the failure is not noted: %s", error)

    def discarded(self, problem: str) -> None:
        """Log that it does not try again."""
        context = self._context
        context.log(discarded(self._fragment, context.node, problem, context.clock.now_ms()))

    def has_passed(self, transfer: Transfer) -> bool:
        """Whether the time of a move has passed, which is ended then.

        It passes by the steady clock since the move was first asked about: clocks of machines are
        not compared.
        """
        now_s = self._context.clock.monotonic_s()
        if self._known is None or not self._known.is_same(transfer):
            self._known, self._known_s = transfer, now_s
        if now_s - self._known_s <= transfer.within_s:
            return False
        try:
            if self._context.transfers.end(transfer):
                text = "its move has ended: it was not done in time"
                _log.warning("%s", text, extra=self._label)
                self._log_step(EventKind.MOVE_EXPIRED, transfer)
        except MedusaError as error:
            _log.debug("the move is not ended: %s", error)  # the next read of the catalog does
        return True

    def _log_step(self, kind: EventKind, transfer: Transfer, why: str = "") -> None:
        now_ms = self._context.clock.now_ms()
        self._context.log(of_transfer(kind, transfer, transfer.to, now_ms, why))
