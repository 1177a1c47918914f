"""Sends quotes and trades of a made-up exchange to Kafka, as Avro, framed for a schema registry.

It stands for a program that existed before Medusa: it knows Kafka and the registry, nothing else.
Prices are made up, but for those of `WTI`: what crude oil cost, a day in each second.
`Market` is a pure function of its arguments: the same seed and the same times give the same quotes
and trades. `main` sends them.
"""

import argparse
import csv
import heapq
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
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
"""The market moves in steps of this length."""
SYMBOLS = ("ALDER", "BIRCH", "CEDAR", "HAZEL", "LARCH", "MAPLE", "ROWAN", "WILLOW")
REAL, SERIES = "WTI", "series/wti.csv"
"""The symbol whose prices are real, one for each day, and where they are."""
DAY_MS = 1_000
QUOTES_PER_SECOND, TRADES_PER_SECOND = 2.0, 1.5
"""Of one symbol when nothing is special."""
BURST_EVERY_MS, BURST_MS, BURST_FACTOR = 40_000, 2_000, 8.0
"""Now and then everybody wants to trade the same symbol."""
HALT_EVERY_MS, HALT_MS = 60_000, 12_000
"""Now and then trading of a symbol is halted: neither quotes nor trades."""
SPREAD = 0.0004
TREND_MS = (15_000, 60_000)
"""Prices drift one way for so long, then another way."""
DELAY_MAX_MS = 800
"""Trades are usually reported this soon; it has to stay below the lateness that readers allow."""
LATE_SHARE, LATE_MS = 0.004, (4_000, 40_000)
"""Some are reported much later."""
CORRECTED_SHARE, CANCELLED_SHARE, AMENDED_MS = 0.02, 0.02, (100, 6_000)
"""Some are corrected or cancelled so long after they were reported."""
BEHIND_MAX_MS = 2_000
"""A live feed that falls this far behind skips ahead: it reports what is, not what was."""
DELIVERY_SECONDS = 30
HINT = (
    "  Are they running? Other addresses: KAFKA_BOOTSTRAP_SERVERS and SCHEMA_REGISTRY_URL, or "
    "--bootstrap-servers and --registry."
)
SPEED_MAX, SECONDS_MAX = 60.0, 86_400


@dataclass(frozen=True, slots=True)
class Quote:
    """What a symbol could be sold and bought for, from a moment (ms since 1970 UTC) on."""

    symbol: str
    bid: float
    ask: float
    quoted_at: int


@dataclass(frozen=True, slots=True)
class Trade:
    """A trade as it is reported: new, or with its old values corrected or cancelled."""

    symbol: str
    trade: str
    status: str
    price: float
    volume: int
    was_price: float | None
    was_volume: int | None
    traded_at: int


@dataclass(slots=True)
class Listing:
    """A symbol with its price, and what happens to it."""

    symbol: str
    middle: float
    drift: float = 0.0
    drifts_until_ms: int = 0
    bursts_until_ms: int = 0
    halted_until_ms: int = 0
    prices: Sequence[float] = ()
    """Where they are real: of each day."""

    def move(self, chance: random.Random, passed_ms: int) -> None:
        """Find the price that holds so long after trading began."""
        if not self.prices:
            self.middle *= 1 + self.drift + chance.gauss(0, 1e-4)
            return
        day, into_ms = divmod(passed_ms, DAY_MS)
        today, tomorrow = (self.prices[d % len(self.prices)] for d in (day, day + 1))
        self.middle = today + (tomorrow - today) * into_ms / DAY_MS


@dataclass(order=True, slots=True)
class Waiting:
    """A trade that is reported later."""

    at_ms: int
    number: int
    trade: Trade = field(compare=False)


