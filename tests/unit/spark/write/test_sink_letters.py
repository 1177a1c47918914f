"""What the sink's markers say of dead letters that a rebuild needs."""

import pytest

from brokers.kafka.errors import NotNowError
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.query.hidden import Reason
from tests.unit.spark.support import fragment
from tests.unit.spark.write.sink_twins import (
    AT,
    NOW,
    Admin,
    Batch,
    Log,
    facts,
    rejected,
    sink,
    write,
)

BAD = {"bad": 1, "late_ms": NOW, "eviction_ms": NOW}


def markers_of(log: Log) -> list[CommitMarker]:
    """The markers that were written, in order."""
    values = log.values["local.net.tolls.markers"]
    return [codec.decode_marker(value, "") for value in values if value is not None]


def test_the_marker_says_from_where_on_a_rebuild_needs_dead_letters() -> None:
    """From before the first letter of a record that may be read again; without a window none."""
    log = Log()
    written = sink(log, [], fragment("tolls"))
    late = {"largest": {AT: NOW}, "eviction_ms": NOW - 10**7}
    write(written, Batch(facts(0, 5, **late)))
    write(written, Batch(facts(1, 9, bad=1, **late), wrong=[rejected(Reason.UNDECODABLE)]))
    write(written, Batch(facts(2, 12, **late)))
    write(written, Batch(facts(3, 15, eviction_ms=NOW + 10**7)))
    assert [marker.letters_from for marker in markers_of(log)] == [{}, {0: 42}, {0: 42}, {}]


def test_the_marker_names_the_topic_whose_letters_a_rebuild_needs() -> None:
    """One that was made again counts once no letter of the old one is needed any more."""
    log, admin, bad = Log(), Admin(topic_id="old"), [rejected(Reason.UNDECODABLE)]
    written = sink(log, [], fragment("tolls"), admin=admin)
    late = {"largest": {AT: NOW}, "eviction_ms": NOW - 10**7}
    later = {"largest": {AT: NOW + 10**9}, "eviction_ms": NOW + 10**8}
    write(written, Batch(facts(0, 5, bad=1, **late), wrong=bad))
    admin.topic_id = "new"
    write(written, Batch(facts(1, 9, bad=1, **late), wrong=bad))
    write(written, Batch(facts(2, 12, bad=1, **later), wrong=bad))
    write(written, Batch(facts(3, 15, eviction_ms=NOW + 10**8)))
    found = [(marker.letters, marker.letters_from) for marker in markers_of(log)]
    assert found == [("old", {0: 42}), ("old", {0: 42}), ("new", {0: 42}), ("new", {0: 42})]


def test_a_batch_waits_for_a_dead_letter_topic_without_a_leader() -> None:
    """A rebuild needs to know where its letters begin; a lane waits as long as it takes."""
    log, bad = Log(), [rejected(Reason.UNDECODABLE)]
    written = sink(log, [], fragment("tolls"), admin=Admin(leaderless=("local.net.tolls.dlq",)))
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
