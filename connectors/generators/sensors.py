"""Readings and calibrations of made-up sensors.

The same seed and the same times give the same readings and calibrations.
"""

import heapq
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

TICK_MS = 50
"""The fleet moves in steps of this length."""
DEVICES, ROOM_SIZE = 100, 10
RATE_MAX, RATE_SHAPE = 100.0, 6
"""Readings a second: 1 of most devices, up to this of a few; a hundred devices make about 600."""
JITTER = 0.2
"""From one reading to the next it may be so much more or less than the rate says."""
SKEW_MS = (-800, 400)
"""By how much the clock of a device may be wrong; it never changes."""
WRONG_EVERY, WRONG_FIRST, WRONG_MS = 40, 7, -8_000
"""One device of so many has a clock that lies further behind than readers allow."""
DELAY_MAX_MS = 300
"""How long a reading may be on its way."""
REPEATED_SHARE, REPEATED_MS = 0.02, (100, 1_000)
"""Some are sent once more, so long after the first time."""
DROP_EVERY_MS, DROP_MS = 2_000, (4_000, 7_000)
"""Now and then a device cannot be heard; what it measures meanwhile is lost."""
DRIFT_EVERY_MS, DRIFT_MS, DRIFT_PER_SECOND = 2_500, 10_000, (0.4, 0.5)
"""Now and then a device begins to drift, until it is calibrated anew; real ones take weeks."""
ANNOUNCED_MS, FIRST_MS = 20_000, 1_000
"""Every calibration is announced this often, and for the first time so long before readings."""
UNCALIBRATED_FIRST, UNCALIBRATED_MS = 3, 6_000
"""One device is installed first and calibrated so much later."""
UPDATED_MS = (2_000, 16_000)
"""Devices get their new firmware so long after the start, each at its own moment."""
DEGREES, WAVE, WAVE_MS, NOISE = (20.5, 21.5), 0.5, 60_000, 0.2
HEAT_EVERY_MS, HEAT_MS, HEAT_RAMP_MS, HEAT = 8_000, 6_000, 1_500, 6.5
"""Now and then somebody heats a room by so many degrees."""
BATTERY, BATTERY_PER_SECOND = (3.2, 4.1), 0.0005


@dataclass(frozen=True, slots=True)
class Reading:
    """What a device measured; `measured_at` in ms since 1970 UTC by its own clock.

    Without `battery`, which is in volts, it is one of the first firmware.
    """

    device: str
    number: int
    value: float
    measured_at: int
    battery: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """What makes degrees of a device's readings, from a moment (ms since 1970 UTC) on."""

    device: str
    room: str
    offset: float
    gain: float
    since: int


@dataclass(slots=True)
class Device:
    """A sensor: what is built into it, and what happens to it."""

    name: str
    room: int
    interval_ms: float
    skew_ms: int
    offset: float
    gain: float
    battery: float
    updated_ms: int
    next_ms: float
    announced_ms: int
    number: int
    known_offset: float
    drift: float = 0.0
    drifts_since_ms: int = 0
    dropped_until_ms: int = 0

    def offset_at(self, at_ms: float) -> float:
        """What it adds to the truth."""
        return self.offset + self.drift * (at_ms - self.drifts_since_ms) / 1_000


@dataclass(order=True, slots=True)
class Waiting:
    """A reading that is still on its way."""

    at_ms: int
    number: int
    reading: Reading = field(compare=False)