class Market:
    """Symbols whose prices wander, with those who trade them.

    Args:
        seed: of everything that is left to chance.
        start_ms: the time at which trading begins.
        real: the prices of `REAL`, a day each; after the last one they begin again.
    """

    def __init__(self, seed: int, start_ms: int, real: Sequence[float] = ()) -> None:
        self._random = random.Random(seed)
        self._start_ms = start_ms
        self._listings = [Listing(s, self._random.uniform(20, 200)) for s in SYMBOLS]
        if real:
            self._listings.append(Listing(REAL, real[0], prices=real))
        self._waiting: list[Waiting] = []
        self._trades = 0
        self._waits = 0
        self._halt_at_ms = start_ms + HALT_EVERY_MS // 3
        self._burst_at_ms = start_ms + BURST_EVERY_MS // 4

    def reports(self, at_ms: int) -> Iterator[Quote | Trade]:
        """Let one tick pass; what is reported at its end, `at_ms`, which must never go back."""
        self._surprise(at_ms)
        for listing in self._listings:
            yield from self._tick(listing, at_ms)
        while self._waiting and self._waiting[0].at_ms <= at_ms:
            yield heapq.heappop(self._waiting).trade

    def _surprise(self, at_ms: int) -> None:
        """Now and then a burst begins, or a halt."""
        if at_ms >= self._burst_at_ms:
            self._burst_at_ms = at_ms + BURST_EVERY_MS
            self._random.choice(self._listings).bursts_until_ms = at_ms + BURST_MS
        if at_ms >= self._halt_at_ms:
            self._halt_at_ms = at_ms + HALT_EVERY_MS
            self._random.choice(self._listings).halted_until_ms = at_ms + HALT_MS

    def _tick(self, listing: Listing, at_ms: int) -> Iterator[Quote]:
        """Move one symbol on by a tick."""
        if at_ms < listing.halted_until_ms:
            return
        if at_ms >= listing.drifts_until_ms:
            listing.drifts_until_ms = at_ms + self._random.randint(*TREND_MS)
            listing.drift = self._random.uniform(-1, 1) * 2e-5
        listing.move(self._random, at_ms - self._start_ms)
        busy = BURST_FACTOR if at_ms < listing.bursts_until_ms else 1.0
        if self._random.random() < busy * QUOTES_PER_SECOND * TICK_MS / 1_000:
            half = listing.middle * SPREAD * self._random.uniform(0.5, 1.5)
            bid, ask = round(listing.middle - half, 2), round(listing.middle + half, 2)
            yield Quote(listing.symbol, bid, ask, at_ms)
        if self._random.random() < busy * TRADES_PER_SECOND * TICK_MS / 1_000:
            self._trade(listing, at_ms)

    def _trade(self, listing: Listing, at_ms: int) -> None:
        """Somebody buys or sells; it is reported a little later, and perhaps amended after that."""
        chance = self._random
        self._trades += 1
        side = chance.choice((-1, 1)) * SPREAD * chance.uniform(0.5, 1.5)
        price = round(listing.middle * (1 + side), 2)
        volume = chance.randint(1, 40) * 10
        trade = f"T{self._trades:08d}"
        late = chance.random() < LATE_SHARE
        reported_ms = at_ms + (
            chance.randint(*LATE_MS) if late else chance.randint(0, DELAY_MAX_MS)
        )
        self._wait(
            reported_ms, Trade(listing.symbol, trade, "new", price, volume, None, None, at_ms)
        )
        amended_ms = reported_ms + chance.randint(*AMENDED_MS)
        what = chance.random()
        if what < CORRECTED_SHARE:
            right = round(price * chance.uniform(0.98, 1.02), 2), chance.randint(1, 40) * 10
            self._wait(
                amended_ms,
                Trade(listing.symbol, trade, "corrected", *right, price, volume, at_ms),
            )
        elif what < CORRECTED_SHARE + CANCELLED_SHARE:
            self._wait(
                amended_ms,
                Trade(listing.symbol, trade, "cancelled", price, volume, None, None, at_ms),
            )

    def _wait(self, until_ms: int, trade: Trade) -> None:
        self._waits += 1
        heapq.heappush(self._waiting, Waiting(until_ms, self._waits, trade))


def real_prices() -> tuple[float, ...]:
    """The prices of `REAL`, a day each."""
    with (Path(__file__).parent / SERIES).open(encoding="utf-8", newline="") as file:
        return tuple(float(day["price"]) for day in csv.DictReader(file))


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
                (Quote, "quotes", "quote.avsc"),
                (Trade, "trades", "trade.avsc"),
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

    def send(self, report: Quote | Trade) -> None:
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
    market = Market(options.seed, event_ms, real_prices())
    passed_ms = skipped_ms = 0
    while passed_ms < length_ms and not stop.asked and feed.failure is None:
        passed_ms += TICK_MS
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
