"""Poll of the heartbeats of the participant's nodes."""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from brokers.kafka_interface import Isolation, KafkaCluster, RecordReader
from brokers.records import KafkaRecord
from pipeline.clock import Clock, steady_ms
from pipeline.errors import MedusaError, NewerFormatError
from pipeline.heartbeats.codec import NoHeartbeatError, decode
from pipeline.heartbeats.detector import Detector, Suspect, Suspicion, Why
from pipeline.ids import SteadyMillis, TopicName

POLL_S: Final = 0.1
"""How long a heartbeat is awaited: after that the own ones may be old."""
PAUSE_S: Final = 0.03
"""Between two reads, so that heartbeats of many nodes are read together."""
READER_S: Final = 1.0
"""How long Kafka's answer is awaited."""
REOPENED_MS: Final = 5_000
"""After this time without an own heartbeat the reader is opened again: the topic may be new."""

_log = logging.getLogger(__name__)


class HeartbeatPoll:
    """Reads heartbeats from the present end of their topic on; sends the suspected nodes.

    The topic need not exist yet: the sender of the first heartbeat creates it. After an error, and
    after some time without an own heartbeat, it is looked up again, and read from its end on.

    Args:
        kafka: opens a reader.
        topic: of the heartbeats.
        detector: decides which nodes are suspected.
        clock: of the machine, which own heartbeats contain.
        emit: receives the suspicions with each read.
    """

    def __init__(
        self,
        kafka: KafkaCluster,
        topic: TopicName,
        detector: Detector,
        clock: Clock,
        emit: Callable[[Mapping[Suspect, Suspicion]], None],
    ) -> None:
        self._kafka = kafka
        self._topic = topic
        self._detector = detector
        self._clock = clock
        self._emit = emit
        self._reader: RecordReader | None = None
        self._own_ms = SteadyMillis(0)
        self._suspicions: Mapping[Suspect, Suspicion] = {}
        self._warned = False

    def read(self) -> float:
        """Take in the heartbeats that came; waits for some, a little."""
        try:
            records = self._opened().poll(POLL_S)
        except MedusaError:
            self._close()
            self._judge(steady_ms(self._clock))
            raise
        now_ms = steady_ms(self._clock)
        for record in records:
            self._take(record, now_ms)
        self._judge(now_ms)
        if now_ms - self._own_ms >= REOPENED_MS:
            self._close()
        return PAUSE_S

    def _opened(self) -> RecordReader:
        if self._reader is None:
            self._reader = self._kafka.reader(READER_S, isolation=Isolation.UNCOMMITTED)
            _, end = self._reader.bounds(self._topic, 0)
            self._reader.assign({self._topic: {0: end}})
            self._own_ms = steady_ms(self._clock)
        return self._reader

    def _close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _take(self, record: KafkaRecord, now_ms: SteadyMillis) -> None:
        """Pass a heartbeat on; other records are skipped, with one warning."""
        place = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
        try:
            heartbeat = decode(record.value, place)
        except (NoHeartbeatError, NewerFormatError) as error:
            level = logging.DEBUG if self._warned else logging.WARNING
            _log.log(level, "a record that is no heartbeat is passed over: %s", error)
            self._warned = True
            return
        if self._detector.take(heartbeat, now_ms):
            self._own_ms = now_ms

    def _judge(self, now_ms: SteadyMillis) -> None:
        """Send the suspected nodes, also unchanged ones: they count for a while; log changes."""
        before, self._suspicions = self._suspicions, self._detector.suspicions(now_ms)
        self._emit(self._suspicions)
        for suspect in sorted(self._suspicions.keys() - before.keys()):
            _log.warning("node %s is suspected: %s", suspect.node, _of(self._suspicions[suspect]))
        blind = ", as this node does not read its own heartbeats"
        why = blind if self._detector.blind(now_ms) else ""
        for suspect in sorted(before.keys() - self._suspicions.keys()):
            was = _of(before[suspect])
            _log.warning("node %s is no longer suspected%s; it was: %s", suspect.node, why, was)


def _of(suspicion: Suspicion) -> str:
    """A suspicion in words."""
    if suspicion.why is Why.ENDED:
        return "its process has ended"
    what = "no heartbeat" if suspicion.why is Why.SILENT else "no decision of its agent"
    return (
        f"{what} for {suspicion.for_ms} ms, limit {suspicion.limit_ms} ms; "
        f"false suspicions of it so far: {suspicion.false}"
    )
