"""The driver's own mock of a Kafka cluster, which can be slow, and move leaders; without a JVM.

Its functions are those of librdkafka's `rdkafka_mock.h`, which the driver does not offer to Python.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka

PRODUCER = 0
_ERROR_BYTES = 512
_POINTER, _INT, _TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
_FUNCTIONS = {
    "conf_new": (_POINTER, []),
    "conf_set": (_INT, [_POINTER, _TEXT, _TEXT, _TEXT, ctypes.c_size_t]),
    "new": (_POINTER, [_INT, _POINTER, _TEXT, ctypes.c_size_t]),
    "destroy": (None, [_POINTER]),
    "mock_cluster_new": (_POINTER, [_POINTER, _INT]),
    "mock_cluster_destroy": (None, [_POINTER]),
    "mock_cluster_bootstraps": (_TEXT, [_POINTER]),
    "mock_set_controller_id": (_INT, [_POINTER, ctypes.c_int32]),
    "mock_topic_create": (_INT, [_POINTER, _TEXT, _INT, _INT]),
    "mock_partition_set_leader": (_INT, [_POINTER, _TEXT, ctypes.c_int32, ctypes.c_int32]),
    "mock_broker_set_rtt": (_INT, [_POINTER, ctypes.c_int32, _INT]),
}
"""Result and arguments of the functions, whose names begin with `rd_kafka_`."""


class MockBrokers:
    """A cluster of the mock; brokers are numbered from 1, and the first is the controller."""

    def __init__(self, library: ctypes.CDLL, cluster: int) -> None:
        self._library, self._cluster = library, cluster
        self.bootstrap: str = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()
        self._done(library.rd_kafka_mock_set_controller_id(cluster, 1))

    def create(self, topic: str, leaders: tuple[int, ...]) -> None:
        """Create a topic; one partition for each leader."""
        made = self._library.rd_kafka_mock_topic_create(
            self._cluster, topic.encode(), len(leaders), 2
        )
        self._done(made)
        for partition, leader in enumerate(leaders):
            self.lead(topic, partition, leader)

    def lead(self, topic: str, partition: int, leader: int) -> None:
        """Move the leader of a partition."""
        self._done(
            self._library.rd_kafka_mock_partition_set_leader(
                self._cluster, topic.encode(), partition, leader
            )
        )

    def delay(self, broker: int, delay_ms: int) -> None:
        """Delay all answers of a broker from now on."""
        self._done(self._library.rd_kafka_mock_broker_set_rtt(self._cluster, broker, delay_ms))

    def _done(self, error: int) -> None:
        assert error == 0


@contextmanager
def mock_brokers(count: int) -> Iterator[MockBrokers]:
    """A cluster of so many brokers, in threads of this process."""
    library = _library()
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    config = library.rd_kafka_conf_new()
    library.rd_kafka_conf_set(config, b"log_level", b"0", error, _ERROR_BYTES)
    client = library.rd_kafka_new(PRODUCER, config, error, _ERROR_BYTES)
    assert client, error.value
    cluster = library.rd_kafka_mock_cluster_new(client, count)
    try:
        yield MockBrokers(library, cluster)
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(client)


def _library() -> ctypes.CDLL:
    """The library that the driver has loaded."""
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    (path,) = folder.glob("librdkafka-*.so*")
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library
