"""Quotes and trades of a made-up exchange.

Prices are made up, but for those of `WTI`: what crude oil cost, a day in each second. The same seed
and the same times give the same quotes and trades.
"""

import csv
import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources

TICK_MS = 50
"""The market moves in steps of this length."""
SYMBOLS = ("ALDER", "BIRCH", "CEDAR", "HAZEL", "LARCH", "MAPLE", "ROWAN", "WILLOW")
REAL, SERIES = "WTI", "wti.csv"
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
        pace: how many times as often as usual symbols are quoted and traded.
    """

    def __init__(
        self, seed: int, start_ms: int, real: Sequence[float] = (), pace: float = 1.0
    ) -> None:
        self._pace = pace
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
        busy = self._pace * (BURST_FACTOR if at_ms < listing.bursts_until_ms else 1.0)
        for _ in range(self._times(busy * QUOTES_PER_SECOND)):
            half = listing.middle * SPREAD * self._random.uniform(0.5, 1.5)
            bid, ask = round(listing.middle - half, 2), round(listing.middle + half, 2)
            yield Quote(listing.symbol, bid, ask, at_ms)
        for _ in range(self._times(busy * TRADES_PER_SECOND)):
            self._trade(listing, at_ms)

    def _times(self, rate: float) -> int:
        """How often something happens in a tick."""
        whole, part = divmod(rate * TICK_MS / 1_000, 1)
        return int(whole) + (self._random.random() < part)

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
    series = resources.files(__package__) / "series" / SERIES
    lines = series.read_text(encoding="utf-8").splitlines()
    return tuple(float(day["price"]) for day in csv.DictReader(lines))
