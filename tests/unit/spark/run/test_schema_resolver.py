from dataclasses import replace
from typing import cast

import pytest

from brokers.kafka_interface import NotNowError
from pipeline.ids import Offset, SchemaGuid, SchemaHandle, SchemaId, TopicName
from pipeline.markers.positions import InputPartition, LeftSource
from pipeline.planner.plan import Fragment
from pipeline.spark.batch.inspection import most_frequent
from pipeline.spark.query.lower import lower
from pipeline.spark.query.lowered import Source, TopicRole
from pipeline.spark.run.schema_resolver import ASKED_MAX, MISSING_MAX, SchemaResolver
from pipeline.spark.run.topic_identity import topics_of
from schemas.avro import AvroSchema, parse
from schemas.client import RegistryClient
from schemas.records import RegisteredSchema
from schemas.wire import prefix
from tests.unit.kafka import Leaderless, create, fill
from tests.unit.lanes.marked import marked
from tests.unit.spark.run.test_rebuild import AT, MARKER
from tests.unit.spark.support import SCHEMA, fragment, lowering_context

TOLLS = fragment("tolls")


def every_topic(planned: Fragment, start: int = 0, end: int = 0) -> Leaderless:
    """A Kafka in which a fragment's topics, also the redrive topic, have a range of offsets."""
    kafka, topics = Leaderless(), (*topics_of(planned), planned.names.redrive)
    create(kafka, *topics, partitions=2)
    for topic in topics:
        fill(kafka, topic, start, end)
    return kafka


KAFKA = every_topic(TOLLS)
IDS = {topic: KAFKA.topics[topic].topic_id for topic in topics_of(TOLLS)}
GUID = SchemaGuid("095d71cf-1255-6b9d-5e33-0ad575b3df5d")


class Registry:
    """A registry with one schema, of id 5 and a GUID."""

    def lookup(self, _subject: str, _text: str) -> SchemaId:
        """Everything is registered."""
        return SchemaId(1)

    def readable_versions(self, _subject: str) -> tuple[RegisteredSchema, ...]:
        """None under the subjects of inputs."""
        return ()

    def schema_of(self, handle: SchemaHandle) -> AvroSchema | None:
        """The existing one, by both its names."""
        return parse(SCHEMA) if handle in {SchemaId(5), GUID} else None


def resolver(missing: set[SchemaHandle]) -> SchemaResolver:
    """A resolver over the test doubles, with a set of the missing schemas."""
    registry = cast("RegistryClient", Registry())
    return SchemaResolver(registry, KAFKA, lambda: frozenset(missing), missing.add)


def test_a_registered_schema_is_a_writer_schema_of_its_input() -> None:
    """Also when it is registered for another subject; a missing one is omitted."""
    found = resolver({SchemaId(3)}).resolve(TOLLS, IDS, (SchemaId(5), SchemaId(6)))
    assert {w.handle for writers in found.writers.values() for w in writers} == {5}
    assert found.missing == (3,)


def test_a_missing_schema_is_recorded_and_not_requested_again() -> None:
    """Its records stay dead letters, whatever is registered later."""
    missing: set[SchemaHandle] = {SchemaId(5)}
    assert resolver(missing).look_up((SchemaId(5), SchemaId(6))) == ()
    assert missing == {5, 6}
    assert resolver(set()).look_up((SchemaId(5), SchemaId(6))) == (5,)


def test_the_number_of_lookups_per_batch_is_limited() -> None:
    """The first ones are requested; the others are not recorded, so they may be requested later."""
    missing: set[SchemaHandle] = set()
    foreign = tuple(SchemaId(10 + i) for i in range(ASKED_MAX))
    last = SchemaId(5)
    assert resolver(missing).look_up((*foreign, last)) == ()
    assert missing == set(foreign)
    assert resolver(missing).look_up((*foreign, last)) == (5,)


def test_impossible_ids_are_not_requested() -> None:
    """They are missing without a request."""
    none = tuple(SchemaId(2**32 - 1 - i) for i in range(ASKED_MAX))
    assert resolver(set()).look_up((*none, SchemaId(5))) == (5,)


def test_ids_are_requested_by_their_frequency() -> None:
    """A new schema of a producer before bytes that are no records; of equals the least."""
    met: list[tuple[SchemaHandle, int]]
    met = [(SchemaId(9), 1), (GUID, 2), (SchemaId(7), 2), (SchemaId(8), 1), (SchemaId(9), 4)]
    counts = [(prefix(handle).hex(), count) for handle, count in met]
    assert most_frequent(counts) == (9, 7, GUID, 8)


def test_a_schema_may_be_named_by_its_guid() -> None:
    """Found, or recorded as missing, next to ids."""
    missing: set[SchemaHandle] = {SchemaId(3)}
    foreign = SchemaGuid("00000000-0000-0000-0000-00000000000a")
    assert resolver(missing).look_up((foreign, GUID, SchemaId(5))) == (GUID, 5)
    found = resolver(missing).resolve(TOLLS, IDS, (GUID,))
    assert {w.handle for writers in found.writers.values() for w in writers} == {GUID}
    assert found.missing == (3, foreign)


