"""Tentative topics of a lane's inputs: read as they grow, for the forks of the lane."""

import logging
import threading
from collections.abc import Mapping
from typing import Final

from brokers.kafka_interface import Isolation, NoSuchTopicError, RecordReader, complete
from brokers.records import Ends
from pipeline.boundaries.deadline import Awaited
from pipeline.boundaries.lane_time import LaneTime
from pipeline.boundaries.profile import DerivedInput, profile
from pipeline.boundaries.tentative_input import TentativeInput
from pipeline.clock import steady_ms
from pipeline.errors import RetryError
from pipeline.ids import Millis, StreamName, TopicName
from pipeline.lanes.fork_phases import rest_ms
from pipeline.names import tentative_topic
from pipeline.planner.plan import DerivedStream
from pipeline.spark.query.lowered import AssignedTopic, TopicRole
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.tentative.upstream import Upstream

POLL_S: Final = 0.1
TIMEOUT_S: Final = 20.0
END_S: Final = 10.0

_log = logging.getLogger(__name__)


class Upstreams:
    """Follows the tentative results of a lane's inputs. Thread-safe.

    Args:
        settings: of the lane.
        host: of its node.
    """

    def __init__(self, settings: LaneSettings, host: LaneHost) -> None:
        self._host = host
        self._label = str(settings.lane.fragment)
        followed = {
            one.name
            for one in settings.fragment.inputs
            if isinstance(one, DerivedStream) and one.tentative
        }
        inputs = profile(settings.fragment, settings.topic_ids, settings.life).inputs
        self._inputs = tuple(
            one for one in inputs if isinstance(one, DerivedInput) and one.stream in followed
        )
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._read: Mapping[StreamName, Upstream] = {}
        self._topics: Mapping[StreamName, AssignedTopic] = {}

    @property
    def topics(self) -> Mapping[StreamName, AssignedTopic]:
        """The topics by input, as a fork reads them; none as long as they were not all read."""
        return self._topics

    @property
    def awaited(self) -> Awaited:
        """The boundaries that the writers of the inputs hold back."""
        with self._lock:
            return {stream: one.awaited for stream, one in self._read.items() if one.awaited}

    def begin(self) -> None:
        """Read from now on."""
        if self._inputs and self._thread is None:
            name = f"tentative inputs of {self._label}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Read nothing more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(END_S)

    def offers(self, stable: LaneTime, fork: LaneTime) -> tuple[TentativeInput, ...] | None:
        """What a fork may read, and goes on with; None: what it has read of an input is outdated.

        Args:
            stable: event time of the lane.
            fork: that of the fork.
        """
        found: list[TentativeInput] = []
        with self._lock:
            for stream, upstream in self._read.items():
                covered_ms, taken = stable.writers[stream].covered_ms, fork.taken.get(stream)
                if covered_ms is not None:
                    upstream.forget(covered_ms)
                if taken is None:
                    offer = upstream.offer(fork.writers[stream].covered_ms)
                    if offer is not None and not _is_overtaken(offer, stable):
                        found.append(offer)
                    continue
                renewed = upstream.renewed(taken)
                if renewed is None or _is_overtaken(renewed, stable):
                    return None
                found.append(renewed)
        return tuple(found)

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                with self._host.kafka.reader(TIMEOUT_S, isolation=Isolation.UNCOMMITTED) as reader:
                    self._follow(reader)
            except Exception as error:  # noqa: BLE001 - it is tried again
                failures += 1
                what = "tentative results of inputs are not read: %s"
                _log.warning(what, error, extra={"fragment": self._label})
                self._stop.wait(rest_ms(failures) / 1000)

    def _follow(self, reader: RecordReader) -> None:
        """Read the topics from their beginnings until the end.

        Raises:
            MedusaError: they cannot be read, or have more partitions now.
        """
        read, ends = self._opened(reader)
        while not self._stop.is_set():
            records, now_ms = reader.poll(POLL_S), steady_ms(self._host.clock)
            with self._lock:
                for record in records:
                    for upstream in read[record.topic].values():
                        upstream.add(record, now_ms)
                if any(one.has_grown for those in read.values() for one in those.values()):
                    self._read = {}
                    raise RetryError("a topic of tentative results has more partitions")
                if not self._read and _has_reached(reader.positions, ends):
                    self._read = {s: one for those in read.values() for s, one in those.items()}

    def _opened(
        self, reader: RecordReader
    ) -> tuple[dict[TopicName, dict[StreamName, Upstream]], Ends]:
        """The topics, assigned from their beginnings; and their present ends."""
        admin = self._host.resolver.admin
        named = {one.stream: tentative_topic(one.topic) for one in self._inputs}
        described = admin.describe(tuple(sorted(set(named.values()))))
        read: dict[TopicName, dict[StreamName, Upstream]] = {}
        topics: dict[StreamName, AssignedTopic] = {}
        for one in self._inputs:
            topic = named[one.stream]
            if topic not in described:
                raise NoSuchTopicError("the topic does not exist", place=f"topic {topic}")
            count = described[topic].partitions
            topics[one.stream] = AssignedTopic(topic, count, TopicRole.TENTATIVE)
            read.setdefault(topic, {})[one.stream] = Upstream(one, topic, count)
        names = tuple(read)
        ends = complete(admin.end_offsets(names, Isolation.UNCOMMITTED), names)
        reader.assign(complete(admin.start_offsets(names), names))
        with self._lock:
            self._read, self._topics = {}, topics
        return read, ends


def _is_overtaken(one: TentativeInput, stable: LaneTime) -> bool:
    """Whether the stable boundary of the input is as far as that of its tentative records."""
    seen = stable.writers[one.stream]
    newest_ms = seen.pending[-1].boundary_ms if seen.pending else seen.covered_ms
    return (newest_ms or Millis(0)) >= one.complete.boundary_ms


def _has_reached(positions: Ends, ends: Ends) -> bool:
    """Whether everything that was there is read."""
    return all(
        positions.get(topic, {}).get(partition, 0) >= end
        for topic, there in ends.items()
        for partition, end in there.items()
    )
