"""Boundary of an external stream."""

from dataclasses import replace

import pytest

from pipeline.boundaries.external import (
    InputTime,
    PartitionSeen,
    Slowest,
    StreamBoundary,
    external_time,
    least_active,
)
from pipeline.boundaries.profile import ExternalInput
from pipeline.ids import Millis, Offset, SteadyMillis
from tests.unit.boundaries.support import CARS, START_MS, STRICT_CARS

IDLE_AT = SteadyMillis(START_MS + CARS.idle_after_ms)


def seen(
    progress: int | None,
    *,
    number: int = 0,
    position: int = 10,
    end: int | None = 10,
    quiet: int = START_MS,
) -> PartitionSeen:
    """A partition, finished up to its end by default."""
    return PartitionSeen(
        number=number,
        position=Offset(position),
        end=None if end is None else Offset(end),
        progress_ms=None if progress is None else Millis(progress),
        quiet_since_ms=SteadyMillis(quiet),
    )


def boundary(
    *partitions: PartitionSeen,
    at: int | None = START_MS,
    stream: ExternalInput = CARS,
    floor: int | None = None,
) -> StreamBoundary | None:
    """The boundary as observed at a time."""
    return input_time(*partitions, at=at, stream=stream, floor=floor).boundary


def input_time(
    *partitions: PartitionSeen,
    at: int | None = START_MS,
    stream: ExternalInput = CARS,
    floor: int | None = None,
) -> InputTime:
    """The same with whether the stream is idle."""
    return external_time(
        stream,
        partitions,
        None if at is None else SteadyMillis(at),
        None if floor is None else Millis(floor),
    )


def test_boundary_is_least_progress_minus_lateness_minus_a_millisecond() -> None:
    """A record at exactly progress - lateness may still come, an earlier one may not."""
    assert boundary(seen(20_000), seen(30_000)) == StreamBoundary(Millis(20_000 - 5_000 - 1))


def test_a_partition_without_records_blocks_the_stream_until_it_is_idle() -> None:
    """Its first record could have any event time."""
    assert boundary(seen(20_000, quiet=IDLE_AT), seen(None), at=IDLE_AT - 1) is None
    assert boundary(seen(20_000, quiet=IDLE_AT), seen(None), at=IDLE_AT) == StreamBoundary(
        Millis(14_999)
    )


def test_an_unused_partition_is_idle_sooner() -> None:
    """No producer can have lost its connection to it."""
    patient = replace(CARS, idle_after_ms=180_000)
    busy = seen(90_000, quiet=START_MS + 9_000)
    unused = seen(None, position=0, end=0)
    assert boundary(busy, unused, at=START_MS + 9_999, stream=patient) is None
    never = boundary(busy, unused, at=START_MS + 10_000, stream=patient)
    assert never == StreamBoundary(Millis(84_999))
    used = boundary(busy, seen(1_000), at=START_MS + 179_999, stream=patient)
    assert used == StreamBoundary(Millis(-4_001))


def test_a_partition_with_records_that_the_lane_has_not_read_is_waited_for() -> None:
    """The lane may have begun at the end: an earlier producer may have lost its connection."""
    patient = replace(CARS, idle_after_ms=180_000)
    busy = seen(90_000, quiet=START_MS + 179_000)
    assert boundary(busy, seen(None), at=START_MS + 179_999, stream=patient) is None
    assert boundary(busy, seen(None), at=START_MS + 180_000, stream=patient) is not None


def test_an_idle_partition_does_not_count() -> None:
    """The slow partition no longer counts once it was silent for idle_after."""
    slow, busy = seen(1_000), seen(90_000, quiet=START_MS + 9_000)
    assert boundary(slow, busy, at=IDLE_AT - 1) == StreamBoundary(Millis(-4_001))
    assert boundary(slow, busy, at=IDLE_AT) == StreamBoundary(Millis(84_999))


def test_a_partition_with_unfinished_records_is_not_idle() -> None:
    """However long ago its last record was finished, there are more to read."""
    behind, busy = seen(1_000, position=9), seen(90_000, quiet=IDLE_AT)
    assert boundary(behind, busy, at=IDLE_AT + 60_000) == StreamBoundary(Millis(-4_001))


def test_a_partition_with_an_open_transaction_is_not_idle() -> None:
    """Its records may be committed, and are older than those that come then."""
    blocked, busy = replace(seen(1_000), open=True), seen(90_000, quiet=IDLE_AT)
    assert boundary(blocked, busy, at=IDLE_AT + 60_000) == StreamBoundary(Millis(-4_001))


def test_an_unreachable_topic_is_missing_and_never_idle() -> None:
    """Without a response every partition counts and the clock advances nothing."""
    assert boundary(seen(20_000), seen(30_000), at=None) == StreamBoundary(Millis(14_999))
    assert boundary(seen(20_000), seen(None), at=None) is None


def test_when_all_are_idle_event_time_advances_with_the_clock() -> None:
    """It advances from the largest progress by the time since the last record, not to now."""
    first, last = seen(20_000), seen(30_000, quiet=START_MS + 2_000)
    found = boundary(first, last, at=START_MS + 15_000)
    assert found == StreamBoundary(Millis(30_000 - 5_000 - 1 + 13_000), by_clock=True)


