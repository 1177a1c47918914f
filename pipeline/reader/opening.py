"""A reader with connections of its own."""

import os
from collections.abc import Mapping

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.servers import kafka_servers
from pipeline.ids import TopicName
from pipeline.reader.reader import Connected, Reader
from pipeline.reader.results import Handler, Position, Start
from pipeline.settings import SETTINGS, combine
from pipeline.system_clock import SystemClock

_TIMEOUT_S = 20.0


def open_reader(
    topic: str,
    handler: Handler,
    start: Position | Start = Start.BEGINNING,
    settings: Mapping[str, str] | None = None,
) -> Reader:
    """Open a reader of an output; close it, or use it in `with`.

    Args:
        topic: the result topic.
        handler: gets the results.
        start: where it begins.
        settings: settings of Medusa by name, such as `kafka.bootstrap_servers`; those that are not
            given come from the environment, as for the command.

    Raises:
        NoSuchTopicError: the topic does not exist.
        RefusedError: the position is one in a topic that was deleted.
        UnavailableError: the brokers do not answer.
    """
    written = {s.name: os.environ[s.environment] for s in SETTINGS if os.environ.get(s.environment)}
    servers = kafka_servers(combine((("argument", settings or {}), ("environment", written))))
    clock = SystemClock()
    topics = KafkaAdmin(servers, _TIMEOUT_S, clock)
    reader = RemoteKafka(servers, clock).reader(_TIMEOUT_S)
    try:
        return Reader(Connected(topics, reader, clock), TopicName(topic), handler, start)
    except BaseException:
        reader.close()
        raise
