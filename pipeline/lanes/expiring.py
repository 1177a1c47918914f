"""Records that a lane still needs and that retention removes soon, or has removed. Pure.

What is needed of a topic:

- *unread*: the records from the lane's position on;
- *rebuild*: the records that a rebuild of its state reads, below the position. They count only
  while the lane is at rest: the state of a running lane is in its checkpoint, and a window that is
  longer than half of the retention would else be reported at all times.

Kafka removes whole segments from the beginning of a partition, each when its largest timestamp is
older than `retention.ms`. A record is therefore removed when it and all records before it are
older, which is exactly what the offset of a time says: it is the first record at or after that
time.

Of a running lane only `medusa doctor` examines what a rebuild would read: see `needs_of_rebuild`.

The time from which records are reported is half of what was left when they came, or when the lane
ran last, whichever is later: half of the retention for unread records.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from pipeline.ids import Millis, Offset, TopicId, TopicName
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import MarkedSource, by_topic

HALVINGS: Final = 8
"""Requests for the age of the oldest record: it is found to 1/512 of the retention."""

NEAR: Final = 1 / 8
"""The part of the retention that a rebuild has left at least, if event time stands still."""

OffsetsAt = Callable[[Millis], Mapping[int, Offset]]
"""Per partition of a topic the first offset at or after a time; without one, the end."""


class Use(Enum):
    """What a lane needs records for."""

    UNREAD = "unread"
    REBUILD = "rebuild"


class Cause(Enum):
    """Why records are removed."""

    AGE = "age"
    SIZE = "size"
    REMOVED = "removed"
    """They have been removed already."""


@dataclass(frozen=True, slots=True)
class ExpiringRecords:
    """Records of one topic that a lane still needs and that are removed soon, or were removed.

    Args:
        topic: the topic.
        partitions: sorted.
        use: what they are needed for.
        cause: why they are removed.
        kept_ms: `retention.ms` of the topic, if records are removed by age.
        oldest_ms: the timestamp of the oldest of them, which is at most 1/512 of the retention
            newer; None: not by age.
        removed_from_ms: from when on the oldest of them may be removed; None: not by age.
    """

    topic: TopicName
    partitions: tuple[int, ...]
    use: Use
    cause: Cause
    kept_ms: int | None = None
    oldest_ms: Millis | None = None
    removed_from_ms: Millis | None = None


@dataclass(frozen=True, slots=True)
class TopicNeeds:
    """The oldest offsets that a lane needs in the partitions of a topic.

    Args:
        topic_id: Kafka's id of the topic that the offsets are of.
        unread: its positions.
        rebuild: where a rebuild of its state begins to read.
        unread_since: partitions that do not answer and have unread records, each with a time by
            which the first of them was there.
    """

    topic_id: TopicId
    unread: Mapping[int, Offset]
    rebuild: Mapping[int, Offset] = field(default_factory=dict)
    unread_since: Mapping[int, Millis] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogNeeds:
    """What a lane needs of its topics.

    Args:
        topics: of each topic that carries records of its inputs.
        running: whether it reads them now. Then positions are older than the present ones, so
            that an offset below the log's beginning proves no loss.
        since_ms: when it ran last, or its last batch was written if no more is known; None: it has
            never run.
        spare: only what a rebuild of its state needs is examined, and reported when no more than
            this part of the retention is left; None: all is.
    """

    topics: Mapping[TopicName, TopicNeeds]
    running: bool = False
    since_ms: Millis | None = None
    spare: float | None = None

    def not_before(self, ran_ms: Millis) -> "LogNeeds":
        """The needs of a lane that was seen running at a time, perhaps without a batch."""
        return replace(self, since_ms=max(ran_ms, self.since_ms or ran_ms))


@dataclass(frozen=True, slots=True)
class TopicLog:
    """Retention of a topic, and the ranges of its partitions.

    Args:
        kept_ms: the age at which records are removed; None: none are removed by age.
        limited: whether the oldest are removed when a partition exceeds a size.
        starts: the oldest offsets.
        ends: the next offsets to be written; empty: a partition does not answer.
    """

    kept_ms: int | None
    limited: bool
    starts: Mapping[int, Offset]
    ends: Mapping[int, Offset]


def topic_log(
    config: Mapping[str, str], starts: Mapping[int, Offset], ends: Mapping[int, Offset]
) -> TopicLog:
    """Retention by the settings in force; a compacted topic loses nothing by age or size."""
    deletes = "delete" in config.get("cleanup.policy", "delete")
    kept_ms, kept_bytes = (
        int(config.get(name, -1)) if deletes else -1 for name in ("retention.ms", "retention.bytes")
    )
    return TopicLog(kept_ms if kept_ms >= 0 else None, kept_bytes >= 0, starts, ends)


def needs_of(
    marker: CommitMarker, topic_ids: Mapping[TopicName, str], *, running: bool = False
) -> LogNeeds:
    """What the lane of a marker needs.

    Args:
        marker: its last.
        topic_ids: of the fragment's topics in the catalog; positions in others count no more. The
            redrive topic may be missing there.
        running: as in `LogNeeds`.
    """
    sources = [
        (topic, topic_id)
        for source in marker.sources
        for topic, topic_id in source.topics
        if topic in source.records and _counts(source, (topic, topic_id), topic_ids)
    ]
    ids = dict(sources)
    ends, needed = by_topic(marker.end, ids), {} if running else by_topic(marker.needed, ids)
    topics = {
        topic: TopicNeeds(
            ids[topic],
            unread,
            {p: at for p, at in needed.get(topic, {}).items() if at < unread.get(p, at)},
        )
        for topic, unread in ends.items()
    }
    return LogNeeds(topics, running, marker.written_at_ms)


def needs_of_rebuild(
    first: CommitMarker, last: CommitMarker, topic_ids: Mapping[TopicName, str], now_ms: Millis
) -> LogNeeds:
    """What a rebuild of a running lane's state needs, on another node or by a follower.

    Its needed positions advance with its event time. What is left until they are removed is the
    rest of the retention, divided by how much slower than the clock that is: a state that spans
    most of the retention is safe while event time keeps up, and is not when inputs are silent.

    Args:
        first: one of its latest markers.
        last: its last.
        topic_ids: as of `needs_of`.
        now_ms: the present.
    """
    needs = needs_of(last, topic_ids)
    begun_ms, reached_ms = first.eviction_ms, last.eviction_ms
    moved_ms = 0 if begun_ms is None or reached_ms is None else reached_ms - begun_ms
    passed_ms = max(1, now_ms - first.written_at_ms)
    speed = min(1.0, max(0.0, moved_ms / passed_ms))
    topics = {topic: one for topic, one in needs.topics.items() if one.rebuild}
    return LogNeeds(topics, running=True, spare=NEAR * (1 - speed))


def _counts(
    source: MarkedSource, topic: tuple[TopicName, TopicId], topic_ids: Mapping[TopicName, str]
) -> bool:
    name, topic_id = topic
    return topic_ids.get(name, topic_id if topic == source.redrive else None) == topic_id


@dataclass(frozen=True, slots=True)
class Observed:
    """A topic as observed at a time.

    Args:
        topic: its name.
        log: its retention and ranges.
        offsets_at: its offsets by time.
        now_ms: the time of the observation.
    """

    topic: TopicName
    log: TopicLog
    offsets_at: OffsetsAt
    now_ms: Millis

    def expiring(self, needs: LogNeeds) -> tuple[ExpiringRecords, ...]:
        """The records that a lane needs and that are removed soon, or were removed.

        A partition with such unread records is not reported for a rebuild as well.
        """
        log, of_topic, kept_ms = self.log, needs.topics[self.topic], self.log.kept_ms or 0
        if not log.ends:
            return self._unanswered(of_topic)
        if needs.spare is not None:
            return self._near(of_topic.rebuild, needs.spare)
        starts = {} if needs.running else log.starts
        unread = _below({**log.starts, **of_topic.unread}, log.ends)
        half_ms = Millis(self.now_ms - kept_ms // 2)
        found = (*self._removed(Use.UNREAD, unread, starts), *self._old(unread, half_ms))
        found = (*found, *self._crowded(_without(unread, found)))
        rebuild = _without(of_topic.rebuild, found)
        since_ms = self.now_ms if needs.since_ms is None else needs.since_ms
        left_ms = Millis(min(self.now_ms, 2 * self.now_ms - since_ms - kept_ms))
        return (
            *found,
            *self._removed(Use.REBUILD, rebuild, starts),
            *self._old(rebuild, left_ms, Use.REBUILD),
        )

    def _near(self, rebuild: Mapping[int, Offset], spare: float) -> tuple[ExpiringRecords, ...]:
        """The records of a rebuild that are removed when this part of the retention has passed."""
        kept_ms = self.log.kept_ms or 0
        near_ms = Millis(self.now_ms - kept_ms + int(kept_ms * spare))
        found = (
            *self._removed(Use.REBUILD, rebuild, self.log.starts),
            *self._old(rebuild, near_ms, Use.REBUILD),
        )
        return (*found, *self._crowded(_without(rebuild, found), spare, Use.REBUILD))

    def _removed(
        self, use: Use, needed: Mapping[int, Offset], starts: Mapping[int, Offset]
    ) -> Iterator[ExpiringRecords]:
        if gone := _below(needed, starts):
            yield ExpiringRecords(self.topic, _partitions(gone), use, Cause.REMOVED)

    def _old(
        self, needed: Mapping[int, Offset], than_ms: Millis, use: Use = Use.UNREAD
    ) -> Iterator[ExpiringRecords]:
        """The needed records that are older than a time, if records are removed by age."""
        there = {p: at for p, at in needed.items() if at >= self.log.starts.get(p, at)}
        if self.log.kept_ms is None or not there:
            return
        if old := _below(there, self.offsets_at(than_ms)):
            yield self._aged(use, old, self._oldest_ms(old, than_ms, self.log.kept_ms))

    def _aged(self, use: Use, old: Mapping[int, int], oldest_ms: Millis) -> ExpiringRecords:
        kept_ms = self.log.kept_ms or 0
        from_ms = Millis(oldest_ms + kept_ms)
        return ExpiringRecords(
            self.topic, _partitions(old), use, Cause.AGE, kept_ms, oldest_ms, from_ms
        )

    def _oldest_ms(self, old: Mapping[int, Offset], than_ms: Millis, kept_ms: int) -> Millis:
        """The time before which none of these records was written; at least the retention ago."""
        low_ms, high_ms = Millis(self.now_ms - kept_ms), than_ms
        if low_ms >= high_ms or _below(old, self.offsets_at(low_ms)):
            return low_ms
        for _ in range(HALVINGS):
            middle_ms = Millis((low_ms + high_ms) // 2)
            if _below(old, self.offsets_at(middle_ms)):
                high_ms = middle_ms
            else:
                low_ms = middle_ms
        return low_ms

    def _crowded(
        self, needed: Mapping[int, Offset], part: float = 0.5, use: Use = Use.UNREAD
    ) -> Iterator[ExpiringRecords]:
        """Partitions of limited size that have removed records, and of which much is needed.

        That is, the records before the needed ones are less than a part of those that are there.

        Kafka reports the sizes of partitions only to administrators, so offsets are compared.
        """
        starts, ends = self.log.starts, self.log.ends
        crowded = {
            p: at
            for p, at in needed.items()
            if 0 < starts.get(p, 0) <= at and at - starts[p] < part * (ends.get(p, at) - starts[p])
        }
        if self.log.limited and crowded:
            yield ExpiringRecords(self.topic, _partitions(crowded), use, Cause.SIZE)

    def _unanswered(self, needs: TopicNeeds) -> tuple[ExpiringRecords, ...]:
        """Unread records of partitions that do not answer, by the time since when they exist."""
        kept_ms = self.log.kept_ms
        if kept_ms is None:
            return ()
        half_ms = self.now_ms - kept_ms // 2
        old = {p: at_ms for p, at_ms in needs.unread_since.items() if at_ms < half_ms}
        return (self._aged(Use.UNREAD, old, min(old.values())),) if old else ()


def _below(offsets: Mapping[int, Offset], others: Mapping[int, Offset]) -> dict[int, Offset]:
    return {p: at for p, at in offsets.items() if p in others and at < others[p]}


def _without(offsets: Mapping[int, Offset], found: Iterable[ExpiringRecords]) -> dict[int, Offset]:
    known = {p for one in found for p in one.partitions}
    return {p: at for p, at in offsets.items() if p not in known}


def _partitions(offsets: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(offsets))
