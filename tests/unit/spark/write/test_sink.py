from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pipeline.agent.events import Event
from pipeline.clock import Deadline
from pipeline.errors import (
    BrokenInvariantError,
    RetryError,
)
from pipeline.ids import Millis, SchemaId, StreamName
from pipeline.lanes.batch import RepeatedOtherwiseError
from pipeline.lanes.dead_letter_limits import TooManyDeadLettersError
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.events import BatchFinished
from pipeline.lanes.result_headers import WRITTEN_TO
from pipeline.markers import codec
from pipeline.markers.refused import Refused
from pipeline.network.model import Limit
from pipeline.planner.plan import Fragment
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.batch.unknown_schemas import UnknownSchemasError
from pipeline.spark.query.hidden import NO_RESULT
from pipeline.spark.write.outgoing import Outgoing
from pipeline.spark.write.sink import Sink
from tests.unit.spark.support import fragment
from tests.unit.spark.write.sink_twins import (
    AT,
    NOW,
    Batch,
    Log,
    Plain,
    Plans,
    Schemas,
    facts,
    rejected,
    sink,
    stateless,
    write,
)


def test_a_batch_is_one_transaction_with_the_marker_last_and_the_boundary_after_it() -> None:
    """A promise is published once its marker is committed."""
    log, events = Log(), list[Event]()
    written = sink(log, events, plans=Plans(NOW))
    write(written, Batch(facts(0, 5), [(b"a", NOW + 1, None), (b"b", NOW + 2, None)]))
    assert log.done == [
        ("begin", ""),
        ("send", "local.net.moving"),
        ("send", "local.net.moving.markers"),
        ("same?", ""),
        ("commit", ""),
        ("boundary", "local.net.moving.boundaries"),
    ]
    (value,) = log.values["local.net.moving.markers"]
    assert value is not None
    marker = codec.decode_marker(value, "")
    assert (marker.batch, marker.end[AT], marker.boundary_ms) == (0, 5, NOW)
    assert marker.totals.records_out == 2
    (boundary,) = log.values["local.net.moving.boundaries"]
    assert boundary is not None
    assert codec.decode_boundary(boundary, "").positions == {0: 3}
    (event,) = events
    assert isinstance(event, BatchFinished)
    assert (event.rows_out, event.marker) == (2, marker)


def test_a_batch_is_compared_with_its_plan_before_anything_is_written() -> None:
    """With the marker before it: if Spark executed another one, nothing of it is published."""
    log, plans = Log(), Plans(wrong=BrokenInvariantError("planned up to offset 4"))
    written = sink(log, [], plans=plans)
    with pytest.raises(BrokenInvariantError, match="planned up to offset 4"):
        write(written, Batch(facts(0, 5), [(b"a", NOW, None)]))
    assert (log.done, written.marker.batch) == ([], -1)
    assert plans.executed_batches == [(-1, 0)]


def test_a_repeated_batch_is_not_compared_with_a_plan() -> None:
    """It was planned by an earlier run; its marker says what it was."""
    plans = Plans()
    written = sink(Log(), [], plans=plans)
    for _ in range(2):
        write(written, Batch(facts(0, 5)))
    assert plans.executed_batches == [(-1, 0)]


def test_a_stateless_lane_promises_what_its_plan_says_and_one_with_state_what_it_closed() -> None:
    """A plan without a movement leaves the promise as it is."""
    written = sink(Log(), [], plans=Plans(NOW))
    for batch, end in ((0, 5), (1, 6)):
        write(written, Batch(facts(batch, end)))
        assert written.marker.boundary_ms == NOW
    windows = sink(Log(), [], fragment("tolls"), plans=Plans(Millis(NOW + 10**9)))
    write(windows, Batch(facts(0, 5, eviction_ms=NOW)))
    assert windows.marker.boundary_ms is not None
    assert windows.marker.boundary_ms <= NOW + 60_000


def test_a_written_batch_is_executed_but_not_written_again() -> None:
    """After a crash between the transaction and Spark's own commit, output must not double."""
    log, events = Log(), list[Event]()
    written = sink(log, events)
    batch = Batch(facts(0, 5), [(b"a", NOW, None)])
    write(written, batch)
    done = list(log.done)
    write(written, batch)
    assert log.done == done
    assert len(events) == 2


