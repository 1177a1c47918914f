"""Event time that a lane without state passes on without a batch."""

from dataclasses import replace

import pytest

from pipeline.agent.events import Event
from pipeline.errors import BrokenInvariantError, FencedError, RefusedError, RetryError
from pipeline.ids import Millis
from pipeline.lanes.events import BatchFinished
from tests.unit.spark.write.sink_twins import NOW, Batch, Log, Topics, facts, sink, write


def test_event_time_is_passed_on_in_a_transaction_of_a_marker_alone() -> None:
    """The boundary follows, as after a batch; positions and counts stay."""
    log, events = Log(), list[Event]()
    written = sink(log, events)
    write(written, Batch(facts(0, 5), [(b"a", NOW + 1, None)]))
    last = written.marker
    log.clear()
    events.clear()
    written.pass_on(NOW)
    assert log.done == [
        ("begin", ""),
        ("send", "local.net.moving.markers"),
        ("same?", ""),
        ("commit", ""),
        ("boundary", "local.net.moving.boundaries"),
    ]
    marker = written.marker
    assert marker.boundary_ms == NOW
    assert replace(marker, boundary_ms=None, written_at_ms=last.written_at_ms) == last
    (event,) = events
    assert isinstance(event, BatchFinished)
    assert (event.rows_out, event.marker) == (0, marker)


def test_a_batch_follows_on_event_time_that_was_passed_on() -> None:
    """It keeps the promise, and results at or below it are marked as late."""
    log = Log()
    written = sink(log, [])
    written.pass_on(NOW)
    write(written, Batch(facts(0, 5), [(b"late", NOW, None), (b"fine", NOW + 1, None)]))
    assert (written.marker.batch, written.marker.boundary_ms) == (0, NOW)
    marks = [headers.get("medusa.late") for headers in log.headers["local.net.moving"]]
    assert marks == [b"%d" % NOW, None]


def test_event_time_that_falls_is_not_passed_on() -> None:
    """A promise is kept; nothing is written."""
    log = Log()
    written = sink(log, [])
    written.pass_on(NOW)
    log.clear()
    with pytest.raises(BrokenInvariantError, match=f"boundary {NOW - 1} after {NOW}"):
        written.pass_on(Millis(NOW - 1))
    assert log.done == []
    assert written.marker.boundary_ms == NOW


def test_event_time_is_not_passed_on_after_a_batch_that_was_not_written() -> None:
    """Its promise would cover records of that batch; the error of the batch is raised."""
    log = Log(fails={"commit": RetryError("later")})
    written = sink(log, [])
    write(written, Batch(facts(0, 5), [(b"a", NOW, None)]))
    log.fails = {}
    log.clear()
    with pytest.raises(RetryError, match="later"):
        written.pass_on(NOW)
    assert log.done == []


def test_event_time_is_not_passed_on_once_a_topic_is_recreated() -> None:
    """As with a batch, the transaction is aborted."""
    log = Log()
    written = sink(log, [], topics=Topics(log, RefusedError("made again")))
    before = written.marker
    with pytest.raises(RefusedError, match="made again"):
        written.pass_on(NOW)
    assert log.done[-2:] == [("same?", ""), ("abort", "")]
    assert written.marker is before


@pytest.mark.parametrize(
    ("error", "last"),
    [(RetryError("later"), "abort"), (FencedError("another"), "commit")],
)
def test_event_time_whose_transaction_fails_is_not_promised(error: Exception, last: str) -> None:
    """It is aborted, unless another owner has the transactional id; no boundary is published."""
    log = Log(fails={"commit": error})
    written = sink(log, [])
    before = written.marker
    with pytest.raises(type(error)):
        written.pass_on(NOW)
    assert log.done[-1] == (last, "")
    assert written.marker is before
    assert "local.net.moving.boundaries" not in log.values
