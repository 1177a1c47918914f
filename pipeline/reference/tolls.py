"""Reference of the toll network, record by record, from the complete list of sightings.

Rules, as in the network document:

- Windows are `[start, start + window)`, aligned to 1970-01-01T00:00:00Z.
- The average speed of a segment adds speeds as decimals with ten digits, rounded half up, so that
  the order of the sightings does not matter, and divides the sum (as a double) by their number.
- The toll is `2 * (cars - 50)²` where the average is below 40 miles an hour and more than 50
  different cars were seen, otherwise 0.
- A moving car is notified of the toll of every window of its segment that ended at its sighting or
  at most `valid_ms` before; both ends included.
- A stopped vehicle, unless it is a tow truck, is paired with every sighting of a tow truck at the
  same location at most `reach_ms` before or after.

No record is late: the caller leaves out the records that the network has refused.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import attrgetter

from pipeline.reference.inputs import Fields
from pipeline.reference.numbers import decimal_of

CONGESTED_MPH = 40
CARS_FREE = 50
TOW_TRUCK = "tow_truck"


@dataclass(frozen=True, slots=True)
class Sighting:
    """One report of a vehicle; `speed` in miles an hour, `seen_at` in ms since 1970 UTC."""

    car: str
    kind: str
    road: str
    segment: int
    location: str
    speed: float
    seen_at: int


@dataclass(frozen=True, slots=True)
class Rules:
    """The times in the network document, all in ms."""

    window_ms: int
    valid_ms: int
    reach_ms: int


@dataclass(frozen=True, slots=True)
class Toll:
    """The toll of a segment; `minute` is the end of the window that it was computed from."""

    road: str
    segment: int
    minute: int
    toll: float


@dataclass(frozen=True, slots=True)
class TollNotification:
    """The notification of a car of a segment's toll."""

    car: str
    toll: float
    segment: int
    seen_at: int


@dataclass(frozen=True, slots=True)
class TowDispatch:
    """A stopped vehicle, and a tow truck at its location."""

    location: str
    car: str
    tow_truck: str
    stopped_at: int
    truck_seen_at: int


@dataclass(slots=True)
class _Group:
    """Running sums of one segment in one window."""

    total: Decimal = Decimal(0)
    count: int = 0
    cars: set[str] = field(default_factory=set)


def parse_sighting(value: Fields) -> Sighting:
    """A sighting from its JSON fields.

    Raises:
        ValueError: a field is missing or is not of its type.
    """
    match value:
        case {
            "car": str(car),
            "kind": str(kind),
            "road": str(road),
            "segment": int(segment),
            "location": str(location),
            "speed": float() | int() as speed,
            "seen_at": int(seen_at),
        }:
            return Sighting(car, kind, road, segment, location, float(speed), seen_at)
    raise ValueError(f"not a sighting: {value!r}")


def tolls(sightings: Iterable[Sighting], rules: Rules) -> list[Toll]:
    """The toll of each segment after each window with sightings, by end, road and segment."""
    groups: defaultdict[tuple[int, str, int], _Group] = defaultdict(_Group)
    for sighting in sightings:
        end = sighting.seen_at - sighting.seen_at % rules.window_ms + rules.window_ms
        group = groups[end, sighting.road, sighting.segment]
        group.total += decimal_of(sighting.speed)
        group.count += 1
        group.cars.add(sighting.car)
    return [
        Toll(road, segment, end, _price(float(group.total) / group.count, len(group.cars)))
        for (end, road, segment), group in sorted(groups.items())
    ]


def toll_notifications(sightings: Sequence[Sighting], rules: Rules) -> list[TollNotification]:
    """Every expected notification, as often as expected; in no special order."""
    return list(notifications_of(sightings, tolls(sightings, rules), rules))


def notifications_of(
    sightings: Iterable[Sighting], charged: Iterable[Toll], rules: Rules
) -> Iterator[TollNotification]:
    """The notifications of each moving car of given tolls; these by their `minute`."""
    by_segment: defaultdict[tuple[str, int], list[Toll]] = defaultdict(list)
    for toll in charged:
        by_segment[toll.road, toll.segment].append(toll)
    for sighting in sightings:
        if sighting.speed <= 0:
            continue
        prices = by_segment[sighting.road, sighting.segment]
        first = bisect_left(prices, sighting.seen_at - rules.valid_ms, key=_minute)
        last = bisect_right(prices, sighting.seen_at, key=_minute)
        for price in prices[first:last]:
            yield TollNotification(sighting.car, price.toll, sighting.segment, sighting.seen_at)


def tow_dispatches(sightings: Sequence[Sighting], rules: Rules) -> list[TowDispatch]:
    """Every expected dispatch, as often as expected; in no special order."""
    trucks: defaultdict[str, list[Sighting]] = defaultdict(list)
    for sighting in sorted(sightings, key=attrgetter("seen_at")):
        if sighting.kind == TOW_TRUCK:
            trucks[sighting.location].append(sighting)
    found = []
    for sighting in sightings:
        if sighting.speed != 0 or sighting.kind == TOW_TRUCK:
            continue
        near = trucks.get(sighting.location, [])
        first = bisect_left(near, sighting.seen_at - rules.reach_ms, key=attrgetter("seen_at"))
        last = bisect_right(near, sighting.seen_at + rules.reach_ms, key=attrgetter("seen_at"))
        found += [
            TowDispatch(sighting.location, sighting.car, truck.car, sighting.seen_at, truck.seen_at)
            for truck in near[first:last]
        ]
    return found


def _price(average_mph: float, cars: int) -> float:
    """The toll of a segment, in cents."""
    if average_mph < CONGESTED_MPH and cars > CARS_FREE:
        return 2.0 * float(cars - CARS_FREE) ** 2
    return 0.0


def _minute(toll: Toll) -> int:
    return toll.minute
