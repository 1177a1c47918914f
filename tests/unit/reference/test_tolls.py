from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.reference.tolls import (
    Rules,
    Sighting,
    Toll,
    TollNotification,
    TowDispatch,
    parse_sighting,
    toll_notifications,
    tolls,
    tow_dispatches,
)

RULES = Rules(window_ms=10_000, valid_ms=10_000, reach_ms=5_000)


def seen(car: str, at: int, speed: float = 20.0, kind: str = "car", where: str = "A1") -> Sighting:
    """One sighting on a road with a single segment."""
    return Sighting(car, kind, where, 0, f"{where}/0", speed, at)


SIGHTINGS = st.builds(
    seen,
    car=st.sampled_from([f"car-{n}" for n in range(5)]),
    at=st.integers(0, 40).map(lambda n: n * 1_000),
    speed=st.sampled_from([0.0, 0.1, 20.0, 65.5]),
    kind=st.sampled_from(["car", "tow_truck"]),
    where=st.sampled_from(["A1", "A7"]),
)


def crowd(cars: int, at: int, speed: float = 20.0) -> list[Sighting]:
    """So many different cars at one time."""
    return [seen(f"car-{n}", at, speed) for n in range(cars)]


def test_a_window_includes_its_start_and_excludes_its_end() -> None:
    """A sighting exactly at a window's end belongs to the next window."""
    found = tolls([seen("a", 9_999), seen("b", 10_000)], RULES)
    assert [toll.minute for toll in found] == [10_000, 20_000]


@pytest.mark.parametrize(
    ("cars", "speed", "toll"),
    [(50, 20.0, 0.0), (51, 20.0, 2.0), (60, 20.0, 200.0), (60, 40.0, 0.0)],
)
def test_the_toll_rises_with_the_square_of_the_crowd(cars: int, speed: float, toll: float) -> None:
    """More than 50 cars below 40 miles an hour cost 2 * (cars - 50)²; otherwise it is free."""
    assert tolls(crowd(cars, 0, speed), RULES) == [Toll("A1", 0, 10_000, toll)]


def test_a_car_counts_once_in_a_window() -> None:
    """The same car with many sightings is one car."""
    assert tolls(crowd(50, 0) + crowd(50, 1_000), RULES)[0].toll == 0.0


@given(st.lists(SIGHTINGS), st.randoms())
def test_the_order_of_the_sightings_is_irrelevant(rows: list[Sighting], random: object) -> None:
    """Tolls and outputs depend on the set of sightings, not on their order."""
    other = sorted(rows, key=lambda _row: random.random())  # type: ignore[attr-defined]
    assert tolls(rows, RULES) == tolls(other, RULES)
    assert Counter(toll_notifications(rows, RULES)) == Counter(toll_notifications(other, RULES))
    assert Counter(tow_dispatches(rows, RULES)) == Counter(tow_dispatches(other, RULES))


@given(st.lists(SIGHTINGS))
def test_tolls_agree_with_counting_every_window_separately(rows: list[Sighting]) -> None:
    """Each toll is the result of a plain pass over all sightings of its window and segment."""
    found = {(t.minute, t.road, t.segment): t.toll for t in tolls(rows, RULES)}
    for end in range(10_000, 60_000, 10_000):
        for road in ("A1", "A7"):
            inside = [r for r in rows if r.road == road and end - 10_000 <= r.seen_at < end]
            assert ((end, road, 0) in found) == bool(inside)
            if inside:
                # Five cars at most: what is checked is which sightings count, not the price.
                assert found[end, road, 0] == 0.0


@given(st.lists(SIGHTINGS))
def test_notifications_agree_with_trying_every_pair(rows: list[Sighting]) -> None:
    """The search by time finds exactly the pairs that trying all of them finds."""
    pairs = [
        TollNotification(car.car, toll.toll, car.segment, car.seen_at)
        for car in rows
        for toll in tolls(rows, RULES)
        if car.speed > 0
        and (car.road, car.segment) == (toll.road, toll.segment)
        and toll.minute <= car.seen_at <= toll.minute + RULES.valid_ms
    ]
    assert Counter(toll_notifications(rows, RULES)) == Counter(pairs)


@given(st.lists(SIGHTINGS))
def test_dispatches_agree_with_trying_every_pair(rows: list[Sighting]) -> None:
    """The search by time finds exactly the pairs that trying all of them finds."""
    pairs = [
        TowDispatch(car.location, car.car, truck.car, car.seen_at, truck.seen_at)
        for car in rows
        for truck in rows
        if car.speed == 0
        and car.kind != "tow_truck"
        and truck.kind == "tow_truck"
        and car.location == truck.location
        and abs(car.seen_at - truck.seen_at) <= RULES.reach_ms
    ]
    assert Counter(tow_dispatches(rows, RULES)) == Counter(pairs)


def test_a_car_at_a_window_end_pays_both_valid_tolls() -> None:
    """Both ends of the validity of a toll are included, so a car can have two tolls."""
    rows = [*crowd(51, 0), *crowd(52, 10_000), seen("x", 20_000)]
    found = [n.toll for n in toll_notifications(rows, RULES) if n.car == "x"]
    assert sorted(found) == [2.0, 8.0]


def test_speeds_are_added_as_decimals() -> None:
    """An average of exactly 40 is not below 40, though doubles added one by one are."""
    speeds = [39.9] * 30 + [40.1] * 30
    added = 0.0
    for speed in speeds:
        added += speed
    assert added < 40.0 * len(speeds)
    rows = [seen(f"car-{n}", 0, speed) for n, speed in enumerate(speeds)]
    assert tolls(rows, RULES) == [Toll("A1", 0, 10_000, 0.0)]


def test_a_sighting_is_read_from_its_json_form() -> None:
    """All seven fields are needed, each of its type; a whole number is a speed too."""
    value = {
        "car": "a",
        "kind": "car",
        "road": "A1",
        "segment": 0,
        "location": "A1/0",
        "speed": 20,
        "seen_at": 5,
    }
    assert parse_sighting(value) == seen("a", 5)
    with pytest.raises(ValueError, match="not a sighting"):
        parse_sighting({**value, "seen_at": "now"})
