"""Sends car sightings: congested roads, cars that break down, tow trucks that come for them.

A program of its own, as any existing producer would be: confluent-kafka with the serializer of a
schema registry. Nothing in it knows who reads the topic.

    python producer.py --rate 500 --seconds 120

`Traffic` is pure: the same seed and the same times give the same sightings. `main` sends them.
"""

import argparse
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.serialization import MessageField, SerializationContext

with warnings.catch_warnings(record=True) as told:
    from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from httpx import HTTPError
for one in told:
    # Authlib, which the registry client uses, warns of its own future; nothing to do about it here.
    if one.category.__name__ != "AuthlibDeprecationWarning":
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)

TICK_MS = 50
"""Vehicles move and report in steps of this length."""
DELAY_MAX_MS = 1_500
"""A sighting is sent at most this long after it was made, so sightings arrive out of order; it has
to stay below the lateness that readers of the topic allow."""
BEHIND_MAX_MS = 2_000
"""A live feed that falls this far behind skips ahead: it reports what is, not what was."""
SEGMENTS = 5
TOW_TRUCKS = 6
BREAKDOWN_EVERY_MS = 2_000
FREE_MPH, JAMMED_MPH = 65.0, 20.0
DELIVERY_SECONDS = 30
HINT = (
    "  Are they running? Other addresses: KAFKA_BOOTSTRAP_SERVERS and SCHEMA_REGISTRY_URL, or "
    "--bootstrap-servers and --registry."
)
RATE_MAX, SECONDS_MAX = 100_000, 86_400


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


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says; times in ms since 1970 UTC."""

    bootstrap_servers: str
    registry: str
    topic: str
    rate: float
    seconds: float
    seed: int
    start_at_ms: int | None


def parse(arguments: list[str]) -> Options:
    """Read the command line; argparse ends the program when it is wrong."""
    parser = argparse.ArgumentParser(description="Send car sightings as Avro to a Kafka topic.")
    add = parser.add_argument
    servers = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092")
    registry = os.environ.get("SCHEMA_REGISTRY_URL", "http://127.0.0.1:8081")
    add("--bootstrap-servers", default=servers, help="Kafka brokers (%(default)s)")
    add("--registry", default=registry, help="schema registry (%(default)s)")
    add("--topic", default="car-sightings", help="where to send (%(default)s)")
    add("--rate", type=float, default=500.0, help="sightings a second (%(default)s)")
    add("--seconds", type=float, default=60.0, help="how long (%(default)s)")
    add("--seed", type=int, default=1, help="the same seed gives the same traffic (%(default)s)")
    add(
        "--start-at", help="time of the first sighting, ISO 8601 with zone (now); not in the future"
    )
    values = parser.parse_args(arguments)
    if not 0 < values.rate <= RATE_MAX or not 0 < values.seconds <= SECONDS_MAX:
        parser.error(f"--rate goes up to {RATE_MAX}, --seconds up to {SECONDS_MAX}, both above 0")
    if not values.registry.startswith(("http://", "https://")):
        parser.error("--registry (SCHEMA_REGISTRY_URL) begins with http:// or https://")
    start_at_ms = None
    if values.start_at is not None:
        try:
            start = datetime.fromisoformat(values.start_at)
        except ValueError:
            parser.error(f"--start-at: {values.start_at!r} is not an ISO 8601 time")
        if start.tzinfo is None:
            parser.error("--start-at needs a zone, as in 2026-01-01T00:00:00Z")
        start_at_ms = int(start.timestamp() * 1_000)
    return Options(
        values.bootstrap_servers,
        values.registry,
        values.topic,
        values.rate,
        values.seconds,
        values.seed,
        start_at_ms,
    )


class Feed:
    """Sends sightings and keeps count of what was delivered."""

    def __init__(self, options: Options) -> None:
        schema = (Path(__file__).parent / "schemas" / "sighting.avsc").read_text(encoding="utf-8")
        registry = SchemaRegistryClient({"url": options.registry})
        self._serializer = AvroSerializer(registry, schema)
        self._context = SerializationContext(options.topic, MessageField.VALUE)
        self._topic = options.topic
        self._producer = Producer(
            {
                "bootstrap.servers": options.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": DELIVERY_SECONDS * 1_000,
                "log_level": 2,  # a broker that is down is told once, at the end
            }
        )
        self.delivered = 0
        self.failure: str | None = None

    def send(self, sighting: Sighting) -> None:
        """Hand one sighting to the client; wait for room when too many are on their way."""
        body = self._serializer(asdict(sighting), self._context)

        def report(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                self.failure = self.failure or str(error)
                return
            self.delivered += 1

        give_up_at = time.monotonic() + DELIVERY_SECONDS
        while True:
            try:
                self._producer.produce(
                    self._topic, value=body, key=sighting.car.encode(), on_delivery=report
                )
            except BufferError:
                self._producer.poll(0.1)
                if time.monotonic() > give_up_at:
                    raise
            else:
                return

    def poll(self) -> None:
        """Take delivery reports without waiting."""
        self._producer.poll(0)

    def finish(self) -> int:
        """Wait for the last delivery reports; how many sightings are left undelivered."""
        return int(self._producer.flush(DELIVERY_SECONDS))


class Stop:
    """Becomes true when the program is asked to end."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self.asked = True


def run(options: Options, feed: Feed, stop: Stop) -> None:
    """Send at the wanted rate until the time is over, a delivery fails or somebody stops it.

    Without `--start-at` event time begins with the clock: after a pause of this program it skips
    ahead. A clock that is set meanwhile changes nothing.
    """
    began_s = time.monotonic()
    now_ms = time.time_ns() // 1_000_000
    event_ms = options.start_at_ms if options.start_at_ms is not None else now_ms
    traffic = Traffic(options.seed, event_ms)
    sent, tick, skipped_ms = 0, 0, 0
    while tick * TICK_MS < options.seconds * 1_000 and not stop.asked and feed.failure is None:
        tick += 1
        due = int(tick * TICK_MS * options.rate / 1_000) - sent
        for sighting in traffic.sightings(event_ms + tick * TICK_MS + skipped_ms, due):
            feed.send(sighting)
        sent += due
        feed.poll()
        passed_ms = round((time.monotonic() - began_s) * 1_000)
        ahead_ms = tick * TICK_MS + skipped_ms - passed_ms
        if ahead_ms > 0:
            time.sleep(ahead_ms / 1_000)
        elif options.start_at_ms is None and -ahead_ms > BEHIND_MAX_MS:
            skipped_ms -= ahead_ms


def main(arguments: list[str]) -> int:
    """Run the feed; 0 when everything was delivered."""
    options = parse(arguments)
    stop = Stop()
    try:
        feed = Feed(options)
        run(options, feed, stop)
        left = feed.finish()
    except (HTTPError, SchemaRegistryError) as error:
        sys.stderr.write(f"producer: schema registry {options.registry}: {error}\n{HINT}\n")
        return 1
    except (KafkaException, BufferError, OSError) as error:
        sys.stderr.write(f"producer: {error}\n")
        return 1
    if feed.failure is not None or left:
        reason = feed.failure or f"{left} sightings got no answer in {DELIVERY_SECONDS} s"
        sys.stderr.write(f"producer: not delivered: {reason}\n{HINT}\n")
        return 1
    sys.stderr.write(f"producer: {feed.delivered} sightings delivered to {options.topic}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
