"""Version of a Kafka broker, derived from its answer to ApiVersions.

Brokers answer this request before authentication, and no driver returns the answer.
"""

import socket
import struct
from collections.abc import Mapping
from typing import Final

from brokers.kafka.admin import DEFAULT_PORT
from brokers.kafka.servers import KafkaServers
from brokers.reach import addresses

_API_VERSIONS: Final = 18
_ANSWER_BYTES_MAX: Final = 65_536

Requests = Mapping[int, tuple[int, int]]
"""Number of a request of Kafka's protocol → the oldest and the newest version of it."""
_FETCH: Final = 1
_DESCRIBE_TOPIC_PARTITIONS: Final = 75
_OLDEST_FETCH_OF_4: Final = 4


def requests_of(brokers: KafkaServers, within_s: float) -> Requests:
    """The requests that the first broker supports, with their versions.

    Raises:
        OSError: the broker does not answer.
    """
    host, port = next(iter(addresses(brokers.bootstrap, DEFAULT_PORT)))
    request = struct.pack(">hhih", _API_VERSIONS, 0, 1, -1)
    with socket.create_connection((host, port), within_s) as plain:
        plain.settimeout(within_s)
        if brokers.tls is None:
            return _exchange(plain, request)
        with brokers.tls.context().wrap_socket(plain, server_hostname=host) as secured:
            return _exchange(secured, request)


def _exchange(connection: socket.socket, request: bytes) -> Requests:
    connection.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _read(connection, 4))
    if not 0 < size <= _ANSWER_BYTES_MAX:
        raise OSError("this is no answer of Kafka")
    return read_requests(_read(connection, size))


def read_requests(answer: bytes) -> Requests:
    """Parse an answer to ApiVersions, in version 0.

    Raises:
        OSError: it is not such an answer.
    """
    try:
        _, failed, count = struct.unpack_from(">ihi", answer)
        ranges = [struct.unpack_from(">hhh", answer, 10 + 6 * at) for at in range(count)]
    except struct.error as error:
        raise OSError("this is no answer of Kafka") from error
    if failed:
        raise OSError(f"Kafka answers with error {failed}")
    return {number: (oldest, newest) for number, oldest, newest in ranges}


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = connection.recv(size - len(found))
        if not piece:
            raise OSError("the connection was closed")
        found += piece
    return found


def version_words(requests: Requests) -> str:
    """The version of Kafka, as far as its requests determine it.

    >>> version_words({1: (4, 17), 75: (0, 0)})
    '4.0 or newer'
    """
    if requests.get(_FETCH, (0, 0))[0] >= _OLDEST_FETCH_OF_4:
        return "4.0 or newer"
    return "3.8 or 3.9" if _DESCRIBE_TOPIC_PARTITIONS in requests else "older than 3.8"
