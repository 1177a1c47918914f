"""The commit markers of a fragment, as they are written."""

from typing import Final

from brokers.kafka_interface import KafkaCluster, RecordReader
from brokers.log_reader import newest_records
from pipeline.ids import TopicName
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker

READ_TIMEOUT_S: Final = 20.0
FETCH_WAIT_MS: Final = 100


class MarkerTail:
    """Reads the last committed marker, then every later one. Not thread-safe; to be closed."""

    def __init__(self, kafka: KafkaCluster, topic: TopicName) -> None:
        self._topic = topic
        self._reader: RecordReader = kafka.reader(READ_TIMEOUT_S, fetch_wait_ms=FETCH_WAIT_MS)

    def last(self) -> CommitMarker | None:
        """The last marker; None if there is none. Later ones follow by `next`.

        Raises:
            NoSuchTopicError: the topic does not exist.
            BrokenInvariantError: the marker is damaged.
        """
        bounds = {0: self._reader.bounds(self._topic, 0)}
        found = newest_records(
            self._reader, self._topic, bounds, 1, lambda record: record.value is not None
        )
        self._reader.assign({self._topic: {0: bounds[0][1]}})
        return self._decoded(found[-1].value) if found else None

    def next(self, within_s: float) -> tuple[CommitMarker, ...]:
        """The markers after those that were read; waits for the first one, at most so long.

        Raises:
            MedusaError: Kafka does not answer, or a marker is damaged.
        """
        found = self._reader.poll(within_s)
        return tuple(self._decoded(one.value) for one in found if one.value is not None)

    @property
    def is_at_end(self) -> bool:
        """Whether every marker that is committed now was read.

        Raises:
            MedusaError: Kafka does not answer.
        """
        _, end = self._reader.bounds(self._topic, 0)
        return self._reader.positions[self._topic][0] >= end

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def _decoded(self, value: bytes | None) -> CommitMarker:
        return codec.decode_marker(value or b"", f"topic {self._topic}")
