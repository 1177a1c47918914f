"""Tail of an output with its tentative results."""

from typing import cast

import pytest

from brokers.memory_kafka.reader import MemoryReader
from brokers.records import KafkaRecord
from pipeline.errors import RefusedError
from pipeline.operations.connections import Connections
from pipeline.operations.records.selection import Selector
from pipeline.operations.records.tail_tentative import (
    NO_OFFSET,
    MarkedRecord,
    TentativeLimits,
    TentativeTail,
)
from pipeline.reader.results import Start
from tests.unit.deploy.twins import TwinRegistry, World
from tests.unit.reader.output import TOPIC, Output
from tests.unit.tentative.made import mark, result, undo


class _Connections:
    """The servers of an output."""

    def __init__(self, output: Output) -> None:
        self.topics = output.kafka

    def reader(self) -> MemoryReader:
        """A reader of committed records."""
        return self.topics.reader(1.0)


class _Values(Selector):
    """Selects records by their bytes."""

    selects_all = False

    def __init__(self, *values: bytes) -> None:
        self._values = values

    def matches(self, record: KafkaRecord) -> bool:
        """Whether it has one of the values."""
        return record.value in self._values


def _tail(
    output: Output, selector: Selector | None = None, start: Start = Start.BEGINNING
) -> list[MarkedRecord]:
    registry = TwinRegistry(World.new().store)
    tail = TentativeTail(
        TOPIC,
        TentativeLimits(start, None, follow=False),
        selector or Selector(registry, None),
        cast("Connections", _Connections(output)),
        output.clock,
    )
    return list(tail.records())


def _told(found: list[MarkedRecord]) -> list[tuple[str, bytes | None, str]]:
    return [
        (one.mark.value, None if one.record is None else one.record.value, one.generation)
        for one in found
        if one.record is None or one.record.topic == TOPIC
    ]


def test_what_exists_is_shown_with_marks() -> None:
    """Stable results first; tentative ones that are settled by then are not shown."""
    output = Output()
    output.tentative(result("a", 10))
    output.stable("a", 10)
    output.promise(10)
    output.tentative(result("b", 20, "early"))
    found = _tail(output)
    assert _told(found) == [("stable", b"v", ""), ("tentative", b"early", "1.1")]
    stable, tentative = (one.record for one in found)
    assert stable is not None
    assert stable.offset == 0
    assert tentative is not None
    assert (tentative.offset, tentative.timestamp_ms) == (NO_OFFSET, 20)
    assert _told(_tail(output, start=Start.NOW)) == [("tentative", b"early", "1.1")]


def test_what_becomes_of_shown_results_is_shown() -> None:
    """With the value that an undone result had."""
    output = Output()
    for name in "abc":
        output.tentative(result(name, 10, name))
    limits = TentativeLimits(Start.BEGINNING, output.clock.monotonic_s() + 60, follow=True)
    selector = Selector(TwinRegistry(World.new().store), None)
    connections = cast("Connections", _Connections(output))
    found = TentativeTail(TOPIC, limits, selector, connections, output.clock).records()
    assert _told([next(found) for _ in range(3)]) == [
        ("tentative", name, "1.1") for name in (b"a", b"b", b"c")
    ]
    output.stable("a", 10, "a")
    output.stable("b", 10, "other")
    output.promise(10)
    output.tentative(mark(10))
    assert sorted(_told([next(found) for _ in range(4)])) == [
        ("confirmed", b"a", ""),
        ("done", None, "1.1"),
        ("replaced", b"other", ""),
        ("undone", b"c", "1.1"),
    ]


def test_with_a_condition_only_the_fate_of_shown_results_is_shown() -> None:
    """Also by a stable result that does not fulfil it."""
    output = Output()
    for name in "abc":
        output.tentative(result(name, 10, name))
    limits = TentativeLimits(Start.BEGINNING, output.clock.monotonic_s() + 60, follow=True)
    connections = cast("Connections", _Connections(output))
    selector = _Values(b"a", b"b")
    found = TentativeTail(TOPIC, limits, selector, connections, output.clock).records()
    assert len([next(found) for _ in range(2)]) == 2
    output.stable("a", 10, "other")
    for name in "bc":
        output.tentative(undo(name, 10))
    output.stable("d", 10, "d")
    output.tentative(mark(10))
    output.promise(10)
    told = _told([next(found) for _ in range(3)])
    assert sorted(told) == [
        ("done", None, "1.1"),
        ("replaced", b"other", ""),
        ("undone", b"b", "1.1"),
    ]


def test_a_correction_that_deletes_is_shown_as_undone() -> None:
    """It has no value; with a condition nothing says whether it was shown."""
    output = Output()
    output.stable("a", 10)
    output.stable("a", 10, None, correction=1)
    found = _tail(output)
    assert _told(found) == [("stable", b"v", ""), ("undone", None, "")]
    assert found[-1].corrects == 1
    assert _told(_tail(output, _Values(b"v"))) == [("stable", b"v", "")]


def test_an_output_without_tentative_results_is_refused() -> None:
    """It has no second topic."""
    with pytest.raises(RefusedError, match="never tentative"):
        _tail(Output(tentative=False))


def test_a_tail_ends_in_time() -> None:
    """After one poll."""
    output = Output()
    output.stable("a", 10)
    limits = TentativeLimits(Start.BEGINNING, output.clock.monotonic_s(), follow=True)
    selector = Selector(TwinRegistry(World.new().store), None)
    connections = cast("Connections", _Connections(output))
    found = TentativeTail(TOPIC, limits, selector, connections, output.clock).records()
    assert _told(list(found)) == [("stable", b"v", "")]
