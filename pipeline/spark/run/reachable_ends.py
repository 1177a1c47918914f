"""Ends of topics at the start of a lane, also while a part of the partitions cannot be reached."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from brokers.kafka_interface import (
    Isolation,
    KafkaCluster,
    NotNowError,
    Place,
    TopicAdmin,
    complete,
)
from brokers.records import Ends
from pipeline.clock import Clock, Deadline
from pipeline.errors import UnavailableError
from pipeline.ids import TopicName

WITHIN_S: Final = 10.0
ANSWER_S: Final = 2.0
"""How long one answer of the leaders is awaited."""
_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ReachableEnds:
    """Reads ends of topics.

    Args:
        kafka: makes a reader that asks each leader by itself.
        admin: asks all of them at once: with the connection that there is.
        clock: for the deadline.
    """

    kafka: KafkaCluster
    admin: TopicAdmin
    clock: Clock

    def read(
        self, topics: Iterable[TopicName], isolation: Isolation
    ) -> tuple[Ends, frozenset[Place]]:
        """The ends of the partitions whose leaders answer, and the other partitions.

        Raises:
            UnavailableError, NotNowError: no leader answers.
        """
        names = sorted(set(topics))
        try:
            return complete(self.admin.end_offsets(names, isolation), names), frozenset()
        except (UnavailableError, NotNowError):
            found, missing = self._by_leader(names, isolation)
            if not found or not _topics(found, missing).issuperset(names):
                raise
            return found, missing

    def _by_leader(
        self, names: list[TopicName], isolation: Isolation
    ) -> tuple[Ends, frozenset[Place]]:
        deadline = Deadline.after(self.clock, WITHIN_S, "reading end offsets")
        with closing(self.kafka.ends_reader()) as reader:
            while True:
                answer = reader.read(names, min(ANSWER_S, deadline.remaining_s()))
                ends = answer.stable if isolation is Isolation.COMMITTED else answer.written
                known = _topics(ends, answer.missing)
                if known.issuperset(names) or deadline.passed:
                    return ends, answer.missing
                self.clock.sleep(_POLL_S)


def _topics(found: Ends, missing: frozenset[Place]) -> set[TopicName]:
    return {*found, *(topic for topic, _ in missing)}
