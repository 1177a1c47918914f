"""Ends of the partitions that a node's lanes read, as their leaders last answered."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from pipeline.ids import Offset, SteadyMillis, TopicName
from pipeline.markers.positions import Positions

ENDS_FRESH_MS: Final = 5_000
"""Maximum age of the latest answer about an end before its partition counts as unreachable, and
maximum gap between two answers in an observed silence."""

EndsByTopic = Mapping[TopicName, Mapping[int, Offset]]
"""Ends of partitions by topic."""
Place = tuple[TopicName, int]
"""A partition."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Ends of partitions in the latest answers of their leaders.

    Args:
        read_at_ms: steady time just before the requests.
        by_topic: last stable offsets; a partition that is missing was not answered.
        open: partitions with an open transaction, and since when it is observed. Its records are
            beyond the last stable offset.
        written: the next offsets to be written, of the same partitions.
        late: last stable offsets from late answers to earlier requests: records up to there can be
            read; they prove no silence.
        missing: existing partitions without an answer, and since when.
        earlier: the last answers of the partitions that are missing, and when they were asked for:
            a silence goes on if single answers are missing in between.
    """

    read_at_ms: SteadyMillis
    by_topic: EndsByTopic
    open: Mapping[Place, SteadyMillis] = field(default_factory=dict)
    written: EndsByTopic = field(default_factory=dict)
    late: EndsByTopic = field(default_factory=dict)
    missing: Mapping[Place, SteadyMillis] = field(default_factory=dict)
    earlier: Mapping[Place, tuple[Offset, SteadyMillis]] = field(default_factory=dict)

    def lately(self, topic: TopicName, partition: int, now_ms: SteadyMillis) -> Offset | None:
        """The last answer about a partition, if it is recent enough; None: there is none."""
        found = self._answer((topic, partition))
        return found[0] if found is not None and now_ms - found[1] <= ENDS_FRESH_MS else None

    def answers(self, places: Iterable[Place]) -> dict[Place, tuple[Offset, SteadyMillis]]:
        """The last answers about partitions, as in `earlier`."""
        found = ((at, self._answer(at)) for at in places)
        return {at: answer for at, answer in found if answer is not None}

    def _answer(self, at: Place) -> tuple[Offset, SteadyMillis] | None:
        end = self.by_topic.get(at[0], {}).get(at[1])
        return self.earlier.get(at) if end is None else (end, self.read_at_ms)

    def all_written(self, topic: TopicName) -> Mapping[int, Offset] | None:
        """End of all records by partition, open transactions included; None: no answer.

        A lane reaches it: the last stable offset moves beyond the records of a transaction once
        that is committed or aborted.
        """
        stable, written = self.by_topic.get(topic), self.written.get(topic, {})
        if stable is None or any(of == topic for of, _ in self.missing):
            return None
        return {p: max(end, written.get(p, end)) for p, end in stable.items()}

    def without(self, places: AbstractSet[Place]) -> "Ends":
        """The same as if these partitions had not been answered."""
        if not places:
            return self
        missing = {**dict.fromkeys(sorted(places), self.read_at_ms), **self.missing}
        return replace(
            self,
            by_topic=_without(self.by_topic, places),
            open={at: since_ms for at, since_ms in self.open.items() if at not in places},
            written=_without(self.written, places),
            late=_without(self.late, places),
            missing=missing,
        )

    def are_below(self, positions: Positions) -> bool:
        """Whether a partition ends before a position: records are lost, or the topic is another."""
        return any(
            self.written.get(at.topic, {}).get(at.partition, offset) < offset
            for at, offset in positions.items()
        )

    def fresh(self, now_ms: SteadyMillis) -> bool:
        """Whether the answer is recent enough to be used."""
        return now_ms - self.read_at_ms <= ENDS_FRESH_MS

    def readable(self, topic: TopicName, partition: int) -> Offset | None:
        """Up to where a partition can be read, as far as is known; None: there is no answer."""
        stable = self.by_topic.get(topic, {}).get(partition)
        late = self.late.get(topic, {}).get(partition)
        known = [end for end in (stable, late) if end is not None]
        return max(known, default=None)


@dataclass(frozen=True, slots=True)
class Answer:
    """Answers of the leaders to one request; as `EndsAnswer` in `brokers/kafka_interface.py`."""

    stable: EndsByTopic
    written: EndsByTopic
    late: EndsByTopic = field(default_factory=dict)
    missing: frozenset[Place] = frozenset()


def ends_of(before: Ends | None, read_at_ms: SteadyMillis, answer: Answer) -> Ends:
    """Build `Ends` from answers of the leaders.

    While the last stable offset stays unchanged below the end, the same transaction is open: it
    begins there.

    Args:
        before: the previous ends.
        read_at_ms: steady time just before the request.
        answer: to the request.
    """
    since: dict[Place, SteadyMillis] = {}
    for topic, ends in answer.stable.items():
        for partition, end in ends.items():
            if answer.written.get(topic, {}).get(partition, end) <= end:
                continue
            at = topic, partition
            same = before is not None and before.by_topic.get(topic, {}).get(partition) == end
            known = before.open.get(at) if before is not None and same else None
            since[at] = read_at_ms if known is None else known
    absent = {} if before is None else before.missing
    missing = {at: absent.get(at, read_at_ms) for at in sorted(answer.missing)}
    answers = {} if before is None else before.answers(missing)
    return Ends(read_at_ms, answer.stable, since, answer.written, answer.late, missing, answers)


def _without(ends: EndsByTopic, places: AbstractSet[Place]) -> EndsByTopic:
    left = {
        topic: {part: end for part, end in there.items() if (topic, part) not in places}
        for topic, there in ends.items()
    }
    return {topic: there for topic, there in left.items() if there}
