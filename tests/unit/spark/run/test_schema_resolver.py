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
from tests.unit.spark.support import SCHEMA, fragment, surroundings

TOLLS = fragment("tolls")


def every_topic(planned: Fragment, start: int = 0, end: int = 0) -> Leaderless:
    """A Kafka in which a fragment's topics, also that of records sent again, hold a range."""
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
        """The one that there is, by both its names."""
        return parse(SCHEMA) if handle in {SchemaId(5), GUID} else None


def resolver(missing: set[SchemaHandle]) -> SchemaResolver:
    """One that asks the twins, and keeps in a set what is missing."""
    registry = cast("RegistryClient", Registry())
    return SchemaResolver(registry, KAFKA, lambda: frozenset(missing), missing.add)


def test_a_schema_that_inputs_have_is_one_of_their_writers() -> None:
    """Also when it is registered for something else; one that there is not is left out."""
    found = resolver({SchemaId(3)}).resolve(TOLLS, IDS, (SchemaId(5), SchemaId(6)))
    assert {w.handle for writers in found.writers.values() for w in writers} == {5}
    assert found.missing == (3,)


def test_what_the_registry_does_not_have_is_recorded_and_not_asked_for_again() -> None:
    """Its records stay dead letters, whatever is registered later."""
    missing: set[SchemaHandle] = {SchemaId(5)}
    assert resolver(missing).look_up((SchemaId(5), SchemaId(6))) == ()
    assert missing == {5, 6}
    assert resolver(set()).look_up((SchemaId(5), SchemaId(6))) == (5,)


def test_no_batch_waits_for_the_registry_to_know_nothing_of_thousands_of_ids() -> None:
    """The first ones are asked for; of the rest nothing is recorded, so they may be asked later."""
    missing: set[SchemaHandle] = set()
    foreign = tuple(SchemaId(10 + i) for i in range(ASKED_MAX))
    last = SchemaId(5)
    assert resolver(missing).look_up((*foreign, last)) == ()
    assert missing == set(foreign)
    assert resolver(missing).look_up((*foreign, last)) == (5,)


def test_ids_that_no_registry_has_keep_no_other_from_being_asked_for() -> None:
    """They are known to be none without a question."""
    none = tuple(SchemaId(2**32 - 1 - i) for i in range(ASKED_MAX))
    assert resolver(set()).look_up((*none, SchemaId(5))) == (5,)


def test_ids_are_asked_for_by_how_often_they_occur() -> None:
    """A new schema of a producer before bytes that are no records; of equals the least."""
    met: list[tuple[SchemaHandle, int]]
    met = [(SchemaId(9), 1), (GUID, 2), (SchemaId(7), 2), (SchemaId(8), 1), (SchemaId(9), 4)]
    told = [(prefix(handle).hex(), count) for handle, count in met]
    assert most_frequent(told) == (9, 7, GUID, 8)


def test_a_schema_may_be_named_by_its_guid() -> None:
    """Found, or recorded as one that there is not, beside ids."""
    missing: set[SchemaHandle] = {SchemaId(3)}
    foreign = SchemaGuid("00000000-0000-0000-0000-00000000000a")
    assert resolver(missing).look_up((foreign, GUID, SchemaId(5))) == (GUID, 5)
    found = resolver(missing).resolve(TOLLS, IDS, (GUID,))
    assert {w.handle for writers in found.writers.values() for w in writers} == {GUID}
    assert found.missing == (3, foreign)


def test_values_that_name_any_id_do_not_fill_the_catalog() -> None:
    """Four bytes of something else name up to four thousand million schemas."""
    missing: set[SchemaHandle] = set()
    ids = tuple(SchemaId(2**32 - 1 - i) for i in range(MISSING_MAX + 7))
    assert resolver(missing).look_up(ids) == ()
    assert len(missing) == MISSING_MAX


def test_a_first_start_waits_for_the_leaders_of_its_inputs() -> None:
    """Where it begins is decided once, so nothing is guessed."""
    planned = fragment("tolls")
    kafka = every_topic(planned)
    kafka.leaderless = kafka.topic_names()
    found = SchemaResolver(cast("RegistryClient", Registry()), kafka, frozenset, lambda _: None)
    lowered = lower(planned, surroundings(planned))
    with pytest.raises(NotNowError):
        found.start_positions(lowered)
    with pytest.raises(NotNowError):
        found.positions_for(lowered, MARKER)


def test_a_first_start_reads_nothing_that_was_sent_again_before() -> None:
    """It has no dead letters yet: what a redrive topic holds was sent to somebody else."""
    planned = fragment("tow_dispatch")
    lowered = lower(planned, surroundings(planned, redrive=True))
    kafka = every_topic(planned, 4, 8)
    found = SchemaResolver(cast("RegistryClient", Registry()), kafka, frozenset, lambda _: None)
    begins = {at.topic: offset for at, offset in found.start_positions(lowered).items()}
    names = planned.names
    assert begins == {planned.inputs[0].topic: 4, names.redrive: 8, names.advances: 8}


def test_a_redrive_topic_that_comes_later_is_read_from_its_first_offset_on() -> None:
    """What is gone of it by then was never read, and Spark has to find that out.

    Where the fragment has read it before, as another source, what is gone is not for this one.
    """
    planned = fragment("tow_dispatch")
    lowered = lower(planned, surroundings(planned, redrive=True))
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


def test_a_fragment_is_surveyed_with_the_redrive_topic_that_its_catalog_knows() -> None:
    """Whether or not Kafka has one."""
    redrive = TOLLS.names.redrive
    for known in (IDS, {**IDS, redrive: KAFKA.topics[redrive].topic_id}):
        found = resolver(set()).resolve(TOLLS, known, ())
        assert (redrive in found.partitions) is (redrive in known)
        assert [source.redrive is not None for source in found.sources] == [redrive in known]


def test_what_was_there_once_is_looked_for_without_recording_that_it_is_gone() -> None:
    """A rebuild finds it when it is back; also one that was recorded as missing by then."""
    missing: set[SchemaHandle] = {SchemaId(5)}
    found = resolver(missing).existing((SchemaId(6), SchemaId(5), SchemaId(2**32 - 1)))
    assert (found, missing) == ((5,), {5})
