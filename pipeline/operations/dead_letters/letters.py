"""Reads of the dead-letter topic, the redrive topic and the originals of a fragment."""

from collections.abc import Iterator, Mapping, Sequence

from brokers.kafka_interface import RecordReader, complete
from brokers.records import KafkaRecord
from pipeline.dead_letters.letter import Identity, Letter, Place, read
from pipeline.dead_letters.originals import rounds
from pipeline.dead_letters.redrive_rules import sent_letters
from pipeline.deploy.redrive_topic import RedriveTopic
from pipeline.operations.connections import Connections
from pipeline.operations.topics import committed_records, topic_ends
from pipeline.planner.plan import Fragment, Plan


def letters_of(fragment: Fragment, connections: Connections) -> Iterator[Letter]:
    """All dead letters of a fragment up to the present end of their topic.

    Raises:
        RefusedError: the dead-letter topic does not exist.
        UnavailableError, RetryError: Kafka does not answer, or the end was not reached.
    """
    topic = fragment.names.dead_letters
    return map(read, committed_records(topic, topic_ends(topic, connections), connections))


def redrive_topic(plan: Plan, fragment: Fragment, connections: Connections) -> RedriveTopic:
    """The redrive topic of a fragment."""
    servers = connections.servers
    return RedriveTopic(plan, fragment, connections.catalog, connections.topics, servers.log)


def sent_again(redrive: RedriveTopic, connections: Connections) -> frozenset[Identity]:
    """Identities of the dead letters of a fragment that were sent again.

    Raises:
        RefusedError: the redrive topic is gone, and with it the record of what was sent.
    """
    if not redrive.is_there():
        return frozenset()
    topic = redrive.planned.name
    return sent_letters(committed_records(topic, topic_ends(topic, connections), connections))


def records_of_rows(
    letters: Sequence[Letter], reader: RecordReader, connections: Connections
) -> Mapping[Place, KafkaRecord]:
    """The originals of dead letters, by their places, that still exist in their topics.

    Raises:
        NotNowError: Kafka returned no offsets of an existing topic, as without a leader.
    """
    places = {letter.row: letter.topic_id for letter in letters if letter.row is not None}
    described = connections.topics.describe({place.topic for place in places})
    topics = sorted(described)
    starts = complete(connections.topics.start_offsets(topics), topics)
    ends = complete(connections.topics.end_offsets(topics), topics)
    there = {
        place
        for place, topic_id in places.items()
        if place.topic in described
        and described[place.topic].topic_id == topic_id
        and place.offset >= starts[place.topic].get(place.partition, place.offset + 1)
        and place.offset < ends[place.topic].get(place.partition, 0)
    }
    found = dict[Place, KafkaRecord]()
    for ranges in rounds(there):
        begin, end = (
            {topic: {p: one[at] for p, one in of.items()} for topic, of in ranges.items()}
            for at in (0, 1)
        )
        reader.assign(begin)
        for record in reader.read_to(end):
            place = Place(record.topic, record.partition, record.offset)
            if place in there:
                found[place] = record
    return found
