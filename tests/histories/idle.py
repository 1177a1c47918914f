"""Idleness of the writers of derived topics, as they report it."""

from pipeline.ids import TopicName
from pipeline.markers.codec import decode_activity
from pipeline.markers.signals import is_activity
from pipeline.names import boundaries_topic
from tests.histories.kafka import Topics, log


def was_idle(kafka: Topics, topic: TopicName) -> bool:
    """Whether a writer of a topic has ever reported that it is idle; True if that is not known."""
    there = kafka.topics.get(boundaries_topic(topic))
    if there is None:
        return True
    reports = (record for record in log(there, 0).log if is_activity(record.key))
    return any(decode_activity(record.value or b"", "here").idle for record in reports)