def test_random_ids_do_not_fill_the_catalog() -> None:
    """Four bytes of another format name up to four thousand million schemas."""
    missing: set[SchemaHandle] = set()
    ids = tuple(SchemaId(2**32 - 1 - i) for i in range(MISSING_MAX + 7))
    assert resolver(missing).look_up(ids) == ()
    assert len(missing) == MISSING_MAX


def test_a_first_start_waits_for_the_leaders_of_its_inputs() -> None:
    """Its start positions are decided once, so they are never guessed."""
    planned = fragment("tolls")
    kafka = every_topic(planned)
    kafka.leaderless = kafka.topic_names()
    found = SchemaResolver(cast("RegistryClient", Registry()), kafka, frozenset, lambda _: None)
    lowered = lower(planned, lowering_context(planned))
    with pytest.raises(NotNowError):
        found.start_positions(lowered)
    with pytest.raises(NotNowError):
        found.positions_for(lowered, MARKER)


def test_only_topics_with_a_new_partition_are_waited_for() -> None:
    """One that the lane has read before may be out of reach, as for a lane that goes on."""
    planned = fragment("tow_dispatch")
    lowered = lower(planned, lowering_context(planned, redrive=True))
    kafka, (source,) = every_topic(planned), lowered.sources
    found = SchemaResolver(cast("RegistryClient", Registry()), kafka, frozenset, lambda _: None)
    data, redrive = planned.inputs[0].topic, planned.names.redrive
    kafka.leaderless = (data, redrive)
    known = {_at(source, data, partition): Offset(9) for partition in range(2)}
    both = {**known, _at(source, redrive, 0): Offset(0), _at(source, redrive, 1): Offset(0)}
    assert found.positions_for(lowered, replace(MARKER, end=known)) == both
    grown = {at: offset for at, offset in both.items() if at != _at(source, redrive, 1)}
    with pytest.raises(NotNowError):
        found.positions_for(lowered, replace(MARKER, end=grown))
    kafka.leaderless = (data,)
    assert found.positions_for(lowered, replace(MARKER, end=grown)) == both


def test_a_first_start_skips_earlier_redriven_records() -> None:
    """It has no dead letters yet: records in a redrive topic were sent to another fragment."""
    planned = fragment("tow_dispatch")
    lowered = lower(planned, lowering_context(planned, redrive=True))
    kafka = every_topic(planned, 4, 8)
    found = SchemaResolver(cast("RegistryClient", Registry()), kafka, frozenset, lambda _: None)
    begins = {at.topic: offset for at, offset in found.start_positions(lowered).items()}
    names = planned.names
    assert begins == {planned.inputs[0].topic: 4, names.redrive: 8}


def test_a_redrive_topic_added_later_is_read_from_its_first_offset() -> None:
    """What is gone of it by then was never read, and Spark has to find that out.

    Where the fragment has read it before, as another source, what is gone is not for this one.
    """
    planned = fragment("tow_dispatch")
    lowered = lower(planned, lowering_context(planned, redrive=True))
    kafka = every_topic(planned, 4, 8)
    found = SchemaResolver(cast("RegistryClient", Registry()), kafka, frozenset, lambda _: None)
    (source,) = lowered.sources
    redrive, read = planned.names.redrive, {AT: Offset(7)}
    before = {
        InputPartition(source.input, topic.topic, p): Offset(9)
        for topic in source.topics
        for p in range(2)
        if topic.role is not TopicRole.REDRIVE
    }
    (other,) = marked({**read, replace(AT, topic=redrive): 5})
    left = LeftSource(other, {replace(AT, topic=redrive): Offset(5)}, {}, {})
    for marker, begins in (
        (replace(MARKER, end=before), 0),
        (replace(MARKER, end=before, left=(left,)), 4),
        (replace(MARKER, end={**before, _at(source, redrive, 0): Offset(6)}), 4),
    ):
        positions = found.positions_for(lowered, marker)
        assert positions == {
            **before,
            _at(source, redrive, 0): marker.end.get(_at(source, redrive, 0), Offset(begins)),
            _at(source, redrive, 1): begins,
        }


def _at(source: Source, topic: TopicName, partition: int) -> InputPartition:
    return InputPartition(source.input, topic, partition)


def test_a_fragment_is_described_with_the_redrive_topic_of_its_catalog() -> None:
    """Whether or not Kafka has one."""
    redrive = TOLLS.names.redrive
    for known in (IDS, {**IDS, redrive: KAFKA.topics[redrive].topic_id}):
        found = resolver(set()).resolve(TOLLS, known, ())
        assert (redrive in found.partitions) is (redrive in known)
        assert [source.redrive is not None for source in found.sources] == [redrive in known]


def test_a_lookup_of_a_former_schema_does_not_record_it_as_missing() -> None:
    """A rebuild finds it when it is back; also one that was recorded as missing by then."""
    missing: set[SchemaHandle] = {SchemaId(5)}
    found = resolver(missing).existing((SchemaId(6), SchemaId(5), SchemaId(2**32 - 1)))
    assert (found, missing) == ((5,), {5})
