from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.dead_letters.foresight import Closed, closed
from pipeline.dead_letters.letter import Letter, Place
from pipeline.ids import BoxName, Millis, Offset, SourceId, TopicName
from pipeline.lanes.source_ids import named_sources
from pipeline.planner.plan import Fragment
from schemas.avro import AvroSchema
from tests.unit.dead_letters.support import letter
from tests.unit.spark.run.test_rebuild import MARKER
from tests.unit.spark.support import fragment

MINUTE = 60_000


def _of(one: Fragment, eviction_ms: int | None) -> Closed:
    at = None if eviction_ms is None else Millis(eviction_ms)
    return closed(one, replace(MARKER, sources=named_sources(one), eviction_ms=at))


def _letter(one: Fragment, stream: int = 0, **others: Any) -> Letter:
    source = named_sources(one)[stream]
    return replace(letter(), source=source.id, event_time_ms=None, **others)


def _at(ms: int) -> Any:
    def decode(_: Letter, __: AvroSchema) -> Mapping[str, Any]:
        return {"at": datetime.fromtimestamp(ms / 1_000, UTC)}

    return decode


def _unreadable(_: Letter, __: AvroSchema) -> None:
    return None


def test_a_record_is_late_to_a_window_that_has_ended() -> None:
    """By the end of the window that it belongs to, not by its own time."""
    windows = fragment("tolls")
    found = _of(windows, 5 * MINUTE)
    assert found.box == "tolls_windows"
    assert found.would_be_late(_letter(windows), _at(5 * MINUTE - 1)) is True
    assert found.would_be_late(_letter(windows), _at(5 * MINUTE)) is False


def test_a_record_is_late_to_a_join_by_its_own_time() -> None:
    """That of a derived stream is its Kafka timestamp."""
    join = fragment("toll_notifications")
    found = _of(join, 5 * MINUTE)
    derived = next(n for n, one in enumerate(named_sources(join)) if one.name == "tolls")
    assert found.would_be_late(_letter(join, 1 - derived), _at(5 * MINUTE)) is True
    assert found.would_be_late(_letter(join, 1 - derived), _at(5 * MINUTE + 1)) is False
    for ms, late in ((5 * MINUTE, True), (5 * MINUTE + 1, False)):
        one = _letter(join, derived, timestamp_ms=Millis(ms))
        assert found.would_be_late(one, _unreadable) is late


@pytest.mark.parametrize("decode", [_unreadable, lambda *_: {"at": None}, lambda *_: {}])
def test_lateness_is_unknown_without_an_event_time(decode: Any) -> None:
    """The record cannot be decoded yet, or has no event time; or its source is unknown."""
    windows = fragment("tolls")
    found = _of(windows, 5 * MINUTE)
    assert found.would_be_late(_letter(windows), decode) is None
    foreign = replace(_letter(windows), source=SourceId("other/0"))
    assert found.would_be_late(foreign, _at(0)) is None


def test_a_header_with_the_event_time_has_precedence() -> None:
    """Records that were too early have it."""
    windows = fragment("tolls")
    early = replace(_letter(windows), event_time_ms=Millis(9 * MINUTE))
    assert _of(windows, 5 * MINUTE).would_be_late(early, _unreadable) is False


def test_a_row_with_its_table_version_is_not_late() -> None:
    """It is not buffered."""
    join = fragment("toll_notifications")
    of_row = replace(_letter(join), at=None, row=Place(TopicName("t"), 0, Offset(0)))
    assert _of(join, 5 * MINUTE).would_be_late(of_row, _unreadable) is False


def test_nothing_is_late_where_nothing_is_closed() -> None:
    """A fragment without state, one that has not run, one that has closed nothing yet."""
    windows = fragment("tolls")
    assert Closed(BoxName("moving")).would_be_late(_letter(windows), _unreadable) is False
    assert closed(windows, None).would_be_late(_letter(windows), _unreadable) is False
    assert _of(windows, None).would_be_late(_letter(windows), _unreadable) is False
