"""Reader of an output: its stable topic, its boundaries, its tentative topic if there is one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from brokers.kafka_interface import NoSuchTopicError, NotNowError, RecordReader, TopicAdmin
from brokers.records import MADE_AGAIN, Ends, KafkaRecord, TopicDescription
from pipeline.clock import Clock
from pipeline.errors import RefusedError
from pipeline.ids import Millis, Offset, TopicId, TopicName
from pipeline.names import boundaries_topic, tentative_topic
from pipeline.reader import stable
from pipeline.reader.covered import Covered
from pipeline.reader.results import Handler, Position, Stable, Start, Tentative, Undone
from pipeline.tentative import records
from pipeline.tentative.by_time import MOST_OPEN
from pipeline.tentative.view import Event, OnDone, OnStable, OnTentative, OnUndo, View

DESCRIBE_S: Final = 5.0
"""Pause between two descriptions of the topics, which may get partitions."""
POLL_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Connected:
    """What a reader needs of Kafka.

    Args:
        topics: describes topics.
        reader: of committed records; the reader of results closes it.
        clock: measures the pause between two descriptions.
    """

    topics: TopicAdmin
    reader: RecordReader
    clock: Clock


class Reader:
    """Reads the results of an output, and reports each to a handler. Not thread-safe.

    At its start it reports no tentative results until the stable ones that exist were read; then it
    reports all tentative ones that count, whether or not an earlier reader has reported them. After
    an exception of `poll`, close it and open another one at its `position`.

    Args:
        connected: Kafka.
        topic: the result topic.
        handler: gets the results.
        start: where it begins.
        most_open: how many tentative results it keeps.

    Raises:
        NoSuchTopicError: the topic does not exist.
        RefusedError: the position is one in a topic that was deleted.
        NotNowError: a partition has no leader now.
    """

    def __init__(
        self,
        connected: Connected,
        topic: TopicName,
        handler: Handler,
        start: Position | Start = Start.BEGINNING,
        most_open: int = MOST_OPEN,
    ) -> None:
        self._topics = connected.topics
        self._reader = connected.reader
        self._clock = connected.clock
        self._topic = topic
        self._handler = handler
        self._boundaries, self._tentative = boundaries_topic(topic), tentative_topic(topic)
        self._described = self._describe()
        self._topic_id = TopicId(self._described[topic].topic_id)
        self._described_at_s = self._clock.monotonic_s()
        self._covered = Covered(self._topic_id)
        begin = self._begin(start)
        passed_ms = None if begin.passed_ms is None else Millis(begin.passed_ms)
        self._view = View(passed_ms, most_open)
        offsets = {one: Offset(at) for one, at in begin.offsets.items()}
        if self._tentative in self._described:
            self._recall(offsets)
        beginnings = self._topics.start_offsets([self._boundaries])
        self._reader.assign({topic: offsets, **beginnings})
        self._existing: Ends | None = self._topics.end_offsets([topic, self._boundaries])
        self._position = begin

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def position(self) -> Position:
        """Behind the results that were reported by the calls of `poll` that have returned."""
        return self._position

    @property
    def open_results(self) -> int:
        """How many tentative results count now."""
        return self._view.open_results

    def poll(self, timeout_s: float = POLL_S) -> int:
        """Report what is there; waits for a first record for so long.

        Returns:
            The number of records read, of all topics.

        Raises:
            TooManyTentativeError: more tentative results count than it keeps.
            RefusedError: the topic was deleted and made again.
            OffsetGoneError: retention has removed results that were not read.
        """
        self._follow_topics()
        found = self._reader.poll(timeout_s)
        for record in found:
            self._take(record)
        read = self._reader.positions.get(self._topic, {})
        covered_ms = self._covered.up_to(read)
        if covered_ms is not None and covered_ms != self._view.covered_ms:
            self._report(self._view.promised(covered_ms))
        self._join_tentative()
        self._position = Position(self._topic_id, self._view.covered_ms, dict(read))
        return len(found)

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._reader.close()

    # --- start ------------------------------------------------------------------------------------

    def _begin(self, start: Position | Start) -> Position:
        if isinstance(start, Position):
            if start.topic_id != self._topic_id:
                raise RefusedError(
                    f"the topic {MADE_AGAIN} since the position was stored",
                    place=f"topic {self._topic}",
                    hint="begin without a position.",
                )
            added = self._of_topic(self._topics.start_offsets([self._topic]))
            return Position(self._topic_id, start.passed_ms, {**added, **start.offsets})
        if start is Start.BEGINNING:
            beginnings = self._of_topic(self._topics.start_offsets([self._topic]))
            return Position(self._topic_id, None, dict(beginnings))
        ends = self._of_topic(self._topics.end_offsets([self._topic]))
        return Position(self._topic_id, self._covered_at(ends), dict(ends))

    def _covered_at(self, ends: Mapping[int, Offset]) -> Millis | None:
        """The boundary at these positions, from the boundaries that exist."""
        covered = Covered(self._topic_id)
        self._reader.assign(self._topics.start_offsets([self._boundaries]))
        for record in self._reader.read_to(self._topics.end_offsets([self._boundaries])):
            covered.add(record)
        return covered.up_to(ends)

    def _recall(self, offsets: Mapping[int, Offset]) -> None:
        """Read the ids of the stable results before the start that no boundary has passed."""
        topic, passed_ms = self._topic, self._view.covered_ms
        starts = dict(self._of_topic(self._topics.start_offsets([topic])))
        if passed_ms is not None and passed_ms >= 0:
            found = self._topics.offsets_for_time(topic, Millis(passed_ms + 1))
            starts = {one: max(at, found.get(one, at)) for one, at in starts.items()}
        lowers = {one: at for one, at in starts.items() if at < offsets.get(one, 0)}
        self._reader.assign({topic: lowers})
        for record in self._reader.read_to({topic: {one: offsets[one] for one in lowers}}):
            headers = stable.decode(record, self._topic_id)
            if headers is not None and headers.id is not None:
                self._view.known(headers.id, record.timestamp_ms)

    def _of_topic(self, found: Ends) -> Mapping[int, Offset]:
        if self._topic not in found:
            raise NotNowError("a partition has no leader now", place=f"topic {self._topic}")
        return found[self._topic]

    # --- topics -----------------------------------------------------------------------------------

    def _describe(self) -> Mapping[TopicName, TopicDescription]:
        names = (self._topic, self._boundaries, self._tentative)
        found = self._topics.describe(names)
        if self._topic not in found:
            raise NoSuchTopicError("the topic does not exist", place=f"topic {self._topic}")
        return found

    def _follow_topics(self) -> None:
        """Read partitions, and topics, that were added."""
        if self._clock.monotonic_s() - self._described_at_s < DESCRIBE_S:
            return
        self._described = self._describe()
        self._described_at_s = self._clock.monotonic_s()
        if self._described[self._topic].topic_id != self._topic_id:
            raise RefusedError(f"the topic {MADE_AGAIN}", place=f"topic {self._topic}")
        names = [self._topic, self._boundaries]
        if self._existing is None:
            names.append(self._tentative)
        self._add(names)

    def _join_tentative(self) -> None:
        """Read the tentative topic, once the other records that existed at the start were read."""
        if self._existing is None:
            return
        read = self._reader.positions
        if all(
            read.get(topic, {}).get(partition, -1) >= end
            for topic, ends in self._existing.items()
            for partition, end in ends.items()
        ):
            self._existing = None
            self._add([self._tentative])

    def _add(self, names: Iterable[TopicName]) -> None:
        """Read all partitions of some topics; those that are not read yet from their beginning."""
        read = self._reader.positions
        missing = [
            name
            for name in names
            if name in self._described
            and self._described[name].partitions > len(read.get(name, {}))
        ]
        if missing:
            added = self._topics.start_offsets(missing)
            self._reader.assign(
                {**read, **{name: {**added[name], **read.get(name, {})} for name in added}}
            )

    # --- records ----------------------------------------------------------------------------------

    def _take(self, record: KafkaRecord) -> None:
        if record.topic == self._boundaries:
            self._covered.add(record)
        elif record.topic == self._tentative:
            found = records.decode(record, self._topic_id)
            if not isinstance(found, records.Unread):
                self._report(self._view.tentative(found))
        else:
            self._take_stable(record)

    def _take_stable(self, record: KafkaRecord) -> None:
        headers = stable.decode(record, self._topic_id)
        if headers is None:
            return
        seen = self._view.stable(headers.id, record.value, record.timestamp_ms)
        confirms = next((one.confirms for one in seen if isinstance(one, OnStable)), None)
        at = (record.timestamp_ms, record.partition)
        if headers.id is not None and headers.corrects is not None and record.value is None:
            self._handler.on_undo(Undone(headers.id, record.key, *at, None, headers.corrects))
            return
        self._handler.on_stable(
            Stable(
                headers.id,
                record.key,
                record.value,
                *at,
                offset=record.offset,
                confirms=confirms,
                corrects=headers.corrects,
            )
        )

    def _report(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case OnTentative(found):
                    self._handler.on_tentative(
                        Tentative(
                            found.id,
                            found.key,
                            found.value,
                            found.timestamp_ms,
                            found.partition,
                            str(found.generation),
                        )
                    )
                case OnUndo(undo):
                    at = (undo.timestamp_ms, undo.partition, str(undo.generation))
                    self._handler.on_undo(Undone(undo.id, undo.key, *at, None))
                case OnDone(generation):
                    self._handler.on_done(str(generation))
                case OnStable():
                    pass