def test_bad_records_are_in_the_transaction_of_their_batch() -> None:
    """The inspection is done only when the batch counted some."""
    log = Log()
    written = sink(log, [])
    write(written, Batch(facts(0, 5), wrong=[rejected(Reason.UNDECODABLE)]))
    assert "local.net.moving.dlq" not in log.values
    write(written, Batch(facts(1, 6, bad=1), wrong=[rejected(Reason.UNDECODABLE)]))
    assert log.values["local.net.moving.dlq"] == [b"broken"]
    (headers,) = log.headers["local.net.moving.dlq"]
    assert headers["h"] == b"v"
    assert headers["medusa.error.reason"] == b"undecodable"
    assert headers["medusa.error.message"] == b"told"
    assert headers["medusa.error.offset"] == b"5"
    assert written.marker.totals.dead_letters == 1
    assert log.done[-1] == ("commit", "")


def test_results_of_a_stateless_lane_at_or_below_its_promise_are_marked() -> None:
    """It has no state to protect from such a record: the reader of the result decides."""
    log = Log()
    written = sink(log, [], plans=Plans(NOW))
    write(written, Batch(facts(0, 5)))
    rows = [(b"late", NOW, None), (b"fine", NOW + 1, None), (b"early", NOW - 1, None)]
    batch = Batch(facts(1, 7), rows)
    write(written, batch)
    assert batch.asked_late_ms is None
    assert log.values["local.net.moving"] == [b"late", b"fine", b"early"]
    own = {WRITTEN_TO: b"out-1"}
    late = {**own, "medusa.late": b"%d" % NOW}
    assert log.headers["local.net.moving"][-3:] == [late, own, late]
    assert "local.net.moving.dlq" not in log.values
    totals = written.marker.totals
    assert (totals.records_out, totals.late_dropped) == (3, 0)
    assert written.marker.boundary_ms == NOW


def test_records_without_a_result_are_neither_written_nor_late() -> None:
    """A filter has dropped them, whatever their times; only bad ones are inspected."""
    log = Log()
    written = sink(log, [], plans=Plans(NOW))
    write(written, Batch(facts(0, 5)))
    rows = [(b"-", NOW - 1, NO_RESULT), (b"fine", NOW + 1, None), (b"-", NOW, "undecodable")]
    batch = Batch(facts(1, 8), rows, [rejected(Reason.LATE)])
    write(written, batch)
    assert batch.asked_late_ms is None
    assert log.values["local.net.moving"] == [b"fine"]
    assert "local.net.moving.dlq" not in log.values
    assert written.marker.totals.records_out == 1


def test_a_late_record_of_a_derived_stream_stops_the_lane_before_any_write() -> None:
    """Its writer promised that there would be none, so one of two invariants is broken."""
    log = Log()
    reader = fragment("toll_notifications")
    written = sink(log, [], reader, promised={StreamName("tolls"): NOW}.get)
    (topic,) = (one.topic for one in reader.inputs if one.name == "tolls")
    late = rejected(Reason.LATE, "tolls", topic, NOW)
    batch = Batch(facts(0, 5, late=1, late_ms=NOW), wrong=[late])
    with pytest.raises(BrokenInvariantError, match="derived stream tolls"):
        write(written, batch)
    assert log.done == []


def test_an_unknown_schema_stops_the_batch_before_any_write() -> None:
    """The ids are in the error, so that the lane can look them up and run the batch again."""
    log = Log()
    written = sink(log, [], schemas=Schemas((SchemaId(8), SchemaId(9))))
    with pytest.raises(UnknownSchemasError) as caught:
        write(written, Batch(facts(0, 5, bad=1, unknown=(SchemaId(8),))))
    assert caught.value.handles == (8,)
    assert log.done == []


