"""The prices example, with its own producer."""

from collections.abc import Iterator
from dataclasses import asdict
from random import Random

from connectors.generators.prices import SYMBOLS, TICK_MS, Market, Quote, Trade
from pipeline.examples.prices import PRICES as EXAMPLE
from pipeline.examples.prices import due_aged
from tests.faults.case import Fed
from tests.faults.cases.of_examples import Inner, Played, case_of, partition_of
from tests.faults.values import Columns

SETTLE_MS = 300_000
"""A bar of a minute, an average over two minutes, and the bar after it."""


def _fed(report: Quote | Trade) -> Fed:
    stream = "quotes" if isinstance(report, Quote) else "trades"
    key = report.symbol.encode()
    return Fed(stream, partition_of(key), key, asdict(report))


def _feed(random: Random, start_ms: int) -> Iterator[Fed]:
    market = Market(random.randrange(2**31), start_ms)
    at_ms = start_ms
    while True:
        at_ms += TICK_MS
        yield from (_fed(report) for report in market.reports(at_ms))


def _close(at_ms: int) -> Iterator[Fed]:
    for symbol in {partition_of(symbol.encode()): symbol for symbol in SYMBOLS}.values():
        yield _fed(Quote(symbol, 1.0, 2.0, at_ms))
        yield _fed(Trade(symbol, "closing", "new", 1.0, 1, None, None, at_ms))


PRICES = case_of(
    Played(
        example=EXAMPLE,
        schemas={"trades": "schemas/trade.avsc", "quotes": "schemas/quote.avsc"},
        feed=_feed,
        close=_close,
        inner={
            "aged": Inner(
                Columns(("symbol", "bar_end", "vwap", "age"), ("symbol", "bar_end", "age")),
                due_aged,
            ),
        },
        settle_ms=SETTLE_MS,
    )
)
