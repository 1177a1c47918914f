"""Reference of the sensors network, record by record, from all readings and calibrations.

Rules, as in the network document:

- A reading counts once: it is dropped if one of the same device and number precedes it, by time
  and then by position, at most `repeat_ms` earlier, whether or not that one was dropped.
- It is calibrated by the last version of its device that is not younger than it and at most
  `valid_ms` older; of versions of one moment by the last in the log. Without a version it is
  dropped.
- Statistics are those of a device in a window `[start, start + size)`, aligned to
  1970-01-01T00:00:00Z. Averages and deviations use decimals with ten digits, rounded half up.
- The typical value of a room is the median of its devices' averages. A device drifts if its average
  differs from that by more than `DRIFT`.
- A device falls silent if `gap_ms` follow one of its readings without another one; not if midnight
  is between.
- A reading above `HOT` means too hot, one below `COOL` not too hot; others decide nothing. The
  level of a second is that of its last deciding reading, and there is an alarm if it differs from
  the last earlier level.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import TypeVar

from pipeline.reference.inputs import Fields
from pipeline.reference.numbers import average, deviation, percentile

T = TypeVar("T")
HOT, COOL = 26.0, 24.0
DRIFT = 2.0
HIGH_SHARE = 0.95
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Reading:
    """A measurement of a device; `measured_at` in ms since 1970 UTC, `battery` in volts."""

    device: str
    number: int
    value: float
    measured_at: int
    battery: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """A version of a device's calibration, from `since` (ms since 1970 UTC) on."""

    device: str
    room: str
    offset: float
    gain: float
    since: int


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A reading in degrees."""

    device: str
    number: int
    room: str
    value: float
    battery: float | None
    measured_at: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """A device in a window; `spread` is null for a single reading."""

    room: str
    device: str
    window_start: int
    window_end: int
    readings: int
    lost: int
    mean: float
    spread: float | None
    lowest: float
    highest: float
    most: float
    battery: float | None


@dataclass(frozen=True, slots=True)
class Room:
    """The typical values of a room in the window that ended at `window_start`."""

    room: str
    window_start: int
    window_end: int
    typical: float


@dataclass(frozen=True, slots=True)
class Drift:
    """A device that differed from its room in the window that ended at `at`."""

    device: str
    room: str
    at: int
    mean: float
    typical: float


@dataclass(frozen=True, slots=True)
class Silence:
    """A device without further readings, and the number of its last consecutive readings."""

    device: str
    since: int
    readings: int


@dataclass(frozen=True, slots=True)
class Level:
    """Whether it was too hot at the end of a second, by the last deciding reading."""

    device: str
    window_start: int
    window_end: int
    hot: bool
    value: float


@dataclass(frozen=True, slots=True)
class Earlier:
    """A level as that of the second before the one that ends at `window_end`."""

    device: str
    window_start: int
    window_end: int
    hot: bool


@dataclass(frozen=True, slots=True)
class Alarm:
    """A change to or from too hot in the second that ended at `at`."""

    device: str
    at: int
    state: str
    value: float


def parse_reading(fields: Fields) -> Reading:
    """A reading from its fields.

    Raises:
        ValueError: a field is missing or is not of its type.
    """
    match fields:
        case {
            "device": str(device),
            "number": int(number),
            "value": float(value),
            "measured_at": int(measured_at),
            "battery": float() | None as battery,
        }:
            return Reading(device, number, value, measured_at, battery)
    raise ValueError(f"not a reading: {fields!r}")


def parse_calibration(fields: Fields) -> Calibration:
    """A calibration from its fields.

    Raises:
        ValueError: a field is missing or is not of its type.
    """
    match fields:
        case {
            "device": str(device),
            "room": str(room),
            "offset": float(offset),
            "gain": float(gain),
            "since": int(since),
        }:
            return Calibration(device, room, offset, gain, since)
    raise ValueError(f"not a calibration: {fields!r}")


def once(readings: Iterable[Reading], repeat_ms: int) -> list[Reading]:
    """The readings without repeats, by time; the input is in the order of positions."""
    last: dict[tuple[str, int], int] = {}
    kept = []
    for reading in sorted(readings, key=attrgetter("measured_at")):
        key = reading.device, reading.number
        if key not in last or reading.measured_at - last[key] > repeat_ms:
            kept.append(reading)
        last[key] = reading.measured_at
    return kept


def calibrated(
    readings: Iterable[Reading], calibrations: Iterable[Calibration], valid_ms: int
) -> list[Calibrated]:
    """Readings in degrees; the calibrations are in the order of their positions."""
    versions: defaultdict[str, list[Calibration]] = defaultdict(list)
    for version in sorted(calibrations, key=attrgetter("since")):
        versions[version.device].append(version)
    found = []
    for reading in readings:
        valid = _latest(
            versions[reading.device], attrgetter("since"), reading.measured_at, valid_ms
        )
        if valid is not None:
            degrees = (reading.value - valid.offset) * valid.gain
            found.append(
                Calibrated(
                    reading.device,
                    reading.number,
                    valid.room,
                    degrees,
                    reading.battery,
                    reading.measured_at,
                )
            )
    return found


def statistics(readings: Iterable[Calibrated], size_ms: int) -> list[Statistics]:
    """The statistics of every window with readings of a device."""
    windows: defaultdict[tuple[int, str, str], list[Calibrated]] = defaultdict(list)
    for reading in readings:
        start = reading.measured_at - reading.measured_at % size_ms
        windows[start, reading.room, reading.device].append(reading)
    found = []
    for (start, room, device), inside in sorted(windows.items()):
        values = [reading.value for reading in inside]
        numbers = [reading.number for reading in inside]
        found.append(
            Statistics(
                room,
                device,
                start,
                start + size_ms,
                len(inside),
                max(numbers) - min(numbers) + 1 - len(inside),
                average(values),
                deviation(values, 6),
                min(values),
                max(values),
                percentile(values, HIGH_SHARE),
                min((one.battery for one in inside if one.battery is not None), default=None),
            )
        )
    return found


def rooms(found: Iterable[Statistics], size_ms: int) -> list[Room]:
    """The typical values of each room, a window later."""
    means: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
    for one in found:
        means[one.window_end, one.room].append(one.mean)
    return [
        Room(room, end, end + size_ms, percentile(inside, 0.5))
        for (end, room), inside in sorted(means.items())
    ]


def drifts(found: Iterable[Statistics], of_rooms: Iterable[Room]) -> list[Drift]:
    """The devices that differ from their room."""
    typical = {(one.room, one.window_start): one.typical for one in of_rooms}
    return [
        Drift(one.device, one.room, one.window_end, one.mean, typical[one.room, one.window_end])
        for one in found
        if abs(one.mean - typical[one.room, one.window_end]) > DRIFT
    ]


def silences(readings: Iterable[Reading], gap_ms: int) -> list[Silence]:
    """The silences of devices, with the number of consecutive readings of the day before them."""
    by_device: defaultdict[str, list[int]] = defaultdict(list)
    for reading in readings:
        by_device[reading.device].append(reading.measured_at)
    found = []
    for device, times in by_device.items():
        times.sort()
        count = 0
        for at_ms, next_ms in pairwise([*times, times[-1] + DAY_MS]):
            count += 1
            midnight = at_ms // DAY_MS != (at_ms + gap_ms) // DAY_MS
            if next_ms - at_ms > gap_ms and not midnight:
                found.append(Silence(device, at_ms, count))
            if next_ms - at_ms > gap_ms or at_ms // DAY_MS != next_ms // DAY_MS:
                count = 0
    return found


def levels(readings: Iterable[Calibrated], size_ms: int) -> list[Level]:
    """The level of each second with a deciding reading."""
    last: dict[tuple[str, int], Calibrated] = {}
    for reading in sorted(readings, key=lambda one: one.number):
        if reading.value > HOT or reading.value < COOL:
            last[reading.device, reading.measured_at // size_ms * size_ms] = reading
    return [
        Level(device, start, start + size_ms, reading.value > HOT, reading.value)
        for (device, start), reading in last.items()
    ]


def earlier(found: Iterable[Level], size_ms: int) -> list[Earlier]:
    """The same levels, a second later."""
    return [
        Earlier(level.device, level.window_end, level.window_end + size_ms, level.hot)
        for level in found
    ]


def alarms(found: Iterable[Level], before: Iterable[Earlier], valid_ms: int) -> list[Alarm]:
    """The levels that differ from the last one before, at most `valid_ms` older."""
    by_device: defaultdict[str, list[Earlier]] = defaultdict(list)
    for one in sorted(before, key=attrgetter("window_end")):
        by_device[one.device].append(one)
    found_alarms = []
    for level in found:
        was = _latest(by_device[level.device], attrgetter("window_end"), level.window_end, valid_ms)
        if was is not None and was.hot != level.hot:
            state = "hot" if level.hot else "cool"
            found_alarms.append(Alarm(level.device, level.window_end, state, level.value))
    return found_alarms


def _latest(ordered: Sequence[T], time: Callable[[T], int], at_ms: int, valid_ms: int) -> T | None:
    """The last element, in order of time, that is not younger than a moment, nor too old."""
    place = bisect_right(ordered, at_ms, key=time)
    if place == 0 or time(ordered[place - 1]) < at_ms - valid_ms:
        return None
    return ordered[place - 1]
