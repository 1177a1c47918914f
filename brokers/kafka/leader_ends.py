"""Reader of end offsets that asks each partition leader separately."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from brokers.kafka.known_leaders import AskedEnds, KnownLeaders, Requests
from brokers.kafka.leaders import (
    Group,
    Grouping,
    LeaderAnswer,
    LeaderEpochs,
    by_topic,
    highest,
    still_valid,
)
from brokers.kafka_interface import EndsAnswer, Place
from brokers.records import Ends
from pipeline.clock import Clock
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Offset, TopicName

_NONE_LATE: Final[Ends] = {}
_NONE_MISSING: Final[frozenset[Place]] = frozenset()

_log = logging.getLogger(__name__)


class LeaderEnds:
    """An `EndsReader`.

    Args:
        connect: opens a connection.
        clock: measures waits, and the age of metadata.
        epochs: of the leaders that have answered, also other readers.
    """

    def __init__(self, connect: Callable[[], Requests], clock: Clock, epochs: LeaderEpochs) -> None:
        self._clock = clock
        self._known = KnownLeaders(connect, clock)
        self._pending: dict[int, tuple[Group, AskedEnds]] = {}
        """By leader its request that was not answered in time."""
        self._silent: set[int] = set()
        """Leaders that did not answer the last request in time; reads do not wait for them."""
        self._epochs = epochs
        self._stable, self._written = _Merged(), _Merged()
        self._problem = ""
        self._closed = False

    def read(self, topics: Iterable[TopicName], within_s: float) -> EndsAnswer:
        """Ask every leader without a pending request, and wait for those that are not silent.

        A leader that is doubted since its last answer is not asked: its partitions are missing.
        """
        if self._closed:
            raise BrokenInvariantError("the reader of end offsets is closed")
        names = frozenset(topics)
        ends_at_s = self._clock.monotonic_s() + within_s
        earlier = self._answers_by_now()
        grouped = self._known.grouped(names, self._silent, within_s)
        late = self._late(earlier, names) if earlier else _NONE_LATE
        asked_at_s = self._clock.monotonic_s()
        requests = [
            (group, self._known.connection.ask(group))
            for group in grouped.groups
            if group.leader not in self._pending and not self._known.is_doubted(group.leader)
        ]
        for group, request in requests:
            if group.leader not in self._silent:
                request.wait(max(0.0, ends_at_s - self._clock.monotonic_s()))
        answers = [
            self._taken(group, request)
            for group, request in requests
            if self._has_ended(group, request)
        ]
        stable = [answer.stable for answer in answers]
        return EndsAnswer(
            asked_at_s,
            self._stable.by_topic(stable),
            self._written.by_topic([answer.written for answer in answers]),
            late,
            _missing(grouped, stable),
        )

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._pending.clear()
            self._known.close()

    def _answers_by_now(self) -> list[tuple[Group, LeaderAnswer]]:
        """The answers to requests of earlier reads that have arrived since."""
        ended = [one for one, (_, request) in self._pending.items() if request.wait(0.0)]
        taken = [self._pending.pop(leader) for leader in ended]
        return [(group, self._taken(group, request)) for group, request in taken]

    def _late(
        self, earlier: Sequence[tuple[Group, LeaderAnswer]], names: frozenset[TopicName]
    ) -> Ends:
        found = {name: topic for name, topic in self._known.found.items() if name in names}
        return by_topic([highest(still_valid(answer, group, found) for group, answer in earlier)])

    def _has_ended(self, group: Group, request: AskedEnds) -> bool:
        ended = request.wait(0.0)
        if not ended:
            self._pending[group.leader] = (group, request)
            self._silent.add(group.leader)
        return ended

    def _taken(self, group: Group, request: AskedEnds) -> LeaderAnswer:
        answer = self._epochs.newest(request.take(), group)
        if answer.answered:
            self._silent.discard(group.leader)
        else:
            self._silent.add(group.leader)
        if answer.moved or not answer.answered:
            self._known.doubt(group.leader)
        if answer.problem and answer.problem != self._problem:
            _log.warning("Kafka does not return all end offsets: %s", answer.problem)
            self._problem = answer.problem
        return answer


class _Merged:
    """Ends of several leaders by topic; the same object as before while nothing changes."""

    def __init__(self) -> None:
        self._parts: list[Mapping[Place, Offset]] = []
        self._ends: Ends = {}

    def by_topic(self, parts: list[Mapping[Place, Offset]]) -> Ends:
        """The ends in these answers."""
        if parts != self._parts:
            self._parts, self._ends = parts, by_topic(parts)
        return self._ends


def _missing(grouped: Grouping, answered: Sequence[Mapping[Place, Offset]]) -> frozenset[Place]:
    """The partitions without an answer."""
    if sum(len(part) for part in answered) == len(grouped.places):
        return _NONE_MISSING
    return grouped.places.difference(*answered)
