"""The prices example: what has to come of its trades and quotes. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass

from pipeline.examples.example import Example, Result, clock_time, columns_of, due_by
from pipeline.examples.known import Known
from pipeline.ids import BoxName
from pipeline.network.model import Network
from pipeline.reference.compare import Row
from pipeline.reference.inputs import Due, Inputs
from pipeline.reference.prices import (
    Aged,
    Average,
    Bar,
    Crossing,
    Quoted,
    Spread,
    aged,
    averages,
    bars,
    crossings,
    parse_quote,
    parse_trade,
    quoted,
    spreads,
)

BARS = ("bars_1s", "bars_10s", "bars_1m")
SPEED = 10
"""A run is short, and a bar of a minute long: the market runs faster than the clock."""
_OF_AVERAGES = "bars_10s"


@dataclass(frozen=True, slots=True)
class Rules:
    """The times of the network, in ms.

    Args:
        sizes: how long each kind of bar is.
        reach_ms: how far an average reaches back.
        spread_ms: how long the windows of spreads are.
        spread_slide_ms: how far apart these begin.
        quote_reach_ms: how old a quote may be when a trade is made.
    """

    sizes: Mapping[str, int]
    reach_ms: int
    spread_ms: int
    spread_slide_ms: int
    quote_reach_ms: int

    @property
    def step_ms(self) -> int:
        """From one average to the next."""
        return self.sizes[_OF_AVERAGES]


def rules_of(network: Network) -> Rules:
    """The times that the reference needs, from the network that was really deployed.

    Raises:
        BrokenInvariantError: the network is not the prices network.
    """
    known = Known(network)
    sizes = {name: known.window(name).size_ms for name in BARS}
    step_ms = sizes[_OF_AVERAGES]
    steps, spread = known.bound("steps"), known.window("spreads")
    if known.window("averages") != known.window(_OF_AVERAGES):
        raise known.other("averages")
    if not steps.lower_ms == steps.upper_ms == step_ms:
        raise known.other("steps")
    return Rules(
        sizes,
        _back(known, "aged"),
        spread.size_ms,
        spread.slide_ms,
        known.within("trades_quoted"),
    )


def _back(known: Known, name: str) -> int:
    """How far behind left the right side of a join may lie, which is never ahead."""
    bound = known.bound(name)
    if bound.lower_ms != 0:
        raise known.other(name)
    return bound.upper_ms


def due_crossings(inputs: Inputs, network: Network) -> Iterator[Due]:
    """Where they cross."""
    rules = rules_of(network)
    for crossing in crossings(_averages(inputs, rules), rules.step_ms):
        yield Due(astuple(crossing), crossing.bar_end + rules.step_ms)


def due_spreads(inputs: Inputs, network: Network) -> Iterator[Due]:
    """How far bid and ask were apart."""
    rules = rules_of(network)
    quotes = (parse_quote(fields) for fields in inputs.taken("spreads", "quotes"))
    for spread in spreads(quotes, rules.spread_ms, rules.spread_slide_ms):
        yield Due(astuple(spread), spread.window_end)


def due_quoted(inputs: Inputs, network: Network) -> Iterator[Due]:
    """Trades with the quotes that held when they were made."""
    trades = (parse_trade(fields) for fields in inputs.taken("trades_quoted", "trades", "left"))
    quotes = (parse_quote(fields) for fields in inputs.taken("trades_quoted", "quotes", "right"))
    for trade in quoted(trades, quotes, rules_of(network).quote_reach_ms):
        yield Due(astuple(trade), trade.traded_at)


def told_bar(row: Row) -> str:
    """A bar for people."""
    symbol, _, window_end, trades, volume, vwap = row
    return f"{clock_time(window_end)}  {symbol} {vwap} ({trades} trades, {volume} shares)"


def told_average(row: Row) -> str:
    """The averages for people."""
    symbol, bar_end, _, _, fast, slow = row
    return f"{clock_time(bar_end)}  {symbol} {fast} fast, {slow} slow"


def told_crossing(row: Row) -> str:
    """An alert for people."""
    symbol, bar_end, direction, _, _ = row
    return f"{clock_time(bar_end)}  {symbol} crosses {direction}"


def told_spread(row: Row) -> str:
    """A spread for people."""
    symbol, _, window_end, quotes, tightest, widest, _ = row
    return f"{clock_time(window_end)}  {symbol} {tightest} to {widest} apart in {quotes} quotes"


def told_quoted(row: Row) -> str:
    """A trade with its quote for people."""
    symbol, trade, price, _, traded_at, bid, ask, _ = row
    return f"{clock_time(traded_at)}  {trade}: {symbol} at {price}, between {bid} and {ask}"


def _bars(inputs: Inputs, rules: Rules, name: str) -> list[Bar]:
    trades = (parse_trade(fields) for fields in inputs.taken(name, "trades"))
    return bars(trades, rules.sizes[name])


def _averages(inputs: Inputs, rules: Rules) -> list[Average]:
    return averages(_aged(inputs, rules), rules.step_ms)


def _aged(inputs: Inputs, rules: Rules) -> list[Aged]:
    return aged(_bars(inputs, rules, _OF_AVERAGES), rules.step_ms, rules.reach_ms)


def due_bars(name: str) -> Callable[[Inputs, Network], Iterator[Due]]:
    """What the bars of one size have to be."""
    return due_by(lambda inputs, rules: _bars(inputs, rules, name), rules_of, "window_end")


due_aged = due_by(_aged, rules_of, "bar_end")
"""The bars that each average is made of."""
due_averages = due_by(_averages, rules_of, "window_end")
"""Both averages at the end of each bar."""

PRICES = Example(
    name="prices",
    summary="Bars of trades, moving averages and where they cross, trades with their quotes.",
    fed="quotes and trades",
    topic="crossings",
    results=(
        *(
            Result(
                box=BoxName(name),
                name=name.replace("bars_", "bars of "),
                columns=columns_of(Bar),
                identity=("symbol", "window_end"),
                due=due_bars(name),
                tell=told_bar,
            )
            for name in BARS
        ),
        Result(
            box=BoxName("averages"),
            name="moving averages",
            columns=columns_of(Average),
            identity=("symbol", "bar_end"),
            due=due_averages,
            tell=told_average,
        ),
        Result(
            box=BoxName("crossings"),
            name="crossings",
            columns=columns_of(Crossing),
            identity=("symbol", "bar_end"),
            due=due_crossings,
            tell=told_crossing,
        ),
        Result(
            box=BoxName("spreads"),
            name="spreads",
            columns=columns_of(Spread),
            identity=("symbol", "window_end"),
            due=due_spreads,
            tell=told_spread,
        ),
        Result(
            box=BoxName("trades_quoted"),
            name="trades with quotes",
            columns=columns_of(Quoted),
            identity=("symbol", "trade"),
            due=due_quoted,
            tell=told_quoted,
        ),
    ),
    feed=(f"--speed={SPEED}",),
)
