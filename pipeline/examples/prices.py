"""The prices example: expected results of its trades and quotes. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass

from pipeline.examples.example import Example, Result, clock_time, columns_of, due_by
from pipeline.examples.network_times import NetworkTimes
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
"""Speed of the simulated market: a run is short, and a bar takes up to a minute."""
_OF_AVERAGES = "bars_10s"


@dataclass(frozen=True, slots=True)
class Rules:
    """The times of the network, in ms.

    Args:
        sizes: size of each kind of bar.
        reach_ms: how far back an average reaches.
        spread_ms: size of the windows of spreads.
        spread_slide_ms: distance of the starts of these windows.
        quote_reach_ms: maximum age of a quote at the time of a trade.
    """

    sizes: Mapping[str, int]
    reach_ms: int
    spread_ms: int
    spread_slide_ms: int
    quote_reach_ms: int

    @property
    def step_ms(self) -> int:
        """Distance of two averages."""
        return self.sizes[_OF_AVERAGES]


def rules_of(network: Network) -> Rules:
    """The times that the reference needs, from the deployed network.

    Raises:
        BrokenInvariantError: the network is not the prices network.
    """
    times = NetworkTimes(network)
    sizes = {name: times.window(name).size_ms for name in BARS}
    step_ms = sizes[_OF_AVERAGES]
    steps, spread = times.bound("steps"), times.window("spreads")
    if times.window("averages") != times.window(_OF_AVERAGES):
        raise times.other("averages")
    if not steps.lower_ms == steps.upper_ms == step_ms:
        raise times.other("steps")
    return Rules(
        sizes,
        _back(times, "aged"),
        spread.size_ms,
        spread.slide_ms,
        times.within("trades_quoted"),
    )


def _back(times: NetworkTimes, name: str) -> int:
    """How far behind left the right side of a join may be; it is never ahead."""
    bound = times.bound(name)
    if bound.lower_ms != 0:
        raise times.other(name)
    return bound.upper_ms


def due_crossings(inputs: Inputs, network: Network) -> Iterator[Due]:
    """The expected crossings."""
    rules = rules_of(network)
    for crossing in crossings(_averages(inputs, rules), rules.step_ms):
        yield Due(astuple(crossing), crossing.bar_end + rules.step_ms)


def due_spreads(inputs: Inputs, network: Network) -> Iterator[Due]:
    """The expected spreads."""
    rules = rules_of(network)
    quotes = (parse_quote(fields) for fields in inputs.taken("spreads", "quotes"))
    for spread in spreads(quotes, rules.spread_ms, rules.spread_slide_ms):
        yield Due(astuple(spread), spread.window_end)


def due_quoted(inputs: Inputs, network: Network) -> Iterator[Due]:
    """The expected trades with the quotes valid at their time."""
    trades = (parse_trade(fields) for fields in inputs.taken("trades_quoted", "trades", "left"))
    quotes = (parse_quote(fields) for fields in inputs.taken("trades_quoted", "quotes", "right"))
    for trade in quoted(trades, quotes, rules_of(network).quote_reach_ms):
        yield Due(astuple(trade), trade.traded_at)


def bar_text(row: Row) -> str:
    """A bar in a report."""
    symbol, _, window_end, trades, volume, vwap = row
    return f"{clock_time(window_end)}  {symbol} {vwap} ({trades} trades, {volume} shares)"


def average_text(row: Row) -> str:
    """The averages in a report."""
    symbol, bar_end, _, _, fast, slow = row
    return f"{clock_time(bar_end)}  {symbol} {fast} fast, {slow} slow"


def crossing_text(row: Row) -> str:
    """An alert in a report."""
    symbol, bar_end, direction, _, _ = row
    return f"{clock_time(bar_end)}  {symbol} crosses {direction}"


def spread_text(row: Row) -> str:
    """A spread in a report."""
    symbol, _, window_end, quotes, tightest, widest, _ = row
    return f"{clock_time(window_end)}  {symbol} {tightest} to {widest} apart in {quotes} quotes"


def quoted_text(row: Row) -> str:
    """A trade with its quote in a report."""
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
    """The expected bars of one size."""
    return due_by(lambda inputs, rules: _bars(inputs, rules, name), rules_of, "window_end")


due_aged = due_by(_aged, rules_of, "bar_end")
"""The bars of each average."""
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
                text=bar_text,
            )
            for name in BARS
        ),
        Result(
            box=BoxName("averages"),
            name="moving averages",
            columns=columns_of(Average),
            identity=("symbol", "bar_end"),
            due=due_averages,
            text=average_text,
        ),
        Result(
            box=BoxName("crossings"),
            name="crossings",
            columns=columns_of(Crossing),
            identity=("symbol", "bar_end"),
            due=due_crossings,
            text=crossing_text,
        ),
        Result(
            box=BoxName("spreads"),
            name="spreads",
            columns=columns_of(Spread),
            identity=("symbol", "window_end"),
            due=due_spreads,
            text=spread_text,
        ),
        Result(
            box=BoxName("trades_quoted"),
            name="trades with quotes",
            columns=columns_of(Quoted),
            identity=("symbol", "trade"),
            due=due_quoted,
            text=quoted_text,
        ),
    ),
    feed=(f"--speed={SPEED}",),
)
