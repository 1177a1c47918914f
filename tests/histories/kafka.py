"""Kafka in memory: topics with ids, transactions that fence each other, readers.

As much of it as a node, a deploy and a lane ask for. What is committed is visible at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from zlib import crc32

from brokers.kafka.admin import Isolation
from brokers.records import Ends, KafkaRecord, NewTopicSpec, TopicDescription
from pipeline.dead_letters import trimmer
from pipeline.errors import FencedError, RefusedError, RetryError
from pipeline.ids import Millis, Offset, TopicName
from tests.histories.turns import CrashedError, Turn, pause

_TIME_TYPE = "message.timestamp.type"
_APPEND = "LogAppendTime"
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass
class Topic:
    """One topic in one life; `starts` is where its partitions begin since retention was there."""

    topic_id: str
    config: Mapping[str, str]
    partitions: list[list[KafkaRecord]]
    starts: dict[int, int] = field(default_factory=dict)

    def start(self, partition: int) -> Offset:
        """The oldest offset that is left."""
        return Offset(self.starts.get(partition, 0))

    def end(self, partition: int) -> Offset:
        """Where a partition ends; one that does not exist ends where it begins."""
        there = partition < len(self.partitions)
        return Offset(len(self.partitions[partition])) if there else Offset(0)

    def read(self, partition: int, start: int, end: int) -> list[KafkaRecord]:
        """The records of a range that are left; of a partition that is gone there are none."""
        if partition >= len(self.partitions):
            return []
        return self.partitions[partition][max(start, self.start(partition)) : end]

    def at(self, partition: int, offset: int) -> KafkaRecord | None:
        """The record at an offset, if there is one."""
        return next(iter(self.read(partition, offset, offset + 1)), None)


class Describing:
    """An answer that is there at once."""

    def __init__(self, found: Mapping[TopicName, TopicDescription]) -> None:
        self._found = found

    def done(self) -> bool:
        """Always."""
        return True

    def result(self) -> Mapping[TopicName, TopicDescription]:
        """What was found."""
        return self._found


class Topics:
    """The topics of a cluster by name, and by id those that are gone, too."""

    def __init__(self) -> None:
        self.topics: dict[TopicName, Topic] = {}
        self.by_id: dict[str, Topic] = {}

    def topic(self, name: TopicName) -> Topic:
        """A topic that exists."""
        found = self.topics.get(name)
        if found is None:
            raise RetryError("the topic does not exist", place=f"topic {name}")
        return found


class Kafka(Topics):
    """The cluster, its admin client, its readers and its writers.

    Args:
        now_ms: the broker's clock.
        append_time: whether topics without a setting of their own stamp records themselves.
    """

    def __init__(self, now_ms: Callable[[], Millis], *, append_time: bool = False) -> None:
        super().__init__()
        self.now_ms = now_ms
        self.committed: Callable[[Transaction], None] = lambda _: None
        self._append_time = append_time
        self._ids = 0
        self._producers: dict[str, int] = {}

    # --- topics -----------------------------------------------------------------------------------

    def create(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Make a topic."""
        self._ids += 1
        made = Topic(f"id-{self._ids}", config or {}, [[] for _ in range(partitions)])
        self.topics[TopicName(name)] = self.by_id[made.topic_id] = made

    def grow(self, name: str) -> None:
        """A partition more."""
        self.topics[TopicName(name)].partitions.append([])

    def create_topics(self, topics: tuple[NewTopicSpec, ...]) -> tuple[TopicName, ...]:
        """Create what is missing."""
        new = [spec for spec in topics if spec.name not in self.topics]
        for spec in new:
            self.create(spec.name, spec.partitions, dict(spec.config))
        return tuple(spec.name for spec in new)

    def delete_topics(self, topics: Iterable[TopicName]) -> tuple[TopicName, ...]:
        """Delete what exists."""
        return tuple(name for name in topics if self.topics.pop(name, None) is not None)

    def delete_group(self, _group: str) -> bool:
        """Groups are mirrors for tools, and nobody looks."""
        return False

    def begin_setting_offsets(self, _group: str, _offsets: object) -> None:
        """The same."""

    def topic_names(self) -> tuple[TopicName, ...]:
        """All of them."""
        return tuple(sorted(self.topics))

    def describe(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        """The ones that exist."""
        return {
            name: TopicDescription(name, one.topic_id, len(one.partitions))
            for name in topics
            if (one := self.topics.get(name)) is not None
        }

    def begin_describing(self, topics: Iterable[TopicName]) -> Describing:
        """The same, answered at once."""
        return Describing(self.describe(topics))

    def topic_configs(self, topics: Iterable[TopicName]) -> Mapping[TopicName, Mapping[str, str]]:
        """Their settings."""
        return {name: self._config(self.topics[name]) for name in topics if name in self.topics}

    def end_offsets(
        self, topics: Iterable[TopicName], isolation: Isolation = Isolation.COMMITTED
    ) -> Ends:
        """Where topics end."""
        del isolation
        return self._offsets(topics, Topic.end)

    def both_ends(self, topics: Iterable[TopicName]) -> tuple[Ends, Ends]:
        """Both are where topics end: no transaction stays open."""
        names = tuple(topics)
        return self.end_offsets(names), self.end_offsets(names)

    def delete_records(self, topic: TopicName, before: Mapping[int, Offset]) -> None:
        """Retention."""
        there = self.topic(topic)
        for partition, offset in before.items():
            there.starts[partition] = max(there.start(partition), offset)

    def start_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """Where they begin."""
        return self._offsets(topics, Topic.start)

    def partition_ends(
        self, topic: TopicName, partitions: int, isolation: Isolation
    ) -> Mapping[int, Offset]:
        """Where the partitions of one topic end."""
        del isolation
        return {p: self.topic(topic).end(p) for p in range(partitions)}

    def offsets_for_time(self, topic: TopicName, time_ms: Millis) -> Mapping[int, Offset]:
        """The first records that are not older."""
        return {
            p: next((r.offset for r in records if r.timestamp_ms >= time_ms), Offset(len(records)))
            for p, records in enumerate(self.topic(topic).partitions)
        }

    def await_decided(self, _topic: TopicName) -> bool:
        """Whatever was committed is there at once."""
        return True

    def _offsets(self, topics: Iterable[TopicName], of: Callable[[Topic, int], Offset]) -> Ends:
        return {
            name: {p: of(self.topics[name], p) for p in range(len(self.topics[name].partitions))}
            for name in topics
            if name in self.topics
        }

    def _config(self, topic: Topic) -> Mapping[str, str]:
        mine = _APPEND if self._append_time else "CreateTime"
        return {_TIME_TYPE: mine, **topic.config}

    # --- records ----------------------------------------------------------------------------------

    def append(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int,
        headers: Headers = (),
        partition: int = -1,
    ) -> KafkaRecord:
        """Add one record; the topic says whether its timestamp counts."""
        there = self.topic(topic)
        count = len(there.partitions)
        at = crc32(key or b"") % count if partition < 0 else partition
        if at >= count:
            raise RefusedError("the topic has no such partition", place=f"topic {topic}, {at}")
        if self._config(there)[_TIME_TYPE] == _APPEND:
            timestamp_ms = self.now_ms()
        records = there.partitions[at]
        record = KafkaRecord(
            topic, at, Offset(len(records)), Millis(timestamp_ms), key, value, headers
        )
        records.append(record)
        return record

    # --- what the program makes of a cluster ------------------------------------------------------

    def last(self, topic: TopicName) -> KafkaRecord | None:
        """The last record of partition 0."""
        there = self.topics.get(topic)
        left = [] if there is None else there.read(0, 0, there.end(0))
        return left[-1] if left else None

    def oldest_ms(self, topic: TopicName, partitions: int) -> Millis | None:
        """The least timestamp among the first records."""
        there = self.topic(topic)
        firsts = (there.read(p, 0, there.end(p))[:1] for p in range(partitions))
        return min((one.timestamp_ms for found in firsts for one in found), default=None)

    def fence(self, transactional_id: str) -> int:
        """The next epoch of a producer."""
        self._producers[transactional_id] = epoch = self._producers.get(transactional_id, 0) + 1
        return epoch

    def check(self, transactional_id: str, epoch: int) -> None:
        """Raise if a newer producer is there."""
        if self._producers.get(transactional_id) != epoch:
            raise FencedError("a newer producer has this transactional id")


def read_last(
    brokers: Kafka, topic: TopicName, partition: int, count: int, _timeout_s: float
) -> list[KafkaRecord]:
    """Stands in for the function of `brokers/kafka/reader.py`."""
    pause()
    there = brokers.topic(topic)
    return there.read(partition, 0, there.end(partition))[-count:]


class LogReader:
    """Stands in for the class of `brokers/kafka/reader.py`."""

    def __init__(self, brokers: Kafka, _timeout_s: float) -> None:
        self._kafka = brokers

    def last(self, topic: TopicName) -> KafkaRecord | None:
        """The last record of partition 0."""
        return self._kafka.last(topic)


class Trimmer(trimmer.Trimmer):
    """Applies retention where the lane looks, without a thread of its own."""

    def look(self) -> None:
        """Remove old dead letters if it is time to."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._due_s:
            self._due_s = now_s + trimmer.EVERY_S
            self.trim()


class Transaction:
    """Stands in for `TransactionalWriter`."""

    def __init__(self, brokers: Kafka, transactional_id: str) -> None:
        self.id = transactional_id
        self.turn = Turn.current
        self.records: list[KafkaRecord] = []
        self._kafka, self._epoch = brokers, 0
        self._sent: list[dict[str, Any]] = []

    def start(self, _deadline: object) -> None:
        """Fence every older instance."""
        self._epoch = self._kafka.fence(self.id)
        pause()

    def look_at(self, _topic: TopicName) -> None:
        """A topic is as it is when records are committed."""

    def begin(self) -> None:
        """Open a transaction."""
        self._check()
        self._sent = []

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int,
        headers: Headers = (),
        partition: int = -1,
    ) -> None:
        """Add one record."""
        self._sent.append(
            {
                "topic": topic,
                "key": key,
                "value": value,
                "timestamp_ms": timestamp_ms,
                "headers": tuple(headers),
                "partition": partition,
            }
        )

    def send_many(
        self,
        topic: TopicName,
        records: Iterable[tuple[bytes | None, bytes, int, int]],
        headers: Headers = (),
    ) -> int:
        """Add many, each with the same headers; returns how many."""
        before = len(self._sent)
        for key, value, timestamp_ms, partition in records:
            self.send(
                topic, key, value, timestamp_ms=timestamp_ms, headers=headers, partition=partition
            )
        return len(self._sent) - before

    def commit(self, _deadline: object) -> None:
        """Make it visible."""
        self._check()
        for sent in self._sent:
            self._kafka.topic(sent["topic"])
        self.records = [self._kafka.append(**sent) for sent in self._sent]
        self._sent = []
        self._kafka.committed(self)

    def abort(self, _deadline: object) -> None:
        """Give it up."""
        self._sent = []

    def close(self) -> None:
        """Drop the connection."""

    def _check(self) -> None:
        if self.turn is not None and self.turn.dead:
            raise CrashedError
        self._kafka.check(self.id, self._epoch)


class Producer:
    """Stands in for `PlainProducer`."""

    def __init__(self, brokers: Kafka, *_settings: object) -> None:
        self._kafka, self._turn = brokers, Turn.current
        self.undelivered = 0

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: Millis | None = None,
        partition: int = -1,
    ) -> None:
        """Hand one record over."""
        if self._turn is not None and self._turn.dead:
            return
        at = self._kafka.now_ms() if timestamp_ms is None else timestamp_ms
        if topic in self._kafka.topics:
            self._kafka.append(topic, key, value, timestamp_ms=at, partition=partition)

    def close(self) -> None:
        """Drop the connection."""


class Reader:
    """Stands in for `TopicReader`."""

    def __init__(self, brokers: Kafka, _timeout_s: float = 0.0, **_settings: object) -> None:
        self._kafka = brokers
        self._at: dict[TopicName, dict[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def assign(self, starts: Ends) -> None:
        """Read from these offsets on."""
        self._at = {topic: dict(offsets) for topic, offsets in starts.items()}

    def poll(self, _timeout_s: float, most: int = 1_000) -> list[KafkaRecord]:
        """What there is."""
        found: list[KafkaRecord] = []
        for topic, offsets in self._at.items():
            there = self._kafka.topic(topic)
            for partition, offset in offsets.items():
                if offset > there.end(partition):
                    raise RetryError("the offset is out of range", place=f"topic {topic}")
                read = there.read(partition, offset, there.end(partition))[: most - len(found)]
                found += read
                offsets[partition] = read[-1].offset + 1 if read else offset
        return found

    def read_to(self, ends: Ends) -> Iterator[KafkaRecord]:
        """Everything before some offsets."""
        for topic, offsets in self._at.items():
            for partition, offset in offsets.items():
                end = ends.get(topic, {}).get(partition, Offset(0))
                yield from self._kafka.topic(topic).read(partition, offset, end)

    def close(self) -> None:
        """Drop the connection."""
