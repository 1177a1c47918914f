"""Poll of the end offsets of this node's inputs; also the liveness check of Kafka."""

import logging
from typing import Final

from brokers.kafka_interface import TopicAdmin
from pipeline.agent.events import EndsRead
from pipeline.agent.polls.poll import EmitEvent
from pipeline.agent.watched import Watched
from pipeline.clock import Clock, steady_ms
from pipeline.errors import MedusaError

PAUSE_S: Final = 0.25

_log = logging.getLogger(__name__)


class EndsPoll:
    """Sends the end offsets of the watched topics."""

    def __init__(self, admin: TopicAdmin, watched: Watched, clock: Clock, emit: EmitEvent) -> None:
        self._admin = admin
        self._watched = watched
        self._clock = clock
        self._emit = emit

    def read(self) -> float:
        """Send the end offsets; empty when Kafka does not answer."""
        topics = self._watched.topics
        if topics:
            before_ms = steady_ms(self._clock)
            try:
                stable, written = self._admin.both_ends(topics)
            except MedusaError as error:
                _log.warning("Kafka cannot be reached: %s", error.message)
                stable, written = {}, {}
            self._emit(EndsRead(before_ms, stable, written))
        return PAUSE_S
