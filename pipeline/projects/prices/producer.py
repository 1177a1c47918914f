"""Sends quotes and trades of a made-up exchange to Kafka, as Avro, framed for a schema registry.

A program of its own, as any existing producer would be: confluent-kafka with the serializer of a
schema registry. Nothing in it knows who reads the topics; what it sends is made up by a generator.
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

from medusa_streams.generators import prices

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
SPEED_MAX, SECONDS_MAX = 60.0, 86_400


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says; times in ms since 1970 UTC."""

    bootstrap_servers: str
    registry: str
    seconds: float
    speed: float
    seed: int
    start_at_ms: int | None


def parse(arguments: list[str]) -> Options:
    """Read the command line; argparse ends the program when it is wrong."""
    parser = argparse.ArgumentParser(
        description="Send quotes and trades as Avro to the Kafka topics `quotes` and `trades`."
    )
    add = parser.add_argument
    servers = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092")
    registry = os.environ.get("SCHEMA_REGISTRY_URL", "http://127.0.0.1:8081")
    add("--bootstrap-servers", default=servers, help="Kafka brokers (%(default)s)")
    add("--registry", default=registry, help="schema registry (%(default)s)")
    add("--seconds", type=float, default=60.0, help="how long to send (%(default)s)")
    add(
        "--speed",
        type=float,
        default=1.0,
        help="seconds of the market in a second (%(default)s); above 1 it begins in the past",
    )
    add("--seed", type=int, default=1, help="the same seed gives the same market (%(default)s)")
    add("--start-at", help="when trading begins, ISO 8601 with zone; not in the future")
    values = parser.parse_args(arguments)
    if not 1 <= values.speed <= SPEED_MAX or not 0 < values.seconds <= SECONDS_MAX:
        parser.error(f"--speed is 1 to {SPEED_MAX:g}, --seconds above 0 and up to {SECONDS_MAX}")
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
        values.seconds,
        values.speed,
        values.seed,
        start_at_ms,
    )


class Feed:
    """Sends quotes and trades, each to its topic, and keeps count of what was delivered."""

    def __init__(self, options: Options) -> None:
        registry = SchemaRegistryClient({"url": options.registry})
        schemas = Path(__file__).parent / "schemas"
        self._ways = {
            kind: (
                topic,
                AvroSerializer(registry, (schemas / file).read_text(encoding="utf-8")),
                SerializationContext(topic, MessageField.VALUE),
            )
            for kind, topic, file in (
                (prices.Quote, "quotes", "quote.avsc"),
                (prices.Trade, "trades", "trade.avsc"),
            )
        }
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

    def send(self, report: prices.Quote | prices.Trade) -> None:
        """Hand one report to the client; wait for room when too many are on their way."""
        topic, serializer, context = self._ways[type(report)]
        body = serializer(asdict(report), context)
        give_up_at = time.monotonic() + DELIVERY_SECONDS
        while True:
            try:
                self._producer.produce(
                    topic, value=body, key=report.symbol.encode(), on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(0.1)
                if time.monotonic() > give_up_at:
                    raise
            else:
                return

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.failure = self.failure or str(error)

    def poll(self) -> None:
        """Take delivery reports without waiting."""
        self._producer.poll(0)

    def finish(self) -> int:
        """Wait for the last delivery reports; how many are left undelivered."""
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
    """Send until the time is over, a delivery fails or somebody stops it.

    Time of the market begins with the clock, or so long before that it ends with it; after a pause
    of this program a live feed skips ahead. A clock that is set meanwhile changes nothing.
    """
    length_ms = options.seconds * options.speed * 1_000
    event_ms = options.start_at_ms
    if event_ms is None:
        now_ms = time.time_ns() // 1_000_000
        event_ms = now_ms - round(options.seconds * (options.speed - 1) * 1_000)
    live = options.start_at_ms is None and options.speed == 1
    began_s = time.monotonic()
    market = prices.Market(options.seed, event_ms, prices.real_prices())
    passed_ms = skipped_ms = 0
    while passed_ms < length_ms and not stop.asked and feed.failure is None:
        passed_ms += prices.TICK_MS
        for report in market.reports(event_ms + passed_ms + skipped_ms):
            feed.send(report)
        feed.poll()
        due_ms = (passed_ms + skipped_ms) / options.speed
        ahead_ms = due_ms - (time.monotonic() - began_s) * 1_000
        if ahead_ms > 0:
            time.sleep(ahead_ms / 1_000)
        elif live and -ahead_ms > BEHIND_MAX_MS:
            skipped_ms += round(-ahead_ms)


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
        reason = feed.failure or f"{left} reports got no answer in {DELIVERY_SECONDS} s"
        sys.stderr.write(f"producer: not delivered: {reason}\n{HINT}\n")
        return 1
    sys.stderr.write(f"producer: {feed.delivered} quotes and trades delivered\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
