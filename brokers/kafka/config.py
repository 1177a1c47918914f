"""librdkafka settings that all our Kafka clients share."""

from typing import Any, Final

from brokers.kafka.servers import Brokers, librdkafka_options, servers

LOG_LEVEL_CRITICAL: Final = 2
"""librdkafka logs to stderr by itself; users get its errors through ours."""
SOCKET_CONNECT_MS: Final = 3_000
RECONNECT_MS_MAX: Final = 1_000
"""After an outage a client reconnects at most this long after the broker is back."""
REBOOTSTRAP_MS: Final = 20_000
"""In an outage librdkafka may drop the only broker in its metadata; by default it then connects to
`bootstrap.servers` again after 5 min."""
TOPIC_MISSING_MS: Final = 2_000
"""How long a topic that is missing from the metadata may be one that was just created."""

RECORD_BYTES_MAX: Final = 100_000_000
"""The largest record that a producer sends. Topics have limits of their own, which the broker
reports; but by default it drops the connection at a request of more than 104,857,600 bytes."""


def client_config(brokers: Brokers, **settings: str | float | bool) -> dict[str, Any]:
    """Settings of a client of these brokers; underscores in names of arguments become dots.

    >>> client_config("a:9092", group_id="g")["group.id"]
    'g'
    """
    access = servers(brokers)
    return {
        "bootstrap.servers": access.bootstrap,
        **librdkafka_options(access),
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
