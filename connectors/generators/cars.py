"""Sightings of cars: congested roads, cars that break down, tow trucks that come for them.

The same seed and the same times give the same sightings.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

TICK_MS = 50
"""Vehicles move and report in steps of this length."""
DELAY_MAX_MS = 1_500
"""A sighting is sent at most this long after it was made, so sightings arrive out of order; it has
to stay below the lateness that readers of the topic allow."""
SEGMENTS = 5
TOW_TRUCKS = 6
BREAKDOWN_EVERY_MS = 2_000
FREE_MPH, JAMMED_MPH = 65.0, 20.0


@dataclass(frozen=True, slots=True)
class Road:
    """A ring road of one-mile segments; on a jammed one many cars move slowly."""

    name: str
    jammed: frozenset[int]
    vehicles: int


ROADS = (
    Road("A1", frozenset({2}), 180),
    Road("A7", frozenset({0, 3}), 220),
    Road("B31", frozenset(), 120),
)


@dataclass(frozen=True, slots=True)
class Sighting:
    """One report: where a vehicle was, how fast (miles an hour), and when (ms since 1970 UTC)."""

    car: str
    kind: str
    road: str
    segment: int
    location: str
    speed: float
    seen_at: int


@dataclass(slots=True)
class Vehicle:
    """A vehicle on its road; it stands still while `stands_until_ms` has not passed."""

    name: str
    kind: str
    road: Road
    miles: float
    temper: float
    moved_at_ms: int
    stands_until_ms: int = 0


@dataclass(slots=True)
class Job:
    """A tow truck on its way to a vehicle that broke down."""

    truck: Vehicle
    broken: Vehicle
    arrives_at_ms: int


class Traffic:
    """Vehicles that move and report.

    Args:
        seed: of everything that is left to chance.
        start_ms: the time at which the vehicles begin to move.
    """

    def __init__(self, seed: int, start_ms: int) -> None:
        self._random = random.Random(seed)
        self._vehicles: list[Vehicle] = []
        self._next = 0
        self._jobs: list[Job] = []
        self._breakdown_at_ms = start_ms
        for road in ROADS:
            for _ in range(road.vehicles):
                kind = self._random.choices(("car", "lorry"), (9, 1))[0]
                self._add(kind, road, start_ms)
        for _ in range(TOW_TRUCKS):
            self._add("tow_truck", self._random.choice(ROADS), start_ms)
        self._random.shuffle(self._vehicles)

    def _add(self, kind: str, road: Road, start_ms: int) -> None:
        """Put one more vehicle on a road, more likely into a jam than beside one."""
        weights = [FREE_MPH / _usual_mph(road, segment) for segment in range(SEGMENTS)]
        segment = self._random.choices(range(SEGMENTS), weights)[0]
        miles = segment + self._random.random()
        name = f"{kind}-{len(self._vehicles):04d}"
        temper = self._random.uniform(0.85, 1.15)
        self._vehicles.append(Vehicle(name, kind, road, miles, temper, start_ms))

    def sightings(self, at_ms: int, count: int) -> Iterator[Sighting]:
        """Let the next `count` vehicles report at `at_ms`, which must never go back."""
        self._break_down(at_ms)
        self._arrive(at_ms)
        for _ in range(count):
            vehicle = self._vehicles[self._next]
            self._next = (self._next + 1) % len(self._vehicles)
            yield self._report(vehicle, at_ms)

    def _break_down(self, at_ms: int) -> None:
        """Now and then something breaks down, and the next free tow truck sets out."""
        if at_ms < self._breakdown_at_ms:
            return
        self._breakdown_at_ms = at_ms + BREAKDOWN_EVERY_MS
        busy = {job.truck.name for job in self._jobs}
        trucks = [v for v in self._vehicles if v.kind == "tow_truck" and v.name not in busy]
        broken = self._random.choice(self._vehicles)
        if not trucks or broken.kind == "tow_truck" or broken.stands_until_ms > at_ms:
            return
        arrives_at_ms = at_ms + self._random.randint(4_000, 8_000)
        broken.stands_until_ms = arrives_at_ms + self._random.randint(4_000, 8_000)
        self._jobs.append(Job(trucks[0], broken, arrives_at_ms))

    def _arrive(self, at_ms: int) -> None:
        """A tow truck that arrives stands beside the vehicle until both drive on."""
        for job in self._jobs:
            if (
                job.arrives_at_ms <= at_ms
                and job.truck.stands_until_ms < job.broken.stands_until_ms
            ):
                job.truck.road, job.truck.miles = job.broken.road, job.broken.miles
                job.truck.stands_until_ms = job.broken.stands_until_ms
        self._jobs = [job for job in self._jobs if job.broken.stands_until_ms > at_ms]

    def _report(self, vehicle: Vehicle, at_ms: int) -> Sighting:
        """Move a vehicle to where it is now, and say so a little late."""
        passed_ms = at_ms - max(vehicle.moved_at_ms, min(vehicle.stands_until_ms, at_ms))
        vehicle.moved_at_ms = at_ms
        speed = 0.0
        if vehicle.stands_until_ms <= at_ms:
            usual = _usual_mph(vehicle.road, int(vehicle.miles))
            speed = round(usual * vehicle.temper * self._random.uniform(0.8, 1.2), 1)
            vehicle.miles += speed * passed_ms / 3_600_000
            vehicle.miles %= SEGMENTS
        return Sighting(
            car=vehicle.name,
            kind=vehicle.kind,
            road=vehicle.road.name,
            segment=int(vehicle.miles),
            location=f"{vehicle.road.name}/{int(vehicle.miles * 10) / 10}",
            speed=speed,
            seen_at=at_ms - self._random.randint(0, DELAY_MAX_MS),
        )


def _usual_mph(road: Road, segment: int) -> float:
    """How fast the traffic is on a segment."""
    return JAMMED_MPH if segment in road.jammed else FREE_MPH
