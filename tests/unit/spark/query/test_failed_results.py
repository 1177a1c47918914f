"""Dead letters of results that could not be computed."""

from dataclasses import replace

import pytest

from pipeline.ids import Millis, NetworkVersion
from pipeline.lanes.dead_letters import headers
from pipeline.lanes.result_headers import LATE_RESULT
from pipeline.lanes.source_ids import answered_by
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from pipeline.spark.query.failed_results import FailedResult, FailedRow
from tests.unit.planner.networks import OWNER, as_of_join, column, external, network, united
from tests.unit.spark.support import fragment, sources_with_redrive
from tests.unit.spark.write.sink_twins import NOW, Batch, Log, facts, sink, write

CARS, VANS, FEES = (external(name, column("car")) for name in ("sightings", "vans", "fees"))
BOTH = united("both", CARS, VANS)
PRICED = as_of_join("priced", BOTH, FEES, (("car", "car"),), {"car": "`left`.`car`"}, 7)
WORD = "evaluation_failed:priced:select.car:1 / 0"
OWN = '{"path":"left.2","partition":1,"offset":2,"attempt":1}'
AGAIN = '{"path":"left.2","partition":1,"offset":2,"attempt":3,"first":"vans-topic/0/7"}'


def as_of() -> Fragment:
    """An as-of join behind a union."""
    (planned,) = plan(network((CARS, VANS, FEES), (BOTH, PRICED)), OWNER).fragments
    return planned


def headers_of(row: FailedRow | None, of: Fragment | None = None) -> dict[str, bytes | None]:
    """The headers of a dead letter, without their prefix."""
    planned = of or as_of()
    result = FailedResult(WORD, b"{}", Millis(5), row)
    sources = sources_with_redrive(planned)
    letter = result.letter(planned, NetworkVersion(1), sources, answered_by(planned, sources))
    found = headers(planned.names, letter.context, ())
    return {name.removeprefix("medusa.error."): value for name, value in found}


def test_a_dead_letter_names_the_record_of_the_left_row() -> None:
    """By its path; it is distinct from one of that record, which a rebuild would skip."""
    found = headers_of(FailedRow("left.2", 1, 2, 1, None, b"said"))
    names = ("row", "input", "port", "source", "topic_id", "held", "attempt", "box")
    assert [found[name] for name in names] == [
        b"vans-topic/1/2", b"vans", b"left.2", b"vans-topic/0", b"vans-topic", b"said", b"1",
        b"priced",
    ]  # fmt: skip
    assert found["held_by"] == answered_by(as_of(), sources_with_redrive(as_of())).encode()
    assert not {"topic", "partition", "offset", "medusa.redriven.origin"} & found.keys()


def test_a_redriven_record_has_its_place_in_the_redrive_topic() -> None:
    """With its first place as well; without a match there is no header."""
    found = headers_of(FailedRow("left.1", 1, 2, 3, "sightings-topic/0/7", None))
    assert found["row"] == b"local.net.priced.redrive/1/2"
    assert (found["attempt"], found["source"]) == (b"3", b"sightings-topic/0")
    assert found["medusa.redriven.origin"] == b"sightings-topic/0/7"
    assert "held" not in found


def test_other_results_have_no_single_record() -> None:
    """As of windows."""
    found = headers_of(None, fragment("tolls"))
    assert not {"row", "input", "source", "held", "held_by", "topic_id"} & found.keys()
    assert found["attempt"] == b"1"


def test_the_sink_writes_the_dead_letter() -> None:
    """With the values, and counted."""
    log = Log()
    written = sink(log, [], as_of())
    rows = [(b"good", NOW, None), (b'{"x":0}', NOW, WORD)]
    write(written, Batch(facts(0, 5), rows, of_rows=[(None, None, False), (OWN, b"said", False)]))
    assert log.values["local.net.priced.dlq"] == [b'{"x":0}']
    (found,) = log.headers["local.net.priced.dlq"]
    assert found["medusa.error.row"] == b"vans-topic/1/2"
    assert found["medusa.error.held"] == b"said"
    assert LATE_RESULT not in log.headers["local.net.priced"][0]
    assert written.marker.totals.dead_letters == 1


@pytest.mark.parametrize(("at_ms", "late"), [(NOW, True), (NOW + 1, False)])
def test_results_of_redriven_rows_are_marked_as_late(at_ms: int, *, late: bool) -> None:
    """They are below the promise, and their readers decide; others of the batch are not."""
    log = Log()
    written = sink(log, [], as_of())
    write(written, Batch(facts(0, 5, eviction_ms=NOW)))
    assert written.marker.boundary_ms == NOW
    rows = [(b"again", at_ms, None), (b"own", NOW + 5, None)]
    of_rows = [(None, None, True), (None, None, False)]
    batch = Batch(facts(1, 6, late_ms=NOW, eviction_ms=NOW + 9), rows, of_rows=of_rows)
    write(written, batch)
    assert log.values["local.net.priced"] == [b"again", b"own"]
    marks = [found.get(LATE_RESULT) for found in log.headers["local.net.priced"]]
    assert marks == [b"%d" % NOW if late else None, None]
    assert written.marker.boundary_ms == NOW + 9


def test_other_results_below_a_promise_are_never_marked() -> None:
    """It would hide that the promise was broken."""
    log = Log()
    written = sink(log, [], as_of())
    write(written, Batch(facts(0, 5, eviction_ms=NOW)))
    of_batch = facts(1, 6, late_ms=NOW, eviction_ms=NOW)
    write(written, Batch(of_batch, [(b"own", NOW, None)], of_rows=[(None, None, False)]))
    assert LATE_RESULT not in log.headers["local.net.priced"][0]


def test_the_headers_of_a_row_that_failed_again() -> None:
    """All headers of the query are preserved."""
    row = FailedRow.read(AGAIN, b"said")
    assert row == FailedRow("left.2", 1, 2, 3, "vans-topic/0/7", b"said")
    assert headers_of(row)["row"] == b"local.net.priced.redrive/1/2"


def test_a_dead_letter_of_another_plan_has_another_digest() -> None:
    """So a former match is not used in place of the present one."""
    planned = as_of()
    box = replace(PRICED, within_ms=8)
    other = replace(planned, boxes=(BOTH, box))
    assert (
        headers_of(FailedRow("left.1", 0, 0, 1, None, b""), other)["held_by"]
        != headers_of(FailedRow("left.1", 0, 0, 1, None, b""))["held_by"]
    )
