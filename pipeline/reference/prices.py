"""Reference of the prices network, record by record, from the complete trades and quotes.

Rules, as in the network document:

- A new trade counts with its volume and its turnover, price times volume. A correction adds its
  values and subtracts the former ones, a cancellation subtracts the trade; both have the time of
  their trade.
- A bar sums the changes of a window `[start, start + size)`, aligned to 1970-01-01T00:00:00Z:
  number of trades, volume, and turnover by volume, which is null if no volume is left.
- Turnovers are added as decimals with ten digits, rounded half up, so that the order of the reports
  does not matter.
- An average at the end of a bar is that of its price and those of the bars of the same symbol that
  ended up to `reach_ms` before; the weight of a price decreases by a factor per `size_ms`. Bars
  without a price do not count, and there is no average at their ends.
- Spreads are those of windows of `size_ms` that begin every `slide_ms`: least, greatest, and the
  average of the spread as a share of the ask.
- A new trade is joined with the last quote of its symbol that is at most `reach_ms` older, and not
  younger; a trade without such a quote is dropped.
- Averages cross if the fast one is above the slow one and was not one bar before, or the other way
  round.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter

from pipeline.reference.inputs import Fields
from pipeline.reference.numbers import average, decimal_of

FAST, SLOW = 0.5, 0.75
"""The factor by which a price's weight decreases with each bar."""


@dataclass(frozen=True, slots=True)
class Trade:
    """A report about a trade; `was_…` only of corrections, `traded_at` in ms since 1970 UTC."""

    symbol: str
    trade: str
    status: str
    price: float
    volume: int
    was_price: float | None
    was_volume: int | None
    traded_at: int


@dataclass(frozen=True, slots=True)
class Bar:
    """The trades of a symbol in a window."""

    symbol: str
    window_start: int
    window_end: int
    trades: int
    volume: int
    vwap: float | None


@dataclass(frozen=True, slots=True)
class Aged:
    """The price of a bar, and its age in bars at `bar_end`."""

    symbol: str
    bar_end: int
    vwap: float
    age: int


@dataclass(frozen=True, slots=True)
class Average:
    """The two moving averages of a symbol at the end of a bar; emitted at `window_end`."""

    symbol: str
    bar_end: int
    window_start: int
    window_end: int
    fast: float
    slow: float


@dataclass(frozen=True, slots=True)
class Crossing:
    """The fast average has passed the slow one."""

    symbol: str
    bar_end: int
    direction: str
    fast: float
    slow: float


