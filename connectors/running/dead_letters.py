"""Dead letters of connectors: what is no record, byte for byte, with the reason in headers. Pure.

The headers have the names of those of fragments, as far as they mean the same; a letter of a source
has no place in Kafka, but a place at the other end.
"""

from brokers.records import Headers, KafkaRecord, NewTopicSpec
from pipeline.formats import WRITTEN
from pipeline.lanes.dead_letters import MESSAGE_MAX, PREFIX
from pipeline.names import ConnectorNames

_CONFIG = (("cleanup.policy", "delete"), ("retention.ms", "-1"))
_DEFAULT_REPLICATION = -1
"""That of the brokers' setting `default.replication.factor`."""


def topic_spec(names: ConnectorNames) -> NewTopicSpec:
    """The topic of a connector's dead letters, which are kept until somebody removes them."""
    return NewTopicSpec(names.dead_letters, 1, _DEFAULT_REPLICATION, _CONFIG)


def original(record: KafkaRecord) -> Headers:
    """The headers of a record without those of an earlier dead letter."""
    return tuple(one for one in record.headers if not one[0].startswith(PREFIX))


def headers(
    names: ConnectorNames, *, reason: str, message: str, place: str, split: str = ""
) -> Headers:
    """The headers of a dead letter.

    Args:
        names: of the connector.
        reason: in one word.
        message: in one sentence.
        place: where it was, for people.
        split: the part of a source that it is of.
    """
    facts = (
        ("format", str(WRITTEN)),
        ("reason", reason),
        ("message", " ".join(message.split())[:MESSAGE_MAX]),
        ("participant", names.participant),
        ("connector", names.connector),
        ("place", place),
        ("split", split),
    )
    return tuple((f"{PREFIX}{name}", value.encode()) for name, value in facts if value)