def test_a_batch_is_abandoned_at_most_twice_for_schemas() -> None:
    """First with the ids that the engine reports; if others follow in the same batch, with all."""
    log = Log()
    there = Schemas((SchemaId(7), SchemaId(8), SchemaId(9)))
    written = sink(log, [], schemas=there)
    reported = []
    for first in (8, 7):
        with pytest.raises(UnknownSchemasError) as caught:
            write(written, Batch(facts(0, 5, bad=1, unknown=(SchemaId(first),))))
        reported.append(caught.value.handles)
    assert reported == [(8,), (9,)]


def test_a_schema_that_occurs_with_a_missing_one_is_found_too() -> None:
    """The engine reports one id of each input; when the registry lacks it, all are looked up."""
    log = Log()
    written = sink(log, [])
    with pytest.raises(UnknownSchemasError) as caught:
        write(written, Batch(facts(0, 5, bad=2, unknown=(SchemaId(77),))))
    assert caught.value.handles == (9,)
    assert log.done == []


def test_a_schema_missing_in_the_registry_stops_nothing() -> None:
    """Its record was excluded from the batch as a bad one, and is a dead letter."""
    log = Log()
    written = sink(log, [], schemas=Schemas(()))
    wrong = [rejected(Reason.SCHEMA_NOT_FOUND)]
    write(written, Batch(facts(0, 5, bad=1, unknown=(SchemaId(9),)), [(b"a", NOW, None)], wrong))
    assert log.values["local.net.moving.dlq"] == [b"broken"]
    assert log.values["local.net.moving"] == [b"a"]


def test_a_failed_result_is_a_dead_letter() -> None:
    """The other results of the batch are written as always."""
    log = Log()
    written = sink(log, [], fragment("tolls"))
    rows = [(b"good", NOW, None), (b'{"x":0}', NOW, "evaluation_failed:charged:where:x")]
    write(written, Batch(facts(0, 5), rows))
    assert log.values["local.net.tolls"] == [b"good"]
    assert log.values["local.net.tolls.dlq"] == [b'{"x":0}']
    (headers,) = log.headers["local.net.tolls.dlq"]
    assert headers["medusa.error.box"] == b"charged"
    assert headers["medusa.error.field"] == b"where"
    assert headers["medusa.error.message"] == b"where cannot be computed: x"
    assert written.marker.totals.dead_letters == 1


def test_an_unpublished_boundary_is_published_with_the_next_batch() -> None:
    """Also when it is unchanged since; a published one is not repeated."""
    log = Log()
    plain = Plain(log, fails=True)
    written = sink(log, [], plain=plain, plans=Plans(NOW))
    write(written, Batch(facts(0, 5)))
    assert "local.net.moving.boundaries" not in log.values
    plain.fails = False
    write(written, Batch(facts(1, 6)))
    write(written, Batch(facts(2, 7)))
    assert len(log.values["local.net.moving.boundaries"]) == 1


def test_a_start_publishes_the_last_promise() -> None:
    """The last owner may have failed between its commit and its boundary."""
    log = Log()
    written = sink(log, [])
    written.start(replace(written.marker, boundary_ms=NOW))
    assert log.done == [
        ("begin", ""),
        ("send", "local.net.moving.markers"),
        ("commit", ""),
        ("boundary", "local.net.moving.boundaries"),
    ]


def test_the_group_has_the_committed_offsets() -> None:
    """From the start on, and not those of an abandoned batch."""
    log = Log()
    written = sink(log, [])
    write(written, Batch(facts(0, 5)))
    log.fails = {"commit": RetryError("no")}
    write(written, Batch(facts(1, 7)))
    assert log.kafka.followed == [{AT.topic: {0: 0}}, {AT.topic: {0: 5}}]


@dataclass
class Recorded:
    """A writer that keeps what it gets, after the check."""

    outgoing: list[Outgoing] = field(default_factory=list)
    undecided = False

    def write(self, outgoing: Outgoing, check: Callable[[], None], deadline: Deadline) -> None:
        """Keep it."""
        check()
        deadline.check()
        self.outgoing.append(outgoing)


