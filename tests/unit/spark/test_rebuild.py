from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

import pytest

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.errors import NotNowError
from brokers.records import Ends
from pipeline.clock import SystemClock
from pipeline.errors import BrokenInvariantError, MedusaError, RetryError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.positions import InputPartition
from pipeline.lanes.start import Rebuild, Wanted, first_marker
from pipeline.spark.lower import lower
from pipeline.spark.lowered import Lowered
from pipeline.spark.rebuild import Log, Rebuilding
from tests.unit.spark.support import fragment, surroundings

AT = InputPartition(StreamName("cars"), TopicName("car-sightings"), 0)
WANTED = Wanted(Epoch(1), "digest", stateful=True, on_change=None, place="here")
MARKER = first_marker(WANTED, Incarnation("one"), {AT: Offset(5)}, Millis(0))
DONE = BatchFacts(
    batch=BatchId(0),
    end={AT: Offset(5)},
    late_ms=None,
    eviction_ms=None,
    advance_ms=None,
    records=5,
    bad=0,
    unknown=(),
    late=0,
    largest={},
    failed={"only": 0},
)
REBUILDING = Rebuilding(Rebuild(MARKER, None, None, "it is gone"), {AT: Offset(0)}, ())


def test_a_rebuild_that_ended_where_it_had_to_is_right() -> None:
    """Nothing is said about it."""
    REBUILDING.check(DONE)


@pytest.mark.parametrize(
    ("facts", "kind", "said"),
    [
        (replace(DONE, end={AT: Offset(4)}), BrokenInvariantError, "ended at other positions"),
        (replace(DONE, eviction_ms=Millis(7)), BrokenInvariantError, "watermark 7 instead of None"),
        (replace(DONE, late=1), BrokenInvariantError, "rows counted as late"),
        (replace(DONE, failed={"only": 9}), RetryError, "had not failed before"),
    ],
)
def test_a_state_that_is_not_what_it_has_to_be_is_not_used(
    facts: BatchFacts, kind: type[MedusaError], said: str
) -> None:
    """What a function decides may be another time; everything else is a mistake of ours."""
    with pytest.raises(kind, match=said):
        REBUILDING.check(facts)


class SomeLeaders:
    """A Kafka of topics with two partitions, some of which have a leader and answer."""

    def __init__(self, leaderless: set[str]) -> None:
        self._leaderless = leaderless

    def start_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """As `brokers/kafka/admin.py` gives them: without topics that do not answer."""
        return {t: {0: Offset(3), 1: Offset(3)} for t in topics if t not in self._leaderless}

    def end_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """The same."""
        return {t: {0: Offset(9), 1: Offset(9)} for t in topics if t not in self._leaderless}


def log(*leaderless: str) -> Log:
    """The log of inputs in a Kafka in which some topics have no leader."""
    return Log("", cast("KafkaAdmin", SomeLeaders(set(leaderless))), SystemClock())


def tolls() -> Lowered:
    """A fragment with state."""
    planned = fragment("tolls")
    return lower(planned, surroundings(planned))


def ended(lowered: Lowered, offset: int) -> Mapping[InputPartition, Offset]:
    """Positions at an offset in each partition."""
    return {
        InputPartition(s.input, t.topic, p): Offset(offset)
        for s in lowered.sources
        for t in s.topics
        for p in range(t.partitions)
    }


def test_dead_letters_that_cannot_be_read_now_are_waited_for() -> None:
    """Without them a rebuild would count records that were left out."""
    lowered = tolls()
    start = Rebuild(replace(MARKER, end=ended(lowered, 5)), ended(lowered, 4), None, "it is gone")
    with pytest.raises(NotNowError) as caught:
        log("dlq").prepare(start, lowered, TopicName("dlq"))
    assert caught.value.place == "topic dlq"


def test_an_input_without_a_leader_is_waited_for() -> None:
    """Also by the question whether records were removed: no answer is not a good one."""
    lowered = tolls()
    away = lowered.sources[0].topics[0].topic
    marker = replace(MARKER, end=ended(lowered, 5))
    with pytest.raises(NotNowError):
        log(away).earliest(lowered)
    with pytest.raises(NotNowError):
        log(away).overtaken(marker, lowered, fragment("tolls").name)
    assert log().overtaken(marker, lowered, fragment("tolls").name) is None
