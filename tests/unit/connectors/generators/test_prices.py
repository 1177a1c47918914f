from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random

import pytest

from connectors.generators.prices import (
    DAY_MS,
    REAL,
    SYMBOLS,
    TICK_MS,
    Listing,
    Market,
    Quote,
    Trade,
    real_prices,
)

START_MS = 1_700_000_000_000
LATENESS_MS = 3_000


def drive(seed: int = 1, seconds: int = 200) -> Iterator[tuple[int, Quote | Trade]]:
    """Pairs (time of sending, report) of a market."""
    market = Market(seed, START_MS)
    for at_ms in range(START_MS + TICK_MS, START_MS + seconds * 1_000, TICK_MS):
        for report in market.reports(at_ms):
            yield at_ms, report


def trades() -> list[tuple[int, Trade]]:
    """All reports about trades."""
    return [(at_ms, report) for at_ms, report in drive() if isinstance(report, Trade)]


def test_the_same_seed_gives_the_same_market() -> None:
    """Two runs with equal arguments are equal; another seed gives another market."""
    assert list(drive(seconds=5)) == list(drive(seconds=5))
    assert list(drive(seed=2, seconds=5)) != list(drive(seconds=5))


def test_every_symbol_is_quoted_and_traded() -> None:
    """Bids are below asks, and the number of trades is about the stated rate."""
    quoted = {r.symbol for _, r in drive() if isinstance(r, Quote) and r.bid < r.ask}
    traded = Counter(trade.symbol for _, trade in trades() if trade.status == "new")
    assert quoted == set(traded) == set(SYMBOLS)
    assert min(traded.values()) > 200


def test_one_symbol_has_real_prices() -> None:
    """Ten years of them, a day each second; a quote is near the price of its time."""
    prices = real_prices()
    assert len(prices) == 2_515
    assert (min(prices), max(prices)) == (26.19, 113.39)
    market = Market(1, START_MS, prices)
    quotes = [
        report
        for at_ms in range(START_MS + TICK_MS, START_MS + 20_000, TICK_MS)
        for report in market.reports(at_ms)
        if isinstance(report, Quote) and report.symbol == REAL
    ]
    assert len(quotes) > 10
    for quote in quotes:
        day, into_ms = divmod(quote.quoted_at - START_MS, DAY_MS)
        near = prices[day], prices[day + 1]
        assert into_ms or prices[day] == pytest.approx((quote.bid + quote.ask) / 2, abs=0.01)
        assert min(near) - 0.01 <= (quote.bid + quote.ask) / 2 <= max(near) + 0.01


def test_real_prices_repeat() -> None:
    """A market may run for longer than the series."""
    listing = Listing(REAL, 1.0, prices=(10.0, 20.0))
    found = []
    for passed_ms in (0, 500, 1_000, 1_500, 2_000):
        listing.move(Random(1), passed_ms)
        found.append(listing.middle)
    assert found == [10.0, 15.0, 20.0, 15.0, 10.0]


def test_a_report_about_a_trade_follows_it_and_repeats_it() -> None:
    """A correction has the old values and a cancellation the same ones, all with the same time."""
    known: dict[str, Trade] = {}
    amended: Counter[str] = Counter()
    for _, trade in trades():
        if trade.status == "new":
            assert trade.trade not in known
            known[trade.trade] = trade
            continue
        first = known[trade.trade]
        amended[trade.status] += 1
        assert (trade.symbol, trade.traded_at) == (first.symbol, first.traded_at)
        if trade.status == "corrected":
            assert (trade.was_price, trade.was_volume) == (first.price, first.volume)
        else:
            assert (trade.price, trade.volume) == (first.price, first.volume)
    assert amended["corrected"] > 10
    assert amended["cancelled"] > 10


def test_trades_are_out_of_order_and_a_few_are_late() -> None:
    """Most are within the lateness of the network, some beyond it; none is in the future."""
    newest: defaultdict[str, int] = defaultdict(int)
    behind = []
    for at_ms, trade in trades():
        assert trade.traded_at <= at_ms
        newest[trade.symbol] = max(newest[trade.symbol], trade.traded_at)
        behind.append(newest[trade.symbol] - trade.traded_at)
    assert 5 < sum(ms > LATENESS_MS for ms in behind) < len(behind) / 20
    assert sum(0 < ms <= LATENESS_MS for ms in behind) > len(behind) / 20


def test_there_are_bursts_and_halts() -> None:
    """Sometimes a symbol is traded much more than usual, and sometimes not at all."""
    per_second = Counter((t.symbol, t.traded_at // 1_000) for _, t in trades())
    assert max(per_second.values()) > 8
    seconds = defaultdict(set)
    for symbol, second in per_second:
        seconds[symbol].add(second)
    longest = max(
        b - a
        for found in seconds.values()
        for a, b in zip(sorted(found), sorted(found)[1:], strict=False)
    )
    assert longest > 10
