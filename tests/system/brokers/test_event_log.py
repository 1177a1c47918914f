"""The event log on a real broker."""

import pytest

from brokers.embedded.stack import EmbeddedStack
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from pipeline.event_log.event import LoggedEvent
from pipeline.event_log.log import EventReader, EventWriter
from pipeline.ids import Millis, ParticipantId
from pipeline.names import events_topic
from tests.conftest import WaitFor

pytestmark = pytest.mark.system
ME = ParticipantId("follows")


def event(number: int) -> LoggedEvent:
    """An entry."""
    return LoggedEvent(Millis(number), "paused", "me")


def test_new_entries_follow_those_that_are_there(
    embedded_stack: EmbeddedStack, wait_for: WaitFor
) -> None:
    """A reader that has read to the end goes on there."""
    brokers = embedded_stack.settings.kafka_bootstrap_servers
    kafka = RemoteKafka(brokers)
    producer = kafka.producer(10.0)
    writer = EventWriter(ME, KafkaAdmin(brokers, 20.0), producer)
    writer.send(event(1))
    writer.flush(10.0)
    with kafka.reader(10.0) as opened:
        reader = EventReader(opened, events_topic(ME))
        assert list(reader.written()) == [event(1)]
        found: list[LoggedEvent] = []
        for number in (2, 3):
            writer.send(event(number))
            writer.flush(10.0)
            found.clear()

            def came() -> bool:
                found.extend(reader.next(0.5))
                return bool(found)

            wait_for(came, "a new entry")
            assert found == [event(number)]
    producer.close()
