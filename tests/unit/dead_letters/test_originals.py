"""Lookup of originals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.records import KafkaRecord
from pipeline.dead_letters import originals
from pipeline.dead_letters.letter import Letter, Place
from pipeline.dead_letters.originals import rounds, with_originals
from pipeline.ids import Millis, Offset, TopicName
from tests.unit.dead_letters.support import letter

TOPIC = TopicName("rows")


def place(offset: int, partition: int = 0, topic: TopicName = TOPIC) -> Place:
    """A place."""
    return Place(topic, partition, Offset(offset))


def record(of: Place) -> KafkaRecord:
    """The record at a place."""
    return KafkaRecord(of.topic, of.partition, of.offset, Millis(7), b"k", b"v")


@given(
    st.sets(
        st.builds(place, st.integers(0, 2_000), st.integers(0, 2), st.sampled_from([TOPIC, "b"]))
    )
)
def test_every_place_is_read_once(places: set[Place]) -> None:
    """In ranges that do not overlap, one of each partition in a round, and few."""
    found: list[Place] = []
    for ranges in rounds(places):
        for topic, partitions in ranges.items():
            for partition, (start, end) in partitions.items():
                read = [place(offset, partition, topic) for offset in range(start, end)]
                assert {read[0], read[-1]} <= places
                found += [one for one in read if one in places]
    assert sorted(found) == sorted(places)


def test_near_places_are_read_together_and_far_ones_apart() -> None:
    """Partitions are read in the same round."""
    places = [place(1), place(150), place(1_000), place(5, 1)]
    assert list(rounds(places)) == [
        {TOPIC: {0: (1, 151), 1: (5, 6)}},
        {TOPIC: {0: (1_000, 1_001)}},
    ]
    assert list(rounds([])) == []


def test_letters_keep_their_order_and_get_their_records() -> None:
    """Where it is needed, some per lookup; one that is gone is missing."""
    named = [replace(letter(n), at=None, row=place(n)) for n in range(5)]
    letters = [letter(7), *named, letter(8)]
    lookups: list[list[Offset]] = []

    def look_up(some: Sequence[Letter]) -> Mapping[Place, KafkaRecord]:
        places = [one.row for one in some if one.row is not None]
        lookups.append([one.offset for one in places])
        return {one: record(one) for one in places if one.offset != 3}

    def needed(one: Letter) -> bool:
        return one.row is not None and one.row.offset > 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(originals, "LOOKUP_SIZE", 3)
        found = list(with_originals(letters, needed, look_up))
    assert [one.number for one in found] == [one.number for one in letters]
    assert [n for n, one in enumerate(found) if one.original] == [2, 3, 5]
    assert lookups == [[1], [2, 3, 4]]
    assert found[2].redrive_record == record(place(1))
    assert found[2].redrive_timestamp_ms == 7
    assert found[1].redrive_timestamp_ms == named[0].timestamp_ms


def test_nothing_is_looked_up_where_no_original_is_needed() -> None:
    """Most fragments have no such dead letters."""

    def look_up(_: Sequence[Letter]) -> Mapping[Place, KafkaRecord]:
        raise AssertionError("none is needed")

    letters = [letter(n) for n in range(3)]
    assert list(with_originals(letters, lambda _: False, look_up)) == letters