def test_when_all_are_idle_without_any_record_there_is_no_boundary() -> None:
    """There is no event time to advance from."""
    assert boundary(seen(None), seen(None), at=START_MS + 60_000) is None


def test_an_idle_stream_continues_from_its_last_boundary() -> None:
    """A late record in a long silence neither sets event time back nor stops it."""
    found = boundary(seen(20_000), at=IDLE_AT, floor=500_000)
    assert found == StreamBoundary(Millis(510_000), by_clock=True)


def test_silence_that_means_missing_blocks_event_time() -> None:
    """In such a stream a silent partition always counts."""
    late = START_MS + 600_000
    assert boundary(seen(20_000), seen(30_000), at=late, stream=STRICT_CARS) == StreamBoundary(
        Millis(14_999)
    )
    assert boundary(seen(None), seen(30_000), at=late, stream=STRICT_CARS) is None


def test_a_stream_without_partitions_has_no_boundary() -> None:
    """No known partition does not mean that no record comes."""
    assert boundary() is None


def test_a_stream_is_idle_when_all_its_partitions_are() -> None:
    """Also one that never had a record; not an unreachable one, or one that may not be silent."""
    quiet, busy = seen(1_000), seen(90_000, quiet=START_MS + 9_000)
    assert not input_time(quiet, busy, at=IDLE_AT).idle
    assert input_time(quiet, quiet, at=IDLE_AT).idle
    nothing = InputTime(None, idle=True, lateness_ms=CARS.lateness_ms)
    assert input_time(seen(None), seen(None), at=IDLE_AT) == nothing
    assert not input_time(quiet, quiet, at=None).idle
    assert not input_time(at=None).idle
    assert not input_time(at=IDLE_AT).idle
    assert not input_time(quiet, at=IDLE_AT, stream=STRICT_CARS).idle


def _at(at_ms: int | None, *, idle: bool = False) -> InputTime:
    return InputTime(None if at_ms is None else StreamBoundary(Millis(at_ms), by_clock=idle), idle)


def test_event_time_is_the_least_of_the_active_inputs() -> None:
    """An idle one does not count, whatever its event time; a missing one does."""
    assert least_active([_at(7), _at(5)]) == StreamBoundary(Millis(5))
    assert least_active([_at(7), _at(5, idle=True), _at(9)]) == StreamBoundary(Millis(7))
    assert least_active([_at(7), _at(None, idle=True)]) == StreamBoundary(Millis(7))
    assert least_active([_at(7), _at(None)]) is None


def test_when_all_inputs_are_idle_the_clock_continues_from_the_largest() -> None:
    """One without any record does not count."""
    largest = StreamBoundary(Millis(7), by_clock=True)
    assert least_active([_at(7, idle=True), _at(5, idle=True), _at(None, idle=True)]) == largest
    derived = InputTime(StreamBoundary(Millis(8)), idle=True)
    assert least_active([_at(7, idle=True), derived]) == StreamBoundary(Millis(8), by_clock=True)
    assert least_active([_at(None, idle=True)]) is None


@pytest.mark.parametrize("all_idle", [False, True])
def test_the_lateness_of_an_idle_input_counts(*, all_idle: bool) -> None:
    """Its records may be that far behind the deciding input; never behind its own boundary."""
    live = InputTime(StreamBoundary(Millis(1_000)), idle=all_idle, lateness_ms=50)

    def with_idle(at_ms: int | None, lateness_ms: int) -> int:
        found = least_active([live, replace(_at(at_ms, idle=True), lateness_ms=lateness_ms)])
        assert found is not None
        assert found.by_clock is all_idle
        return found.at_ms

    assert with_idle(500, 50) == with_idle(500, 10) == with_idle(None, 50) == 1_000
    assert with_idle(500, 350) == with_idle(None, 350) == 700
    assert with_idle(900, 350) == 900


def test_the_partition_that_holds_its_stream_back_is_found() -> None:
    """With its silence, if it is read; idle partitions hold nothing back."""
    ahead, behind = seen(30_000, number=1), seen(20_000, number=2, quiet=START_MS - 7)
    furthest = Millis(30_000 - 5_000 - 1)
    found = input_time(ahead, behind).slowest
    assert found == Slowest(2, furthest, SteadyMillis(START_MS - 7))
    unread = seen(20_000, number=2, position=9)
    assert input_time(ahead, unread).slowest == Slowest(2, furthest, None)
    assert input_time(ahead, seen(None, number=2, position=9)).slowest == Slowest(2, furthest, None)
    assert input_time(ahead, seen(30_000, number=2)).slowest is None
    assert input_time(seen(None, number=1), seen(None, number=2)).slowest is None
    idle = seen(20_000, number=2, quiet=START_MS)
    fresh = seen(30_000, number=1, quiet=IDLE_AT)
    assert input_time(fresh, idle, at=IDLE_AT).slowest is None
