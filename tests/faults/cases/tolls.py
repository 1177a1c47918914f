"""The tolls example with short windows, and its own producer."""

import importlib.resources
import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import cast

import yaml

from connectors.generators.cars import SEGMENTS, TICK_MS, Traffic
from connectors.generators.cars import Sighting as Made
from pipeline.examples.tolls import with_short_windows
from pipeline.reference.tolls import (
    Rules,
    Sighting,
    Toll,
    parse_sighting,
    tolls,
    tow_dispatches,
)
from tests.faults.case import AvroSchema, Case, Fed, Stream
from tests.faults.history import Expected, Fate, Place, Sent, Value
from tests.faults.letters import Accepted
from tests.faults.traffic import BAD_SHARE, LATE_SHARE, POISON
from tests.faults.values import Columns

PROJECT = importlib.resources.files("pipeline.projects") / "tolls"
SCHEMA: AvroSchema = json.loads((PROJECT / "schemas" / "sighting.avsc").read_text(encoding="utf-8"))
RULES = Rules(window_ms=10_000, valid_ms=10_000, reach_ms=300_000)
LATENESS_MS = 5_000
PARTITIONS = 2
PER_TICK = 5
"""Reports per step of the producer: event time advances twice as fast as the feed."""


def _document() -> str:
    """The project's document, with a placeholder as network name and a separate input."""
    text = with_short_windows((PROJECT / "network.yaml").read_text(encoding="utf-8"))
    document = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - builds texts only; "on" stays a word
    document["network"] = "{name}"
    document["streams"]["sightings"] |= {
        "topic": "{name}-sightings",
        "schema": "sightings.avsc",
        "silence": "missing",
        "partitions": PARTITIONS,
    }
    document["outputs"] = {
        "toll_notifications": {"topic": "{name}-notifications"},
        "tow_dispatch": {"topic": "{name}-dispatches"},
    }
    return json.dumps(document)


def _sighting(record: Sent) -> Sighting:
    return parse_sighting(cast("Mapping[str, object]", record.fields))


def _taken(accepted: Accepted, fragment: str) -> list[tuple[Sent, Sighting]]:
    found = accepted.of(fragment, "sightings")
    return [(r, _sighting(r)) for r in found if r.fate is not Fate.CLOSING]


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    charged = tolls((s for _, s in _taken(accepted, "tolls")), RULES)
    return {
        "tolls": [Expected((t.road, t.segment, t.minute, t.toll), t.minute) for t in charged],
        "toll_notifications": list(_notifications(accepted, charged)),
        "tow_dispatch": list(_dispatches(accepted)),
    }


def _notifications(accepted: Accepted, charged: list[Toll]) -> Iterator[Expected]:
    prices: defaultdict[tuple[str, int], list[Toll]] = defaultdict(list)
    for toll in charged:
        prices[toll.road, toll.segment].append(toll)
    for record, seen in _taken(accepted, "toll_notifications"):
        if seen.speed <= 0:
            continue
        of_segment = prices[seen.road, seen.segment]
        first = bisect_left(of_segment, seen.seen_at - RULES.valid_ms, key=lambda t: t.minute)
        last = bisect_right(of_segment, seen.seen_at, key=lambda t: t.minute)
        for toll in of_segment[first:last]:
            row = (seen.car, toll.toll, seen.segment, seen.seen_at)
            yield Expected(row, max(seen.seen_at, toll.minute), (record.place,))


def _dispatches(accepted: Accepted) -> Iterator[Expected]:
    taken = _taken(accepted, "tow_dispatch")
    places: defaultdict[tuple[str, int], list[Place]] = defaultdict(list)
    for record, seen in taken:
        places[seen.car, seen.seen_at].append(record.place)
    for pair in tow_dispatches([seen for _, seen in taken], RULES):
        row = (pair.location, pair.car, pair.tow_truck, pair.stopped_at, pair.truck_seen_at)
        sources = (
            *places[pair.car, pair.stopped_at],
            *places[pair.tow_truck, pair.truck_seen_at],
        )
        yield Expected(row, max(pair.stopped_at, pair.truck_seen_at), sources)


def _fed(made: Made, partition: int, fate: Fate = Fate.GOOD) -> Fed:
    fields: dict[str, Value] = {
        "car": made.car,
        "kind": made.kind,
        "road": made.road,
        "segment": made.segment,
        "location": made.location,
        "speed": made.speed,
        "seen_at": made.seen_at,
    }
    return Fed("sightings", partition, made.car.encode(), fields, fate)


def _feed(random: Random, start_ms: int) -> Iterator[Fed]:
    """The producer's records, some made invalid."""
    traffic = Traffic(random.randrange(2**31), start_ms)
    at_ms = start_ms
    while True:
        at_ms += TICK_MS
        for made in traffic.sightings(at_ms, PER_TICK):
            partition = sum(made.car.encode()) % PARTITIONS
            fed = _fed(made, partition)
            chance = random.random()
            if chance < BAD_SHARE:
                yield replace(fed, fate=Fate.BAD, spoil=random.choice(POISON))
            elif chance < BAD_SHARE + LATE_SHARE:
                behind = made.seen_at - LATENESS_MS - random.randrange(20_000)
                fields = {**fed.fields, "seen_at": behind}
                yield replace(fed, fields=fields, fate=Fate.MAYBE_LATE)
            else:
                yield fed


def _close(at_ms: int) -> Iterator[Fed]:
    for partition in range(PARTITIONS):
        made = Made(f"closing-{partition}", "car", "none", SEGMENTS, "nowhere", 1.0, at_ms)
        yield _fed(made, partition, Fate.CLOSING)


TOLLS = Case(
    name="tolls",
    document=_document(),
    streams=(Stream("sightings", SCHEMA, "seen_at", PARTITIONS),),
    feed=_feed,
    close=_close,
    reference=_reference,
    columns={
        "tolls": Columns(("road", "segment", "minute", "toll"), ("road", "segment", "minute")),
        "toll_notifications": Columns(
            ("car", "toll", "segment", "seen_at"), ("car", "segment", "seen_at")
        ),
        "tow_dispatch": Columns(
            ("location", "car", "tow_truck", "stopped_at", "truck_seen_at"),
            ("car", "tow_truck", "stopped_at", "truck_seen_at"),
        ),
    },
    settle_ms=40_000,
    per_second=200,
)
