"""Asks where the inputs of this node's fragments end; also how we know that Kafka is there."""

import logging
from collections.abc import Iterable
from typing import Final, Protocol

from brokers.records import Ends
from pipeline.agent.events import EndsRead
from pipeline.agent.polls.poll import Tell
from pipeline.agent.watched import Watched
from pipeline.clock import Clock, steady_ms
from pipeline.errors import MedusaError
from pipeline.ids import TopicName

PAUSE_S: Final = 0.25

_log = logging.getLogger(__name__)


class EndOffsets(Protocol):
    """As in `brokers/kafka/admin.py`."""

    def both_ends(self, topics: Iterable[TopicName]) -> tuple[Ends, Ends]:
        """The last stable offsets of topics, and the next offsets to be written."""


class EndsPoll:
    """Tells the ends of the topics that are watched."""

    def __init__(self, admin: EndOffsets, watched: Watched, clock: Clock, tell: Tell) -> None:
        self._admin = admin
        self._watched = watched
        self._clock = clock
        self._tell = tell

    def look(self) -> float:
        """Tell the ends; none at all when Kafka does not answer."""
        topics = self._watched.topics
        if topics:
            asked_at_ms = steady_ms(self._clock)
            try:
                stable, written = self._admin.both_ends(topics)
            except MedusaError as error:
                _log.warning("Kafka cannot be reached: %s", error.message)
                stable, written = {}, {}
            self._tell(EndsRead(asked_at_ms, stable, written))
        return PAUSE_S
