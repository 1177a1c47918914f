from dataclasses import astuple, replace

import pytest

from pipeline.reference.sensors import (
    DAY_MS,
    Alarm,
    Calibrated,
    Calibration,
    Drift,
    Earlier,
    Level,
    Reading,
    Room,
    Silence,
    Statistics,
    alarms,
    calibrated,
    drifts,
    earlier,
    levels,
    once,
    parse_calibration,
    parse_reading,
    rooms,
    silences,
    statistics,
)

READING = Reading("S1", 1, 20.0, 10_000, 3.5)
VERSION = Calibration("S1", "room-1", 1.0, 2.0, 9_000)
DEGREES = Calibrated("S1", 1, "room-1", 20.0, 3.5, 10_500)
SECOND, FIVE = 1_000, 5_000


def times(*at_ms: int) -> list[int]:
    """The times of the remaining readings with one number, if repeats come within two seconds."""
    found = once([replace(READING, measured_at=at) for at in at_ms], 2_000)
    return [reading.measured_at for reading in found]


def test_a_reading_counts_once() -> None:
    """By time, in any order; the bound is included, and a repeat repeats others."""
    assert times(12_000, 10_000) == [10_000]
    assert times(10_000, 12_001) == [10_000, 12_001]
    assert times(10_000, 11_500, 13_000) == [10_000]


def test_only_the_same_number_of_the_same_device_is_a_repeat() -> None:
    """Whatever the other fields are; of equal times the first position is kept."""
    others = [READING, replace(READING, number=2), replace(READING, device="S2")]
    assert once(others, 2_000) == others
    assert once([READING, replace(READING, value=5.0)], 2_000) == [READING]


def calibrated_by(*since: int) -> list[float]:
    """The value at 10,000 with versions at these times, the n-th with the offset n."""
    versions = [Calibration("S1", "room-1", n, 1.0, at) for n, at in enumerate(since)]
    return [one.value for one in calibrated([READING], versions, 5_000)]


def test_a_reading_is_calibrated_by_the_version_of_its_time() -> None:
    """The last one up to its own time, both ends included; of equal ones the last position."""
    assert calibrated_by(7_000, 9_000, 10_001) == [19.0]
    assert calibrated_by(9_000, 7_000) == [20.0]
    assert calibrated_by(10_000, 10_000) == [19.0]
    assert calibrated_by(5_000) == [20.0]
    assert calibrated_by(4_999) == calibrated_by(10_001) == calibrated_by() == []


def test_a_calibration_converts_to_degrees_and_adds_the_room() -> None:
    """The offset is added first; a version of another device is ignored."""
    found = calibrated([READING], [VERSION, replace(VERSION, device="S2", gain=9.0)], FIVE)
    assert found == [Calibrated("S1", 1, "room-1", 38.0, 3.5, 10_000)]


def test_statistics_are_those_of_a_device_in_a_window() -> None:
    """Missing numbers between others were lost; the battery is the last reported one."""
    found = statistics(
        [
            replace(DEGREES, measured_at=14_999, number=4, value=22.0, battery=None),
            DEGREES,
            replace(DEGREES, measured_at=15_000),
        ],
        FIVE,
    )
    assert found[0] == Statistics(
        "room-1", "S1", 10_000, 15_000, 2, 2, 21.0, 1.414214, 20.0, 22.0, 21.9, 3.5
    )
    assert (found[1].window_start, found[1].spread, found[1].lost) == (15_000, None, 0)


def device(name: str, mean: float) -> Statistics:
    """The average of a device of a room."""
    return Statistics("room-1", name, 0, FIVE, 1, 0, mean, None, mean, mean, mean, None)


def test_a_device_that_differs_from_its_room_drifts() -> None:
    """Each counts once, on both sides; the limit itself is no drift."""
    found = [device(str(n), mean) for n, mean in enumerate((20.0, 20.0, 20.0, 22.0, 17.5))]
    of_rooms = rooms(found, FIVE)
    assert of_rooms == [Room("room-1", FIVE, 10_000, 20.0)]
    assert drifts(found, of_rooms) == [Drift("4", "room-1", FIVE, 17.5, 20.0)]


