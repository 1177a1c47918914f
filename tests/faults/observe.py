"""Readers of topics: `read_committed` during a run, and both isolation levels after it."""

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.reader import TopicReader
from brokers.kafka_interface import Isolation
from brokers.records import KafkaRecord
from pipeline.errors import MedusaError
from pipeline.ids import Offset, TopicName
from tests.faults.segments import Log, read_segment

READ_WITHIN_S = 30.0
_POLL_S = 0.2
_PAUSE_S = 0.2
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Observed:
    """A record and the time of its first read: seconds on the monotonic clock."""

    record: KafkaRecord
    at_s: float


class Observer:
    """Reads topics from their beginning on its own thread; survives broker faults.

    Args:
        bootstrap: the brokers.
        topics: topic → number of partitions.
    """

    def __init__(self, bootstrap: str, topics: dict[TopicName, int]) -> None:
        self._bootstrap = bootstrap
        self._positions = {
            topic: dict.fromkeys(range(count), Offset(0)) for topic, count in topics.items()
        }
        self._seen: dict[TopicName, list[Observed]] = {topic: [] for topic in topics}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join(READ_WITHIN_S)

    def seen(self, topic: TopicName) -> tuple[Observed, ...]:
        """The records read from a topic so far, in order of reading."""
        return tuple(self._seen[topic])

    def forget(self, kept: int) -> None:
        """Keep only the newest records of each topic; a run without a history needs no others.

        Args:
            kept: how many; at least one.
        """
        for seen in self._seen.values():
            del seen[:-kept]

    def last(self, topic: TopicName) -> Observed | None:
        """The newest record of a topic with one partition."""
        seen = self._seen[topic]
        return seen[-1] if seen else None

    def first_since(self, topics: Iterable[TopicName], at_s: float) -> float | None:
        """Time of the first record of some topics after a moment; None before there is one."""
        times = [
            observed.at_s
            for topic in topics
            for observed in reversed(self._seen[topic])
            if observed.at_s >= at_s
        ]
        return min(times, default=None)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._read()
            except MedusaError as error:
                _LOG.debug("the observer reads again: %s", error)
                self._stop.wait(_PAUSE_S)

    def _read(self) -> None:
        with TopicReader(self._bootstrap, READ_WITHIN_S) as reader:
            reader.assign(self._positions)
            while not self._stop.is_set():
                for record in reader.poll(_POLL_S):
                    self._seen[record.topic].append(Observed(record, time.monotonic()))
                    positions = self._positions[record.topic]
                    positions[record.partition] = Offset(record.offset + 1)


def read_all(
    admin: KafkaAdmin, bootstrap: str, topics: tuple[TopicName, ...], isolation: Isolation
) -> tuple[KafkaRecord, ...]:
    """All records of some topics by one isolation level.

    Raises:
        MedusaError: the broker does not answer.
    """
    ends = admin.end_offsets(topics, isolation)
    with TopicReader(bootstrap, READ_WITHIN_S, isolation=isolation) as reader:
        reader.assign(admin.start_offsets(topics))
        return tuple(reader.read_to(ends))


def read_logs(folder: Path, topics: Iterable[TopicName]) -> tuple[Log, ...]:
    """The partitions of some topics, read from a broker's files, which contain appends at once.

    Args:
        folder: the broker's data folder.
        topics: their names.
    """
    found = []
    for topic in topics:
        for path in sorted(folder.glob(f"{topic}-*")):
            number = path.name.removeprefix(f"{topic}-")
            if number.isdecimal():
                segments = sorted(path.glob("*.log"))
                batches = [b for segment in segments for b in read_segment(segment.read_bytes())]
                found.append(Log(topic, int(number), tuple(batches)))
    return tuple(found)
