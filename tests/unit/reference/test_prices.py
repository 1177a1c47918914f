from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.reference.prices import (
    Average,
    Bar,
    Quote,
    Quoted,
    Trade,
    aged,
    averages,
    bars,
    crossings,
    parse_quote,
    parse_trade,
    quoted,
    spreads,
)

TRADE = Trade("ALDER", "T1", "new", 100.0, 10, None, None, 1_500)
SECOND, TEN = 1_000, 10_000


def test_prices_of_a_bar_are_weighted_by_volume() -> None:
    """One bar for each symbol and window that has a report."""
    found = bars(
        [TRADE, replace(TRADE, price=103.0, volume=20), replace(TRADE, symbol="BIRCH")], SECOND
    )
    assert found == [
        Bar("ALDER", 1_000, 2_000, 2, 30, 102.0),
        Bar("BIRCH", 1_000, 2_000, 1, 10, 100.0),
    ]


def test_a_window_includes_its_start_and_excludes_its_end() -> None:
    """A trade at the border belongs to the later bar."""
    times = [replace(TRADE, traded_at=at) for at in (999, 1_000, 1_999, 2_000)]
    assert [(bar.window_start, bar.trades) for bar in bars(times, SECOND)] == [
        (0, 1),
        (1_000, 2),
        (2_000, 1),
    ]


def test_a_correction_replaces_the_corrected_trade() -> None:
    """The bar is as if the trade had been reported right."""
    corrected = Trade("ALDER", "T1", "corrected", 200.0, 5, 100.0, 10, 1_500)
    assert bars([TRADE, corrected], SECOND) == bars([replace(TRADE, price=200.0, volume=5)], SECOND)


def test_a_cancelled_trade_leaves_a_bar_without_a_price() -> None:
    """Its volume is 0, so the price is undefined."""
    cancelled = replace(TRADE, status="cancelled")
    assert bars([TRADE, cancelled], SECOND) == [Bar("ALDER", 1_000, 2_000, 0, 0, None)]


@given(st.permutations([replace(TRADE, price=p) for p in (0.1, 0.2, 0.3, 1e6, 33.33)]))
def test_the_order_of_reports_is_irrelevant(trades: list[Trade]) -> None:
    """Sums are exact, in any order."""
    in_order = sorted(trades, key=lambda trade: trade.price)
    assert bars(trades, SECOND) == bars(in_order, SECOND)


def of(*prices: float | None, reach_ms: int = 110_000) -> list[Average]:
    """The averages of consecutive bars of ten seconds with these prices."""
    found = [Bar("A", n * TEN, (n + 1) * TEN, 1, 1, price) for n, price in enumerate(prices)]
    return averages(aged(found, TEN, reach_ms), TEN)


def test_an_average_weighs_the_bars_before_it() -> None:
    """Half as much with each bar, or three quarters; each bar has its own average."""
    found = of(4.0, 8.0)
    assert found[0] == Average("A", 10_000, 10_000, 20_000, 4.0, 4.0)
    assert found[1].fast == (8 + 4 * 0.5) / 1.5
    assert found[1].slow == (8 + 4 * 0.75) / 1.75


def test_an_average_has_a_limited_range() -> None:
    """A bar at the border counts, one before it does not; those without a price never do."""
    assert of(4.0, None, 8.0, reach_ms=2 * TEN)[-1].fast == (8 + 4 * 0.25) / 1.25
    assert of(4.0, None, 8.0, reach_ms=TEN)[-1].fast == 8.0
    assert len(of(4.0, None, 8.0, reach_ms=TEN)) == 2


def test_averages_cross_from_one_bar_to_the_next() -> None:
    """Both ways; a bar that is missing between them hides it."""
    found = of(5.0, 4.0, 9.0, 9.0, 1.0)
    assert [(c.bar_end, c.direction) for c in crossings(found, TEN)] == [
        (30_000, "up"),
        (50_000, "down"),
    ]
    gap = of(5.0, 4.0, None, 9.0)
    assert crossings(gap, TEN) == []


def test_a_quote_counts_in_every_window_that_contains_it() -> None:
    """Windows of three seconds that begin each second."""
    found = spreads([Quote("A", 9.0, 10.0, 3_500)], 3_000, 1_000)
    assert [(s.window_start, s.window_end) for s in found] == [
        (1_000, 4_000),
        (2_000, 5_000),
        (3_000, 6_000),
    ]
    both = spreads([Quote("A", 9.0, 10.0, 500), Quote("A", 6.0, 8.0, 900)], 1_000, 1_000)
    assert [(s.quotes, s.tightest, s.widest, s.spread) for s in both] == [(2, 1.0, 2.0, 0.175)]


def matched_quotes(*times: int) -> list[int]:
    """The quotes of these times that match a trade at 10,000, with a maximum age of 5 s."""
    quotes = [Quote("ALDER", 9.0, 10.0, at_ms) for at_ms in times]
    trade = replace(TRADE, traded_at=10_000)
    return [one.quoted_at for one in quoted([trade], quotes, 5_000)]


def test_a_trade_matches_the_last_quote() -> None:
    """The last one up to its own time, inclusive; not one that is too old, or of another symbol."""
    assert matched_quotes(6_000, 8_000, 10_000, 10_001) == [10_000]
    assert matched_quotes(5_000) == [5_000]
    assert matched_quotes(4_999, 10_001) == []
    assert quoted([TRADE], [Quote("BIRCH", 9.0, 10.0, 1_500)], 5_000) == []


def test_only_new_trades_are_matched_with_quotes() -> None:
    """And of the quotes of one millisecond the one processed last counts."""
    quotes = [Quote("ALDER", 8.0, 10.0, 1_400), Quote("ALDER", 9.0, 10.0, 1_400)]
    found = quoted([TRADE, replace(TRADE, status="cancelled")], quotes, 5_000)
    assert found == [Quoted("ALDER", "T1", 100.0, 10, 1_500, 9.0, 10.0, 1_400)]


def test_records_are_read_by_their_fields() -> None:
    """A missing field or one of another type is named."""
    fields = {
        "symbol": "ALDER", "trade": "T1", "status": "new", "price": 100.0, "volume": 10,
        "was_price": None, "was_volume": None, "traded_at": 1_500,
    }  # fmt: skip
    assert parse_trade(fields) == TRADE
    with pytest.raises(ValueError, match="not a trade"):
        parse_trade({**fields, "price": "100"})
    quote = {"symbol": "A", "bid": 9.0, "ask": 10.0, "quoted_at": 5}
    assert parse_quote(quote) == Quote("A", 9.0, 10.0, 5)
    with pytest.raises(ValueError, match="not a quote"):
        parse_quote({"symbol": "A"})
