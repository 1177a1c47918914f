"""Poll of the end offsets of this node's inputs; also the liveness check of Kafka."""

import logging
from typing import Final, Protocol

from brokers.kafka_interface import EndsReader
from pipeline.agent.events import EndsRead
from pipeline.agent.polls.poll import EmitEvent
from pipeline.agent.watched import Watched
from pipeline.boundaries.ends import Answer, Ends, ends_of
from pipeline.ids import SteadyMillis

PAUSE_LEAST_S: Final = 0.02
"""Pause between two answers while records flow."""
PAUSE_MOST_S: Final = 0.2
"""The same when none has come for some time."""
FLOWS_MS: Final = 200
"""For so long after a record the pause stays short; then it doubles with each answer."""
WITHIN_S: Final = 0.5
"""How long an answer is awaited; a leader that does not answer costs this once."""
AGENT_MS: Final = 250
"""Least interval of the answers that the agent gets: it shows them, and decides nothing by them
that would be urgent."""

_log = logging.getLogger(__name__)


class EndsNews(Protocol):
    """As `LaneNews` in `pipeline/spark/run/lane_news.py`."""

    def ends_read(self, ends: Ends) -> None:
        """Take in ends of topics."""


class EndsPoll:
    """Passes the end offsets of the watched topics to the lanes and, less often, to the agent."""

    def __init__(
        self,
        reader: EndsReader,
        watched: Watched,
        news: EndsNews,
        emit: EmitEvent,
    ) -> None:
        self._reader = reader
        self._watched = watched
        self._news = news
        self._emit = emit
        self._last: Ends | None = None
        self._pause_s = PAUSE_MOST_S
        self._sent_ms: int | None = None
        self._moved_ms = 0
        self._answered = True

    def read(self) -> float:
        """Pass on the end offsets, of the partitions whose leaders answer."""
        topics = self._watched.topics
        if not topics:
            return PAUSE_MOST_S
        found = self._reader.read(topics, WITHIN_S)
        before_ms = SteadyMillis(int(1_000 * found.asked_at_s))
        answer = Answer(found.stable, found.written, found.late, found.missing)
        last, ends = self._last, ends_of(self._last, before_ms, answer)
        self._log(ends)
        self._last = ends
        self._news.ends_read(ends)
        if self._sent_ms is None or before_ms - self._sent_ms >= AGENT_MS:
            self._sent_ms = before_ms
            self._emit(EndsRead(ends))
        moved = last is None or (last.by_topic, last.written) != (ends.by_topic, ends.written)
        if moved:
            self._moved_ms = before_ms
        flows = before_ms - self._moved_ms < FLOWS_MS
        self._pause_s = PAUSE_LEAST_S if flows else min(PAUSE_MOST_S, 2 * self._pause_s)
        return self._pause_s

    def _log(self, ends: Ends) -> None:
        """Log when partitions are no longer, or are again, answered."""
        answered = not ends.missing
        if answered and not self._answered:
            _log.warning("Kafka answers again")
        elif self._answered and not answered:
            where = ", ".join(f"{topic}/{partition}" for topic, partition in ends.missing)
            _log.warning("Kafka cannot be reached: %s", where)
        self._answered = answered
