"""The leaders of the partitions of some topics, renewed in the background."""

import logging
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from brokers.kafka.leaders import (
    Begun,
    Found,
    Group,
    Grouping,
    LeaderAnswer,
    TopicLeaders,
    grouping,
    is_due,
)
from pipeline.clock import Clock
from pipeline.errors import MedusaError
from pipeline.ids import TopicName

RENEW_S: Final = 5.0
"""How long no description is answered before another connection is tried, and between trials."""

_log = logging.getLogger(__name__)


class AskedEnds(Protocol):
    """A pending request to a leader."""

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended, after at most this time."""

    def take(self) -> LeaderAnswer:
        """The answer of a request that has ended."""


class AskedTopics(Protocol):
    """A pending description of topics."""

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended, after at most this time."""

    def take(self) -> tuple[Found, str]:
        """The topics that were described, and the error about the first other one, or nothing."""


class Requests(Protocol):
    """One connection to the cluster; its calls do not wait."""

    def describe(self, topics: Iterable[TopicName]) -> AskedTopics:
        """Request the leaders of topics."""

    def ask(self, group: Group) -> AskedEnds:
        """Request the ends of a leader's partitions."""

    def close(self) -> None:
        """Close the connection; pending requests end without an answer."""


class KnownLeaders:
    """A connection, and the leaders that it described last. Not thread-safe.

    The connection is replaced when another one gets a description and this one gets none: the
    driver sends them to the controller, and looks for another controller only after minutes.

    Args:
        connect: opens a connection.
        clock: measures the age of descriptions.
    """

    def __init__(self, connect: Callable[[], Requests], clock: Clock) -> None:
        self._connect, self._clock = connect, clock
        self.connection = connect()
        self.found: Found = {}
        self._doubted: set[int] = set()
        self._rechecked: set[int] = set()
        """Of the doubted leaders those whose partitions are being described."""
        self._begun: Begun | None = None
        self._asked: AskedTopics | None = None
        self._trial: Requests | None = None
        self._unanswered_s: float | None = None
        self._has_waited = False
        self._problem = ""
        self._grouped: tuple[frozenset[TopicName], Grouping] | None = None

    def grouped(
        self, topics: frozenset[TopicName], silent: AbstractSet[int], within_s: float
    ) -> Grouping:
        """The partitions of topics by leader, as last described; begins a description if due.

        Waits for a description only if none of the topics has been described, and only once until
        one arrives.

        Args:
            topics: names.
            silent: leaders that do not answer now.
            within_s: the longest wait, in seconds.
        """
        self._take()
        grouped = self._group(topics)
        now_s = self._clock.monotonic_s()
        settled = grouped.settled and silent.isdisjoint(one.leader for one in grouped.groups)
        if self._asked is None and is_due(
            now_s, topics, self._begun, doubted=bool(self._doubted), settled=settled
        ):
            self._begin(topics, now_s)
        asked = self._asked
        if asked and topics and not self._has_waited and self.found.keys().isdisjoint(topics):
            self._has_waited = True
            asked.wait(within_s)
            self._take()
            grouped = self._group(topics)
        return grouped

    def doubt(self, leader: int) -> None:
        """Consider the partitions of a leader as moved until the next description.

        To be called when it did not answer, or returned that it does not lead one of them.
        """
        self._doubted.add(leader)

    def is_doubted(self, leader: int) -> bool:
        """Whether no description has arrived that was requested after the doubt."""
        return leader in self._doubted or leader in self._rechecked

    def close(self) -> None:
        """Close the connection."""
        if self._trial is not None:
            self._trial.close()
        self.connection.close()

    def _group(self, topics: frozenset[TopicName]) -> Grouping:
        if self._grouped is None or self._grouped[0] != topics:
            self._grouped = (topics, grouping(topics, self.found))
        return self._grouped[1]

    def _begin(self, topics: frozenset[TopicName], now_s: float) -> None:
        self._begun = Begun(topics, now_s)
        self._rechecked, self._doubted = self._doubted, set()
        if self._unanswered_s is not None and now_s - self._unanswered_s >= RENEW_S:
            self._unanswered_s = now_s
            self._trial = self._another()
        self._asked = (self._trial or self.connection).describe(topics)

    def _another(self) -> Requests | None:
        try:
            return self._connect()
        except MedusaError:
            return None

    def _take(self) -> None:
        if self._asked is None or self._begun is None or not self._asked.wait(0.0):
            return
        found, problem = self._asked.take()
        if problem and problem != self._problem:
            _log.warning("Kafka does not describe all topics to be read: %s", problem)
        self._asked, self._problem = None, problem
        self._end_trial(passed=bool(found))
        if not found:
            if self._unanswered_s is None:
                self._unanswered_s = self._begun.at_s
            self._doubted |= self._rechecked
            self._rechecked = set()
            return
        gone = [self.found.get(name) for name in self._begun.topics if name not in found]
        self._doubted |= self._rechecked & {leader for one in gone for leader in _leaders(one)}
        self._rechecked = set()
        self._unanswered_s, self._has_waited = None, False
        merged: dict[TopicName, TopicLeaders | None] = {
            name: found[name] if name in found else self.found[name]
            for name in self._begun.topics
            if name in found or name in self.found
        }
        if merged != self.found:
            self.found, self._grouped = merged, None

    def _end_trial(self, *, passed: bool) -> None:
        trial, self._trial = self._trial, None
        if trial is None:
            return
        if passed:
            _log.warning("Kafka answers a new connection, and not the one before: it is replaced")
            self.connection, trial = trial, self.connection
        trial.close()


def _leaders(topic: TopicLeaders | None) -> set[int]:
    """The leaders of a topic's partitions."""
    return set() if topic is None else {one for one in topic.leaders.values() if one is not None}
