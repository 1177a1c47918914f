"""Dead-letter offsets in the sink's markers, which a rebuild needs."""

import pytest

from brokers.kafka_interface import NotNowError
from pipeline.ids import TopicName
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from tests.unit.kafka import create
from tests.unit.spark.support import fragment
from tests.unit.spark.write.sink_twins import (
    AT,
    NOW,
    Batch,
    Log,
    facts,
    rejected,
    sink,
    write,
)

LETTERS = TopicName("local.net.tolls.dlq")
BAD = {"bad": 1, "eviction_ms": NOW}


def markers_of(log: Log) -> list[CommitMarker]:
    """The written markers, in order."""
    values = log.values["local.net.tolls.markers"]
    return [codec.decode_marker(value, "") for value in values if value is not None]


def test_the_marker_contains_the_needed_dead_letter_offsets() -> None:
    """Before the first dead letter of a record that may be read again; without a window none."""
    log = Log()
    written = sink(log, [], fragment("tolls"))
    for _ in range(3):  # somebody else's
        log.kafka.append(LETTERS, None, b"")
    first = {"largest": {AT: NOW}, "eviction_ms": NOW - 10**7}
    late = {**first, "late_ms": NOW - 10**7}
    write(written, Batch(facts(0, 5, **first)))
    write(written, Batch(facts(1, 9, bad=1, **late), wrong=[rejected(Reason.UNDECODABLE)]))
    write(written, Batch(facts(2, 12, **late)))
    write(written, Batch(facts(3, 15, late_ms=NOW - 10**7, eviction_ms=NOW + 10**7)))
    assert [marker.letters_from for marker in markers_of(log)] == [{}, {0: 3}, {0: 3}, {}]


def test_the_marker_names_the_needed_dead_letter_topic() -> None:
    """A recreated one counts once no dead letter of the old one is needed any more."""
    log, bad = Log(), [rejected(Reason.UNDECODABLE)]
    written = sink(log, [], fragment("tolls"))
    old = log.kafka.topics[LETTERS].topic_id
    first = {"largest": {AT: NOW}, "eviction_ms": NOW - 10**7}
    late = {**first, "late_ms": NOW - 10**7}
    later = {**late, "largest": {AT: NOW + 10**9}, "eviction_ms": NOW + 10**8}
    write(written, Batch(facts(0, 5, bad=1, **first), wrong=bad))
    log.kafka.delete_topics((LETTERS,))
    create(log.kafka, LETTERS)
    new = log.kafka.topics[LETTERS].topic_id
    write(written, Batch(facts(1, 9, bad=1, **late), wrong=bad))
    write(written, Batch(facts(2, 12, bad=1, **later), wrong=bad))
    write(written, Batch(facts(3, 15, late_ms=NOW + 10**8, eviction_ms=NOW + 10**8)))
    found = [(marker.letters, marker.letters_from) for marker in markers_of(log)]
    assert found == [(old, {0: 0}), (old, {0: 0}), (new, {0: 2}), (new, {0: 2})]


def test_a_batch_waits_for_a_dead_letter_topic_without_a_leader() -> None:
    """A rebuild needs the start offsets of its dead letters; the wait is unlimited."""
    log, bad = Log(), [rejected(Reason.UNDECODABLE)]
    written = sink(log, [], fragment("tolls"))
    log.kafka.leaderless = (LETTERS,)
    with pytest.raises(NotNowError, match="has no leader") as caught:
        write(written, Batch(facts(0, 5, **BAD), wrong=bad))
    assert caught.value.place == "topic local.net.tolls.dlq"
    assert ("begin", "") not in log.done
    write(written, Batch(facts(0, 5, eviction_ms=NOW)))
    assert written.marker.batch == 0


def test_a_stateless_lane_needs_no_dead_letters() -> None:
    """It is never rebuilt."""
    log = Log()
    written = sink(log, [])
    write(written, Batch(facts(0, 5, bad=1), wrong=[rejected(Reason.UNDECODABLE)]))
    assert written.marker.letters_from == {}