def test_a_sink_writes_by_any_writer() -> None:
    """It gets markers, dead letters and results; no transaction is begun."""
    log, by = Log(), Recorded()
    written = sink(log, [], plans=Plans(NOW), by=by)
    write(written, Batch(facts(0, 5, bad=1), [(b"a", NOW, None)], [rejected(Reason.UNDECODABLE)]))
    written.pass_on(Millis(NOW + 1))
    _, batch, passed = by.outgoing
    assert (batch.marker.batch, [one.value for one in batch.letters]) == (0, [b"broken"])
    assert batch.results is not None
    assert list(batch.results.results.records(1)) == [(None, b"a", NOW, 0)]
    assert (passed.marker, passed.letters, passed.results) == (written.marker, (), None)
    assert ("begin", "") not in log.done


def limited(most: int) -> Fragment:
    """A filter with a limit of undecodable records of its input."""
    return replace(stateless(), limits=(Limit("sightings", most),))


def test_a_batch_beyond_a_limit_is_not_written() -> None:
    """No transaction is begun, and the marker stays: another run of it decides the same."""
    log, events = Log(), list[Event]()
    written = sink(log, events, limited(0))
    batch = Batch(facts(0, 6, bad=1), [(b"a", NOW, None)], wrong=[rejected(Reason.UNDECODABLE)])
    for _ in range(2):
        with pytest.raises(TooManyDeadLettersError, match="stream sightings has 1 dead letter"):
            write(written, batch)
    assert (log.done, events, written.marker.batch) == ([], [], -1)


def test_accepted_dead_letters_are_counted_in_the_marker() -> None:
    """The next batch, in this incarnation or another, continues the count."""
    log, events = Log(), list[Event]()
    written = sink(log, events, limited(1))
    bad = [rejected(Reason.UNDECODABLE)]
    write(written, Batch(facts(0, 6, bad=1), wrong=bad))
    assert written.marker.refused == {"sightings": Refused(None, {0: 1})}
    write(written, Batch(facts(1, 7)))
    assert written.marker.refused == {"sightings": Refused(None, {0: 1})}
    with pytest.raises(TooManyDeadLettersError, match="2 dead letters"):
        write(written, Batch(facts(2, 8, bad=1), wrong=bad))


def test_a_failed_result_counts_for_its_box() -> None:
    """It is refused before anything is sent."""
    planned = fragment("tolls")
    planned = replace(planned, limits=(Limit("tolls", 0),))
    log = Log()
    written = sink(log, [], planned)
    word = "evaluation_failed:tolls:select.toll:1 / 0"
    with pytest.raises(TooManyDeadLettersError, match="box tolls has 1 dead letter"):
        write(written, Batch(facts(0, 5), [(b"{}", NOW, word)]))
    assert log.done == []


BAD = {"bad": 1, "eviction_ms": NOW}


def written_once(log: Log, wrong: list[Rejected], **others: Any) -> Sink:
    """A sink of windows that has written one batch with a bad record."""
    written = sink(log, [], fragment("tolls"), **others)
    write(written, Batch(facts(0, 5, **BAD), wrong=wrong))
    log.done.clear()
    return written


def test_a_repeated_batch_is_executed_and_compared_and_not_written() -> None:
    """Its refused records are inspected in the ranges of its first execution."""
    log, bad = Log(), [rejected(Reason.SCHEMA_NOT_FOUND)]
    written = written_once(log, bad)
    again = Batch(facts(0, 5, **BAD), wrong=bad)
    write(written, again)
    assert log.done == []
    assert again.asked == [({AT: 0}, {AT: 5})]
    assert written.marker.batch == 0


@pytest.mark.parametrize(
    ("changes", "wrong", "said"),
    [
        ({"bad": 0}, [], "bad records: 0, not 1"),
        ({"eviction_ms": None}, [], "watermark of the state"),
        ({}, [rejected(Reason.UNDECODABLE)], "other records are refused"),
        ({}, [], "other records are refused"),
    ],
)
def test_a_repeated_batch_that_decides_otherwise_ends_its_checkpoint(
    changes: dict[str, Any], wrong: list[Rejected], said: str
) -> None:
    """A schema was registered in between: its record would be in the state and a dead letter."""
    log = Log()
    written = written_once(log, [rejected(Reason.SCHEMA_NOT_FOUND)])
    with pytest.raises(RepeatedOtherwiseError, match=said) as caught:
        write(written, Batch(facts(0, 5, **{**BAD, **changes}), wrong=wrong))
    assert caught.value.place == "fragment net.tolls"
    assert log.done == []


