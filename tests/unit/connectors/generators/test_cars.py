from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise

from connectors.generators.cars import DELAY_MAX_MS, TICK_MS, Sighting, Traffic
from pipeline.reference.tolls import Rules, parse_sighting, toll_notifications, tow_dispatches

START_MS = 1_700_000_000_000


def drive(seed: int = 1, seconds: int = 60, rate: int = 500) -> Iterator[tuple[int, Sighting]]:
    """Pairs (time of sending, sighting) of a feed with a steady rate."""
    traffic = Traffic(seed, START_MS)
    count = rate * TICK_MS // 1_000
    for at_ms in range(START_MS, START_MS + seconds * 1_000, TICK_MS):
        for sighting in traffic.sightings(at_ms, count):
            yield at_ms, sighting


def test_the_same_seed_gives_the_same_traffic() -> None:
    """Two runs with equal arguments are equal; another seed gives other traffic."""
    assert list(drive(seconds=5)) == list(drive(seconds=5))
    assert list(drive(seed=2, seconds=5)) != list(drive(seconds=5))


def test_sightings_are_slightly_out_of_order_and_never_late() -> None:
    """Event times fall sometimes, but never by more than the stated delay."""
    newest, went_back = 0, 0
    for at_ms, sighting in drive():
        assert at_ms - DELAY_MAX_MS <= sighting.seen_at <= at_ms
        went_back += sighting.seen_at < newest
        newest = max(newest, sighting.seen_at)
    assert went_back > 1_000


def test_the_traffic_produces_results_in_every_part_of_the_network() -> None:
    """A minute has tolls above zero, free segments, moving cars and tow dispatches."""
    sightings = [parse_sighting(asdict(sighting)) for _, sighting in drive()]
    rules = Rules(window_ms=10_000, valid_ms=10_000, reach_ms=300_000)
    notified = Counter(n.toll > 0 for n in toll_notifications(sightings, rules))
    assert notified[True] > 1_000
    assert notified[False] > 1_000
    assert 100 < len(tow_dispatches(sightings, rules)) < 100_000


def test_a_stopped_vehicle_keeps_its_location() -> None:
    """From one report with speed 0 to the next of the same breakdown."""
    places: defaultdict[str, list[Sighting]] = defaultdict(list)
    for _, sighting in drive():
        places[sighting.car].append(sighting)
    compared = 0
    for reports in places.values():
        for one, other in pairwise(reports):
            if one.speed == 0 and other.speed == 0 and one.kind != "tow_truck":
                assert one.location == other.location
                compared += 1
    assert compared > 50
