"""Asks where the inputs of this node's fragments end; also how we know that Kafka is there."""

import logging
from typing import Final

from brokers.kafka_interface import TopicAdmin
from pipeline.agent.events import EndsRead
from pipeline.agent.polls.poll import Tell
from pipeline.agent.watched import Watched
from pipeline.clock import Clock, steady_ms
from pipeline.errors import MedusaError

PAUSE_S: Final = 0.25

_log = logging.getLogger(__name__)


class EndsPoll:
    """Tells the ends of the topics that are watched."""

    def __init__(self, admin: TopicAdmin, watched: Watched, clock: Clock, tell: Tell) -> None:
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