def test_a_repeated_batch_looks_up_schemas_only_if_it_decides_otherwise() -> None:
    """Its records were accepted with a schema that is not planned with yet; or are all the same."""
    log, bad = Log(), [rejected(Reason.SCHEMA_NOT_FOUND)]
    written = written_once(log, bad)
    write(written, Batch(facts(0, 5, unknown=(SchemaId(9),), **BAD), wrong=bad))
    more = {**BAD, "bad": 2, "unknown": (SchemaId(9),)}
    with pytest.raises(UnknownSchemasError):
        write(written, Batch(facts(0, 5, **more), wrong=bad))
    nowhere = Schemas(())
    written = written_once(log, bad, schemas=nowhere)
    with pytest.raises(RepeatedOtherwiseError):
        write(written, Batch(facts(0, 5, **more), wrong=bad))
    assert nowhere.missing == []  # its records were accepted: it may be back for the rebuild


def test_a_stateless_lane_does_not_compare_a_repeated_batch() -> None:
    """And no schema is looked up."""
    written = sink(Log(), [])
    write(written, Batch(facts(0, 5, bad=1), wrong=[rejected(Reason.UNDECODABLE)]))
    write(written, Batch(facts(0, 5, unknown=(SchemaId(9),))))
    assert written.marker.batch == 0


def test_a_dropped_late_record_has_a_dead_letter_or_nothing_is_written() -> None:
    """And a record that the inspection finds to be late was dropped."""
    log = Log()
    late = facts(0, 5, late=1, late_ms=NOW)
    with pytest.raises(BrokenInvariantError, match="finds no late record"):
        write(sink(log, [], fragment("tolls")), Batch(late))
    with pytest.raises(BrokenInvariantError, match="finds no late record"):
        write(sink(log, [], fragment("tolls")), Batch(late, wrong=[rejected(Reason.UNDECODABLE)]))
    with pytest.raises(BrokenInvariantError, match="no row of its batch was dropped"):
        write(
            sink(log, [], fragment("tolls")),
            Batch(facts(0, 5, bad=1, late_ms=NOW), wrong=[rejected(Reason.LATE)]),
        )
    assert log.done == []


def test_records_refused_by_a_chosen_rebuild_are_dead_letters_with_its_marker() -> None:
    """So a later rebuild skips them, and they can be redriven."""
    log = Log()
    written = sink(log, [], limited(1))
    written.start(written.marker, [rejected(Reason.UNDECODABLE)])
    assert log.done[:4] == [
        ("begin", ""),
        ("send", "local.net.moving.dlq"),
        ("send", "local.net.moving.markers"),
        ("commit", ""),
    ]
    assert written.marker.totals.dead_letters == 1
    assert written.marker.refused == {"sightings": Refused(None, {0: 1})}
    log.done.clear()
    with pytest.raises(TooManyDeadLettersError):
        written.start(written.marker, [rejected(Reason.UNDECODABLE)])
    assert log.done == []


def test_the_marker_contains_lower_limits_of_the_output_ends() -> None:
    """From the publication of the last boundary; of another topic there are none."""
    log = Log()
    written = sink(log, [], plans=Plans(NOW))
    first = written.marker
    assert (first.output, first.output_ends) == ("out-1", {})
    write(written, Batch(facts(0, 5), [(b"a", NOW + 1, None)]))
    assert written.marker.output_ends == {}
    write(written, Batch(facts(1, 6), [(b"b", NOW + 1, None)]))
    assert (written.marker.output, written.marker.output_ends) == ("out-1", {0: 2})
    last = written.marker
    again = sink(Log(), [])
    again.start(last)
    assert again.marker == last
    again.start(replace(last, output="another"))
    assert (again.marker.output, again.marker.output_ends) == ("out-1", {})
