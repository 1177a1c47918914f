"""Sends car sightings: congested roads, cars that break down, tow trucks that come for them.

A program of its own, as any existing producer would be: confluent-kafka with the serializer of a
schema registry. Nothing in it knows who reads the topic; what it sends is made up by a generator.

    python producer.py --rate 500 --seconds 120
"""

import argparse
import os
import signal
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.serialization import MessageField, SerializationContext

from medusa_streams.generators import cars

with warnings.catch_warnings(record=True) as told:
    from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from httpx import HTTPError
for one in told:
    # Authlib, which the registry client uses, warns of its own future; nothing to do about it here.
    if one.category.__name__ != "AuthlibDeprecationWarning":
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)

BEHIND_MAX_MS = 2_000
"""A live feed that falls this far behind skips ahead: it reports what is, not what was."""
DELIVERY_SECONDS = 30
HINT = (
    "  Are they running? Other addresses: KAFKA_BOOTSTRAP_SERVERS and SCHEMA_REGISTRY_URL, or "
    "--bootstrap-servers and --registry."
)
RATE_MAX, SECONDS_MAX = 100_000, 86_400


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

    def send(self, sighting: cars.Sighting) -> None:
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
    traffic = cars.Traffic(options.seed, event_ms)
    sent, tick, skipped_ms = 0, 0, 0
    while tick * cars.TICK_MS < options.seconds * 1_000 and not stop.asked and feed.failure is None:
        tick += 1
        due = int(tick * cars.TICK_MS * options.rate / 1_000) - sent
        for sighting in traffic.sightings(event_ms + tick * cars.TICK_MS + skipped_ms, due):
            feed.send(sighting)
        sent += due
        feed.poll()
        passed_ms = round((time.monotonic() - began_s) * 1_000)
        ahead_ms = tick * cars.TICK_MS + skipped_ms - passed_ms
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
