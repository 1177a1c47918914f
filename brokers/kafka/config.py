"""The client settings that every Kafka connection of ours starts from."""

from typing import Any, Final

from brokers.kafka.servers import Brokers, librdkafka_options, servers

LOG_LEVEL_CRITICAL: Final = 2
"""librdkafka writes to stderr by itself; what it reports reaches the user through our errors."""
SOCKET_CONNECT_MS: Final = 3_000
RECONNECT_MS_MAX: Final = 1_000
"""After an outage a client is back at most this long after the broker."""
REBOOTSTRAP_MS: Final = 20_000
"""In an outage librdkafka may drop the only broker it has learned of; by default it then asks
`bootstrap.servers` again after 5 min."""
TOPIC_MISSING_MS: Final = 2_000
"""How long a topic that the brokers do not know may be one that was just created."""

RECORD_BYTES_MAX: Final = 100_000_000
"""What a producer hands over at all. Topics have limits of their own, of which the broker tells;
but by default it drops the connection at a request of more than 104,857,600 bytes."""


def client_config(brokers: Brokers, **settings: str | float | bool) -> dict[str, Any]:
    """Settings for a client at these brokers; an underscore in a name stands for a dot.

    >>> client_config("a:9092", group_id="g")["group.id"]
    'g'
    """
    known = servers(brokers)
    return {
        "bootstrap.servers": known.bootstrap,
        **librdkafka_options(known),
        "log_level": LOG_LEVEL_CRITICAL,
        "socket.connection.setup.timeout.ms": SOCKET_CONNECT_MS,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
        "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 500,
        "metadata.recovery.rebootstrap.trigger.ms": REBOOTSTRAP_MS,
        "topic.metadata.propagation.max.ms": TOPIC_MISSING_MS,
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