def silences_of(*at_ms: int) -> list[tuple[int, int]]:
    """When a device fell silent, and after how many readings, with a gap of three seconds."""
    found = silences([replace(READING, measured_at=at) for at in at_ms], 3_000)
    assert {silence.device for silence in found} <= {"S1"}
    return [(silence.since, silence.readings) for silence in found]


def test_a_device_is_silent_after_a_gap() -> None:
    """The gap itself is none; after the last reading there is one."""
    assert silences_of(1_000, 4_000) == [(4_000, 2)]
    assert silences_of(4_001, 1_000) == [(1_000, 1), (4_001, 1)]
    assert silences([], 3_000) == []
    assert silences([READING], 3_000) == [Silence("S1", 10_000, 1)]


def test_midnight_hides_a_silence_and_begins_a_new_count() -> None:
    """A session is cut there."""
    assert silences_of(DAY_MS - 1_000, DAY_MS + 1_000) == [(DAY_MS + 1_000, 1)]
    assert silences_of(DAY_MS - 1_000) == []
    assert silences_of(DAY_MS - 3_001) == [(DAY_MS - 3_001, 1)]


def of(*values: float) -> list[Level]:
    """The levels of consecutive seconds, each with one reading."""
    return levels(
        [
            replace(DEGREES, number=n, value=value, measured_at=n * SECOND + 500)
            for n, value in enumerate(values)
        ],
        SECOND,
    )


def alarms_of(*values: float, valid_ms: int = DAY_MS) -> list[tuple[int, str]]:
    """The alarms of such seconds."""
    found = of(*values)
    return [(one.at, one.state) for one in alarms(found, earlier(found, SECOND), valid_ms)]


def test_the_level_of_a_second_is_that_of_its_last_decisive_reading() -> None:
    """By its number; values between the thresholds, inclusive, decide nothing."""
    assert of(25.0, 26.0, 24.0) == []
    readings = [replace(DEGREES, number=n, value=v) for n, v in ((3, 25.0), (2, 26.1), (1, 23.9))]
    assert levels(readings, SECOND) == [Level("S1", 10_000, 11_000, True, 26.1)]


def test_an_alarm_ends_below_the_other_threshold() -> None:
    """In between nothing changes, however long that lasts."""
    assert alarms_of(20, 27, 25, 26.5, 25, 24.5, 23, 25, 23, 27) == [
        (2_000, "hot"),
        (7_000, "cool"),
        (10_000, "hot"),
    ]


def test_the_first_level_is_no_alarm() -> None:
    """There is no earlier level, or none that is recent enough."""
    assert alarms_of(27) == []
    assert alarms_of(20, 25, 27, valid_ms=1_000) == [(3_000, "hot")]
    assert alarms_of(20, 25, 25, 27, valid_ms=1_000) == []


def test_a_level_is_compared_with_the_second_before_and_not_with_itself() -> None:
    """As that of another second it has the time of the second's end."""
    found = of(20.0, 27.0)
    assert earlier(found[:1], SECOND) == [Earlier("S1", 1_000, 2_000, hot=False)]
    assert alarms(found, earlier(found, SECOND), 0) == [Alarm("S1", 2_000, "hot", 27.0)]


def test_records_are_read_by_their_fields() -> None:
    """A missing field or one of another type is named."""
    names = ("device", "number", "value", "measured_at", "battery")
    fields = dict(zip(names, astuple(READING), strict=True))
    assert parse_reading(fields) == READING
    assert parse_reading({**fields, "battery": None}).battery is None
    with pytest.raises(ValueError, match="not a reading"):
        parse_reading({**fields, "value": "20"})
    names = ("device", "room", "offset", "gain", "since")
    fields = dict(zip(names, astuple(VERSION), strict=True))
    assert parse_calibration(fields) == VERSION
    with pytest.raises(ValueError, match="not a calibration"):
        parse_calibration({"device": "S1"})
