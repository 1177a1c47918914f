"""The leaders of partitions: grouping by leader, and when to ask for them again. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from brokers.kafka_interface import Place
from pipeline.ids import Offset, TopicName

REFRESH_S: Final = 5.0
"""Age of a description after which a new one is requested."""
UNSETTLED_S: Final = 1.0
"""The same while a topic does not exist, a partition has no leader, or a leader does not answer."""
AGAIN_S: Final = 0.25
"""Shortest interval between two descriptions of the same topics."""


@dataclass(frozen=True, slots=True)
class TopicLeaders:
    """An existing topic: its id, and the broker id of each partition's leader; None: no leader."""

    topic_id: str
    leaders: Mapping[int, int | None]


Found = Mapping[TopicName, TopicLeaders | None]
"""Described topics; None: the topic does not exist."""


@dataclass(frozen=True, slots=True)
class Group:
    """The partitions of one leader, and the ids of their topics."""

    leader: int
    places: tuple[Place, ...]
    ids: Mapping[TopicName, str]


@dataclass(frozen=True, slots=True)
class Grouping:
    """All partitions of some topics, by leader.

    Args:
        groups: those with a leader, by broker id.
        places: all partitions.
        settled: whether every topic exists and every partition has a leader.
    """

    groups: tuple[Group, ...]
    places: frozenset[Place]
    settled: bool


@dataclass(frozen=True, slots=True)
class Begun:
    """The beginning of a description: its topics, and monotonic time in seconds."""

    topics: frozenset[TopicName]
    at_s: float


@dataclass(frozen=True, slots=True)
class LeaderAnswer:
    """What a leader answered about its partitions.

    Args:
        stable: last stable offsets.
        written: log end offsets, of the same partitions.
        answered: whether it answered at all; an error that it returns is an answer.
        moved: whether it no longer leads one of the partitions.
        problem: an unexpected error; empty if there is none.
        epochs: the leader epoch that each answer is of, as far as it is known.
    """

    stable: Mapping[Place, Offset]
    written: Mapping[Place, Offset]
    answered: bool
    moved: bool = False
    problem: str = ""
    epochs: Mapping[Place, int] = field(default_factory=dict)


class LeaderEpochs:
    """The highest leader epoch that has answered for each partition.

    A broker that is cut off from the others goes on answering as the leader that it was, and its
    ends are lower than what the new leader has confirmed meanwhile: as if records were lost. All
    readers of a process share what is known, so that one that has just begun knows it, too; several
    threads may use it.
    """

    def __init__(self) -> None:
        self._highest: dict[tuple[Place, str], int] = {}

    def newest(self, answer: LeaderAnswer, asked: Group) -> LeaderAnswer:
        """The answer without what a leader before the present one said; then `moved` is set."""
        outdated = set()
        for place, epoch in answer.epochs.items():
            at = place, asked.ids[place[0]]
            if epoch < self._highest.get(at, epoch):
                outdated.add(place)
            else:
                self._highest[at] = epoch
        if not outdated:
            return answer
        stable, written = (
            {place: offset for place, offset in offsets.items() if place not in outdated}
            for offsets in (answer.stable, answer.written)
        )
        return replace(answer, stable=stable, written=written, moved=True)


def grouping(topics: Iterable[TopicName], found: Found) -> Grouping:
    """Group the partitions of described topics; topics without a description are left out."""
    places: dict[int, list[Place]] = {}
    ids: dict[int, dict[TopicName, str]] = {}
    every: set[Place] = set()
    settled = True
    for name in sorted(topics):
        topic = found.get(name)
        if topic is None:
            settled = False
            continue
        for partition, leader in sorted(topic.leaders.items()):
            every.add((name, partition))
            if leader is None:
                settled = False
                continue
            places.setdefault(leader, []).append((name, partition))
            ids.setdefault(leader, {})[name] = topic.topic_id
    groups = (Group(leader, tuple(places[leader]), ids[leader]) for leader in sorted(places))
    return Grouping(tuple(groups), frozenset(every), settled)


def is_due(
    now_s: float, topics: frozenset[TopicName], last: Begun | None, *, doubted: bool, settled: bool
) -> bool:
    """Whether to request a description of these topics.

    Args:
        now_s: monotonic time in seconds.
        topics: topics to read.
        last: the last description; None: there was none.
        doubted: whether a leader has since returned an error, or given no answer at all.
        settled: whether all topics exist, and all leaders exist and answer.
    """
    if not topics:
        return False
    if last is None or not topics <= last.topics:
        return True
    age_s = now_s - last.at_s
    if doubted:
        return age_s >= AGAIN_S
    return age_s >= (REFRESH_S if settled else UNSETTLED_S)


def still_valid(answer: LeaderAnswer, asked: Group, found: Found) -> dict[Place, Offset]:
    """The last stable offsets in a late answer, of topics that were not deleted since the request.

    A topic that was deleted and created again has another id, and lower offsets.
    """
    return {
        place: offset
        for place, offset in answer.stable.items()
        if (topic := found.get(place[0])) is not None and topic.topic_id == asked.ids[place[0]]
    }


def highest(parts: Iterable[Mapping[Place, Offset]]) -> dict[Place, Offset]:
    """The highest offset of each partition: of two lower bounds the better one."""
    merged: dict[Place, Offset] = {}
    for part in parts:
        for place, offset in part.items():
            merged[place] = max(offset, merged.get(place, offset))
    return merged


def by_topic(parts: Iterable[Mapping[Place, Offset]]) -> dict[TopicName, dict[int, Offset]]:
    """Offsets of several leaders by topic and partition."""
    merged: dict[TopicName, dict[int, Offset]] = {}
    for part in parts:
        for (topic, partition), offset in part.items():
            merged.setdefault(topic, {})[partition] = offset
    return merged
