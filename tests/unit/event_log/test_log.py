"""The event log over topics in memory."""

import pytest

from brokers.kafka_interface import NoSuchTopicError
from pipeline.errors import MedusaError
from pipeline.event_log.event import LoggedEvent
from pipeline.event_log.log import EventReader, EventWriter, topic_spec
from pipeline.ids import Millis, ParticipantId
from pipeline.names import events_topic
from tests.unit.kafka import with_topics

ME = ParticipantId("ada")
TOPIC = events_topic(ME)


def event(number: int) -> LoggedEvent:
    """An entry."""
    return LoggedEvent(Millis(number), "paused", "me", network=f"net{number}")


def test_entries_are_read_in_their_order() -> None:
    """The writer creates the topic; new entries follow."""
    kafka = with_topics(())
    reader = EventReader(kafka.reader(1.0), TOPIC)
    with pytest.raises(NoSuchTopicError):
        list(reader.written())
    writer = EventWriter(ME, kafka, kafka.producer(1.0))
    for number in range(3):
        writer.send(event(number))
    writer.flush(1.0)
    assert kafka.topic_names() == (TOPIC,)
    assert list(reader.written()) == [event(0), event(1), event(2)]
    assert reader.next(0.0) == ()
    writer.send(event(3))
    assert reader.next(0.0) == (event(3),)


def test_an_existing_topic_stays_as_it_is() -> None:
    """Its retention may have been changed."""
    kafka = with_topics((TOPIC,))
    before = kafka.topic_configs((TOPIC,))
    EventWriter(ME, kafka, kafka.producer(1.0)).send(event(1))
    assert kafka.topic_configs((TOPIC,)) == before
    assert dict(topic_spec(ME).config)["retention.ms"] == str(90 * 86_400_000)


def test_repeated_and_foreign_records_are_left_out() -> None:
    """A writer sends again what may not have been delivered; others may write anything."""
    kafka = with_topics(())
    producer = kafka.producer(1.0)
    writer = EventWriter(ME, kafka, producer)
    for number in (1, 2, 1, 2, 3):
        writer.send(event(number))
    producer.send(TOPIC, None, b"not an entry", partition=0)
    writer.send(event(4))
    reader = EventReader(kafka.reader(1.0), TOPIC)
    assert list(reader.written()) == [event(1), event(2), event(3), event(4)]
    assert reader.unreadable == 1


def test_a_deleted_topic_is_created_again() -> None:
    """Its entries are lost, not the next ones."""
    kafka = with_topics(())
    writer = EventWriter(ME, kafka, kafka.producer(1.0))
    writer.send(event(1))
    kafka.delete_topics((TOPIC,))
    writer.send(event(2))
    with pytest.raises(MedusaError):
        writer.flush(1.0)
    writer.send(event(2))
    writer.flush(1.0)
    assert list(EventReader(kafka.reader(1.0), TOPIC).written()) == [event(2)]
