"""The sensors network computed one record at a time, from all readings and calibrations.

Rules, as in the network document:

- A reading counts once: it is left out if one of the same device and number lies before it, by
  time and then by position, and at most `repeat_ms` away, whether that one was left out or not.
- It is calibrated by the last version of its device that is not younger than it and at most
  `valid_ms` older; of versions of one moment by the one whose record stands last. Without a version
  it is left out.
- Statistics are those of a device in a window `[start, start + size)`, aligned to
  1970-01-01T00:00:00Z. Averages and deviations come of decimals with ten digits, rounded half up.
- What is typical of a room is the median of its devices' averages. A device drifts where its
  average is further away from that than `DRIFT`.
- A device falls silent where `gap_ms` follow one of its readings without another one; not if
  midnight lies between.
- A reading above `HOT` decides that it is too hot, one below `COOL` that it is not. A second is as
  its last reading that decides anything, and there is an alarm where it differs from the last
  second before that has one.
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
    """What a device measured; `measured_at` in ms since 1970 UTC, `battery` in volts."""

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
    """A device in a window; `spread` is unknown of a single reading."""

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
    """What the devices of a room showed in the window that ended at `window_start`."""

    room: str
    window_start: int
    window_end: int
    typical: float


@dataclass(frozen=True, slots=True)
class Drift:
    """A device showed something else than its room in the window that ended at `at`."""

    device: str
    room: str
    at: int
    mean: float
    typical: float


@dataclass(frozen=True, slots=True)
class Silence:
    """A device has said nothing since its last of so many readings."""

    device: str
    since: int
    readings: int


@dataclass(frozen=True, slots=True)
class Level:
    """Whether it was too hot at the end of a second, as the last reading that decides it says."""

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
    """It has become too hot, or no longer is, in the second that ended at `at`."""

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
    """The readings that repeat none, by time; they are given in the order of their positions."""
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
    """Readings in degrees; calibrations are given in the order of their positions."""
    versions: defaultdict[str, list[Calibration]] = defaultdict(list)
    for version in sorted(calibrations, key=attrgetter("since")):
        versions[version.device].append(version)
    found = []
    for reading in readings:
        held = _latest(versions[reading.device], attrgetter("since"), reading.measured_at, valid_ms)
        if held is not None:
            degrees = (reading.value - held.offset) * held.gain
            found.append(
                Calibrated(
                    reading.device,
                    reading.number,
                    held.room,
                    degrees,
                    reading.battery,
                    reading.measured_at,
                )
            )
    return found


def statistics(readings: Iterable[Calibrated], size_ms: int) -> list[Statistics]:
    """The statistics of every window in which a device was heard."""
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
    """What is typical of each room; known a window later."""
    means: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
    for one in found:
        means[one.window_end, one.room].append(one.mean)
    return [
        Room(room, end, end + size_ms, percentile(inside, 0.5))
        for (end, room), inside in sorted(means.items())
    ]


def drifts(found: Iterable[Statistics], of_rooms: Iterable[Room]) -> list[Drift]:
    """Where a device shows something else than its room."""
    typical = {(one.room, one.window_start): one.typical for one in of_rooms}
    return [
        Drift(one.device, one.room, one.window_end, one.mean, typical[one.room, one.window_end])
        for one in found
        if abs(one.mean - typical[one.room, one.window_end]) > DRIFT
    ]


def silences(readings: Iterable[Reading], gap_ms: int) -> list[Silence]:
    """Where a device falls silent, and how many readings of one day had come without a gap."""
    by_device: defaultdict[str, list[int]] = defaultdict(list)
    for reading in readings:
        by_device[reading.device].append(reading.measured_at)
    found = []
    for device, times in by_device.items():
        times.sort()
        heard = 0
        for at_ms, next_ms in pairwise([*times, times[-1] + DAY_MS]):
            heard += 1
            midnight = at_ms // DAY_MS != (at_ms + gap_ms) // DAY_MS
            if next_ms - at_ms > gap_ms and not midnight:
                found.append(Silence(device, at_ms, heard))
            if next_ms - at_ms > gap_ms or at_ms // DAY_MS != next_ms // DAY_MS:
                heard = 0
    return found


def levels(readings: Iterable[Calibrated], size_ms: int) -> list[Level]:
    """What the last reading that decides anything says, of each second that has one."""
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
    """Where a level differs from the last one before, which may be so much older."""
    by_device: defaultdict[str, list[Earlier]] = defaultdict(list)
    for one in sorted(before, key=attrgetter("window_end")):
        by_device[one.device].append(one)
    told = []
    for level in found:
        was = _latest(by_device[level.device], attrgetter("window_end"), level.window_end, valid_ms)
        if was is not None and was.hot != level.hot:
            state = "hot" if level.hot else "cool"
            told.append(Alarm(level.device, level.window_end, state, level.value))
    return told


def _latest(known: Sequence[T], time: Callable[[T], int], at_ms: int, valid_ms: int) -> T | None:
    """The last of what is in order of time that is not younger than a moment, nor too old."""
    place = bisect_right(known, at_ms, key=time)
    if place == 0 or time(known[place - 1]) < at_ms - valid_ms:
        return None
    return known[place - 1]