class Fleet:
    """Sensors in rooms, and the station that calibrates them.

    Args:
        seed: of everything that is left to chance.
        start_ms: the time at which they begin to measure.
        devices: how many.
        pace: how many times as often as usual they measure.
    """

    def __init__(self, seed: int, start_ms: int, devices: int = DEVICES, pace: float = 1.0) -> None:
        self._pace = pace
        self._random = random.Random(seed)
        self._start_ms = start_ms
        self._rooms = max(1, devices // ROOM_SIZE)
        self._degrees = [self._random.uniform(*DEGREES) for _ in range(self._rooms)]
        self._heated_since_ms = [start_ms - HEAT_MS] * self._rooms
        self._devices = [self._made(index, devices) for index in range(devices)]
        self._waiting: list[Waiting] = []
        self._waits = 0
        self._heat_at_ms = start_ms + HEAT_EVERY_MS // 4
        self._drop_at_ms = start_ms + DROP_EVERY_MS // 2
        self._drift_at_ms = start_ms + DRIFT_EVERY_MS // 10

    def _made(self, index: int, devices: int) -> Device:
        chance, start_ms = self._random, self._start_ms
        rate = self._pace * _usual(index, devices)
        offset, gain = round(chance.uniform(-2, 2), 3), round(chance.uniform(0.9, 1.1), 4)
        wrong = index % WRONG_EVERY == WRONG_FIRST
        return Device(
            name=f"S{index + 1:03d}",
            room=index % self._rooms,
            interval_ms=1_000 / rate,
            skew_ms=WRONG_MS if wrong else chance.randint(*SKEW_MS),
            offset=offset,
            gain=gain,
            battery=chance.uniform(*BATTERY),
            updated_ms=start_ms + chance.randint(*UPDATED_MS),
            next_ms=start_ms + chance.uniform(0, 1_000 / rate),
            announced_ms=start_ms + (UNCALIBRATED_MS if index == UNCALIBRATED_FIRST else 0),
            number=start_ms,  # goes on after a restart, since no usual rate is 1,000
            known_offset=offset,
        )

    def reports(self, at_ms: int) -> Iterator[Reading | Calibration]:
        """Let one tick pass; what comes in until its end, `at_ms`, which must never go back."""
        self._surprise(at_ms)
        for device in self._devices:
            yield from self._calibrations(device, at_ms)
            self._measure(device, at_ms)
        while self._waiting and self._waiting[0].at_ms <= at_ms:
            yield heapq.heappop(self._waiting).reading

    def _surprise(self, at_ms: int) -> None:
        """Now and then a room is heated, a device drops out, or one begins to drift."""
        chance = self._random
        if at_ms >= self._heat_at_ms:
            self._heat_at_ms = at_ms + HEAT_EVERY_MS
            self._heated_since_ms[chance.randrange(self._rooms)] = at_ms
        if at_ms >= self._drop_at_ms:
            self._drop_at_ms = at_ms + DROP_EVERY_MS
            chance.choice(self._devices).dropped_until_ms = at_ms + chance.randint(*DROP_MS)
        if at_ms >= self._drift_at_ms:
            self._drift_at_ms = at_ms + DRIFT_EVERY_MS
            device = chance.choice([one for one in self._devices if not one.drift])
            device.drift = chance.choice((-1, 1)) * chance.uniform(*DRIFT_PER_SECOND)
            device.drifts_since_ms = at_ms

    def _calibrations(self, device: Device, at_ms: int) -> Iterator[Calibration]:
        """A device that has drifted is calibrated anew; all others are announced in turn."""
        if device.drift and at_ms >= device.drifts_since_ms + DRIFT_MS:
            device.offset = device.known_offset = round(device.offset_at(at_ms), 3)
            device.drift = 0.0
        elif at_ms < device.announced_ms:
            return
        first = device.announced_ms <= self._start_ms
        since_ms = self._start_ms - FIRST_MS if first else at_ms
        spread_ms = self._random.randint(0, ANNOUNCED_MS) if first else ANNOUNCED_MS
        device.announced_ms = at_ms + spread_ms
        room = f"room-{device.room + 1}"
        yield Calibration(device.name, room, device.known_offset, device.gain, since_ms)

    def _measure(self, device: Device, at_ms: int) -> None:
        """All that a device measures in a tick; what it should have measured before is lost."""
        lost = max(0, math.ceil((at_ms - TICK_MS - device.next_ms) / device.interval_ms))
        device.number += lost
        device.next_ms += lost * device.interval_ms
        while device.next_ms <= at_ms:
            if device.next_ms >= device.dropped_until_ms:
                self._send(device, device.next_ms)
            device.number += 1
            jitter = self._random.uniform(1 - JITTER, 1 + JITTER)
            device.next_ms += device.interval_ms * jitter

    def _send(self, device: Device, at_ms: float) -> None:
        """Put one reading on its way, and perhaps a second time."""
        chance = self._random
        degrees = self._truth(device.room, at_ms) + chance.gauss(0, NOISE)
        battery = None
        if at_ms >= device.updated_ms:
            used = BATTERY_PER_SECOND * (at_ms - self._start_ms) / 1_000
            battery = round(max(0.0, device.battery - used), 3)
        reading = Reading(
            device.name,
            device.number,
            round(degrees / device.gain + device.offset_at(at_ms), 3),
            int(at_ms) + device.skew_ms,
            battery,
        )
        arrives_ms = int(at_ms) + chance.randint(0, DELAY_MAX_MS)
        self._wait(arrives_ms, reading)
        if chance.random() < REPEATED_SHARE:
            self._wait(arrives_ms + chance.randint(*REPEATED_MS), reading)

    def _truth(self, room: int, at_ms: float) -> float:
        """How warm it is in a room: a slow wave, and heat that comes and goes in a ramp."""
        wave = WAVE * math.sin(2 * math.pi * (at_ms - self._start_ms) / WAVE_MS + room)
        heated_ms = at_ms - self._heated_since_ms[room]
        ramp = min(heated_ms, HEAT_MS - heated_ms) / HEAT_RAMP_MS
        return self._degrees[room] + wave + HEAT * min(1.0, max(0.0, ramp))

    def _wait(self, until_ms: int, reading: Reading) -> None:
        self._waits += 1
        heapq.heappush(self._waiting, Waiting(until_ms, self._waits, reading))


def usual_rate(devices: int) -> float:
    """Readings a second of so many devices, of which some are lost."""
    return sum(_usual(index, devices) for index in range(devices))


def _usual(index: int, devices: int) -> float:
    """Readings a second of one device."""
    return float(RATE_MAX ** ((index / max(1, devices - 1)) ** RATE_SHAPE))
