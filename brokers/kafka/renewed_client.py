"""An admin client that is replaced when it gets no answer any more, and a new one does."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, Generic, Protocol, TypeVar

from confluent_kafka import KafkaException

from pipeline.clock import Clock

RENEW_S: Final = 30.0
"""How long no request is answered before a new client is tried, and between two such trials."""
PROBE_S: Final = 2.0
KEPT_S: Final = 300.0
"""How long a replaced client is kept: longer than the deadline of any request."""

_log = logging.getLogger(__name__)


class Probed(Protocol):
    """What a driver's client is asked to find out whether it gets answers."""

    def describe_cluster(self, *, request_timeout: float) -> "Future[Any]":
        """As of the driver."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> object:
        """Close it; pending requests end with an error."""


C = TypeVar("C", bound=Probed)


class RenewedClient(Generic[C]):
    """A client of a long-lived process. Thread-safe.

    librdkafka may find no controller any more after an outage, although brokers answer everyone
    else.

    Args:
        make: makes a client.
        clock: measures how long none has answered.
    """

    def __init__(self, make: Callable[[], C], clock: Clock) -> None:
        self._make, self._clock = make, clock
        self._client = make()
        self._replaced: list[tuple[float, C]] = []
        self._unanswered_s: float | None = None
        self._lock = threading.Lock()

    @property
    def current(self) -> C:
        """The client for the next request."""
        with self._lock:
            since_s, now_s = self._unanswered_s, self._clock.monotonic_s()
            if since_s is not None and now_s - since_s >= RENEW_S:
                self._unanswered_s = now_s
                self._try_another()
            return self._client

    def note(self, *, answered: bool) -> None:
        """Note whether a request was answered, with an error of the broker's or without.

        To be called for requests of one kind: others may be answered although these are not.
        """
        if answered:
            self._unanswered_s = None
        elif self._unanswered_s is None:
            self._unanswered_s = self._clock.monotonic_s()

    def another(self) -> C | None:
        """A further client; None: it cannot be made."""
        try:
            return self._make()
        except KafkaException:
            return None

    def replace(self, old: C, new: C) -> bool:
        """Use another client from now on, which got an answer when this one did not.

        Returns:
            Whether it is used; False if the old one was replaced already.
        """
        with self._lock:
            if self._client is not old:
                return False
            self._replace(new)
            return True

    def _try_another(self) -> None:
        try:
            other = self._make()
            other.describe_cluster(request_timeout=PROBE_S).result(2 * PROBE_S)
        except (KafkaException, TimeoutError):
            return
        self._replace(other)

    def _replace(self, other: C) -> None:
        _log.warning("Kafka answers a new connection, and not the one before, which is replaced")
        now_s = self._clock.monotonic_s()
        for at_s, client in self._replaced:
            if now_s - at_s >= KEPT_S:
                client.__exit__(None, None, None)
        self._replaced = [one for one in self._replaced if now_s - one[0] < KEPT_S]
        # Requests of other threads may be pending in it.
        self._replaced.append((now_s, self._client))
        self._client, self._unanswered_s = other, None