@dataclass(frozen=True, slots=True)
class Quote:
    """Bid and ask of a symbol; `quoted_at` in ms since 1970 UTC."""

    symbol: str
    bid: float
    ask: float
    quoted_at: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Difference of bid and ask of a symbol in a window; `spread` as a share of the ask."""

    symbol: str
    window_start: int
    window_end: int
    quotes: int
    tightest: float
    widest: float
    spread: float


@dataclass(frozen=True, slots=True)
class Quoted:
    """A new trade with the quote valid at its time."""

    symbol: str
    trade: str
    price: float
    volume: int
    traded_at: int
    bid: float
    ask: float
    quoted_at: int


@dataclass(slots=True)
class _Sums:
    """Running sums of one bar."""

    trades: int = 0
    volume: int = 0
    turnover: Decimal = Decimal(0)


def parse_trade(fields: Fields) -> Trade:
    """A trade from its fields.

    Raises:
        ValueError: a field is missing or is not of its type.
    """
    match fields:
        case {
            "symbol": str(symbol),
            "trade": str(trade),
            "status": str(status),
            "price": float(price),
            "volume": int(volume),
            "was_price": float() | None as was_price,
            "was_volume": int() | None as was_volume,
            "traded_at": int(traded_at),
        }:
            return Trade(symbol, trade, status, price, volume, was_price, was_volume, traded_at)
    raise ValueError(f"not a trade: {fields!r}")


def parse_quote(fields: Fields) -> Quote:
    """A quote from its fields.

    Raises:
        ValueError: a field is missing or is not of its type.
    """
    match fields:
        case {
            "symbol": str(symbol),
            "bid": float(bid),
            "ask": float(ask),
            "quoted_at": int(quoted_at),
        }:
            return Quote(symbol, bid, ask, quoted_at)
    raise ValueError(f"not a quote: {fields!r}")


def bars(trades: Iterable[Trade], size_ms: int) -> list[Bar]:
    """The bars of a size, by end and symbol."""
    windows: defaultdict[tuple[int, str], _Sums] = defaultdict(_Sums)
    for trade in trades:
        start = trade.traded_at - trade.traded_at % size_ms
        sums = windows[start, trade.symbol]
        turnover = trade.price * trade.volume
        if trade.status == "new":
            sums.trades += 1
            sums.volume += trade.volume
        elif trade.status == "cancelled":
            sums.trades -= 1
            sums.volume -= trade.volume
            turnover = -trade.price * trade.volume
        elif trade.was_price is not None and trade.was_volume is not None:
            sums.volume += trade.volume - trade.was_volume
            turnover -= trade.was_price * trade.was_volume
        sums.turnover += decimal_of(turnover)
    return [
        Bar(
            symbol,
            start,
            start + size_ms,
            sums.trades,
            sums.volume,
            float(sums.turnover) / sums.volume if sums.volume > 0 else None,
        )
        for (start, symbol), sums in sorted(windows.items())
    ]


def aged(found: Iterable[Bar], size_ms: int, reach_ms: int) -> list[Aged]:
    """Every bar that has a price, with those of its symbol that ended up to `reach_ms` before."""
    prices: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for bar in found:
        if bar.vwap is not None:
            prices[bar.symbol][bar.window_end] = bar.vwap
    return [
        Aged(symbol, end, price, (end - other) // size_ms)
        for symbol, by_end in prices.items()
        for end in by_end
        for other, price in by_end.items()
        if 0 <= end - other <= reach_ms
    ]


def averages(found: Iterable[Aged], size_ms: int) -> list[Average]:
    """Both averages at the end of each bar of `size_ms`, by end and symbol."""
    bars_before: defaultdict[tuple[int, str], list[Aged]] = defaultdict(list)
    for bar in found:
        bars_before[bar.bar_end, bar.symbol].append(bar)
    return [
        Average(symbol, end, end, end + size_ms, _weighed(near, FAST), _weighed(near, SLOW))
        for (end, symbol), near in sorted(bars_before.items())
    ]


def crossings(found: Sequence[Average], size_ms: int) -> list[Crossing]:
    """Crossings of the averages of consecutive bars, by end and symbol."""
    above = {(a.symbol, a.bar_end): a.fast > a.slow for a in found}
    return [
        Crossing(a.symbol, a.bar_end, "up" if a.fast > a.slow else "down", a.fast, a.slow)
        for a in found
        if above.get((a.symbol, a.bar_end - size_ms), a.fast > a.slow) != (a.fast > a.slow)
    ]


def spreads(quotes: Iterable[Quote], size_ms: int, slide_ms: int) -> list[Spread]:
    """The spreads of every window that has a quote, by end and symbol."""
    windows: defaultdict[tuple[int, str], list[Quote]] = defaultdict(list)
    for quote in quotes:
        last = quote.quoted_at - quote.quoted_at % slide_ms
        for start in range(last, quote.quoted_at - size_ms, -slide_ms):
            windows[start, quote.symbol].append(quote)
    return [
        Spread(
            symbol,
            start,
            start + size_ms,
            len(inside),
            min(quote.ask - quote.bid for quote in inside),
            max(quote.ask - quote.bid for quote in inside),
            average([(quote.ask - quote.bid) / quote.ask for quote in inside]),
        )
        for (start, symbol), inside in sorted(windows.items())
    ]


def quoted(trades: Iterable[Trade], quotes: Iterable[Quote], reach_ms: int) -> list[Quoted]:
    """Each new trade with the last quote of its symbol that is not younger, in the order of trades.

    Args:
        trades: the reports.
        quotes: in the order of their places, which decides within one millisecond.
        reach_ms: maximum age of a quote; a trade without one is dropped.
    """
    by_symbol: defaultdict[str, list[Quote]] = defaultdict(list)
    for quote in sorted(quotes, key=attrgetter("quoted_at")):
        by_symbol[quote.symbol].append(quote)
    found = []
    for trade in trades:
        candidates = by_symbol[trade.symbol]
        before = bisect_right(candidates, trade.traded_at, key=attrgetter("quoted_at"))
        if trade.status != "new" or before == 0:
            continue
        quote = candidates[before - 1]
        if trade.traded_at - quote.quoted_at <= reach_ms:
            values = (trade.symbol, trade.trade, trade.price, trade.volume, trade.traded_at)
            found.append(Quoted(*values, quote.bid, quote.ask, quote.quoted_at))
    return found


def _weighed(near: Iterable[Aged], factor: float) -> float:
    """The average of prices weighted by their ages."""
    total = weights = Decimal(0)
    for bar in near:
        weight = factor**bar.age
        total += decimal_of(bar.vwap * weight)
        weights += decimal_of(weight)
    return float(total) / float(weights)
