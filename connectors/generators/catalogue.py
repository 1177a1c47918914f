"""The list of kinds of traffic."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from connectors.generators.calls import Exchange
from connectors.generators.cars import Traffic
from connectors.generators.clicks import Shop
from connectors.generators.connections import Network
from connectors.generators.kind import TICK_MS, Kind, Made, ticks
from connectors.generators.prices import (
    QUOTES_PER_SECOND,
    SYMBOLS,
    TRADES_PER_SECOND,
    Market,
    Quote,
    Trade,
    real_prices,
)
from connectors.generators.sensors import (
    ANNOUNCED_MS,
    DEVICES,
    ROOM_SIZE,
    Calibration,
    Fleet,
    Reading,
    usual_rate,
)

_RATES = (0.01, 100_000.0)
_LISTED = len(SYMBOLS) + 1
_ANNOUNCED_S = ANNOUNCED_MS / 1_000
_DEVICES_MAX = 1_000


def _made(at_ms: int, reports: Iterable[Any]) -> Iterator[Made]:
    return (Made(at_ms, asdict(one)) for one in reports)


def _cars(seed: int, start_ms: int, rate: float) -> Iterator[Made]:
    traffic = Traffic(seed, start_ms)
    for at_ms, due in ticks(start_ms, rate):
        yield from _made(at_ms, traffic.sightings(at_ms, due))


def _connections(seed: int, start_ms: int, rate: float) -> Iterator[Made]:
    network = Network(seed, start_ms)
    for at_ms, due in ticks(start_ms, rate):
        yield from _made(at_ms, network.connections(at_ms, due))


def _calls(seed: int, start_ms: int, rate: float) -> Iterator[Made]:
    exchange = Exchange(seed, start_ms)
    for at_ms, due in ticks(start_ms, rate):
        yield from _made(at_ms, exchange.calls(at_ms, due))


def _clicks(seed: int, start_ms: int, rate: float) -> Iterator[Made]:
    shop = Shop(seed, start_ms, rate)
    for at_ms, due in ticks(start_ms, rate):
        yield from _made(at_ms, shop.clicks(at_ms, due))


def _quotes(seed: int, start_ms: int, rate: float) -> Iterator[Made]:
    yield from _market(seed, start_ms, rate / (_LISTED * QUOTES_PER_SECOND), Quote)


def _trades(seed: int, start_ms: int, rate: float) -> Iterator[Made]:
    yield from _market(seed, start_ms, rate / (_LISTED * TRADES_PER_SECOND), Trade)


def _market(seed: int, start_ms: int, pace: float, kind: type) -> Iterator[Made]:
    market = Market(seed, start_ms, real_prices(), pace)
    for at_ms, _ in ticks(start_ms, 0):
        yield from _made(at_ms, (one for one in market.reports(at_ms) if isinstance(one, kind)))


def _readings(seed: int, start_ms: int, rate: float) -> Iterator[Made]:
    yield from _fleet(Fleet(seed, start_ms, pace=rate / usual_rate(DEVICES)), start_ms, Reading)


def _calibrations(seed: int, start_ms: int, rate: float) -> Iterator[Made]:
    devices = max(ROOM_SIZE, round(rate * _ANNOUNCED_S))
    yield from _fleet(Fleet(seed, start_ms, devices), start_ms, Calibration)


def _fleet(fleet: Fleet, start_ms: int, kind: type) -> Iterator[Made]:
    for at_ms, _ in ticks(start_ms, 0, TICK_MS):
        yield from _made(at_ms, (one for one in fleet.reports(at_ms) if isinstance(one, kind)))


_ALL = (
    Kind(
        name="cars",
        summary="sightings of cars on roads",
        schema_file="sighting.avsc",
        key="car",
        times=("seen_at",),
        rate=500.0,
        rates=_RATES,
        make=_cars,
    ),
    Kind(
        name="sensors",
        summary="readings of sensors in rooms",
        schema_file="reading.avsc",
        key="device",
        times=("measured_at",),
        rate=round(usual_rate(DEVICES)),
        rates=_RATES,
        make=_readings,
    ),
    Kind(
        name="sensors.calibrations",
        summary="what makes degrees of these readings",
        schema_file="calibration.avsc",
        key="device",
        times=("since",),
        rate=DEVICES / _ANNOUNCED_S,
        rates=(ROOM_SIZE / _ANNOUNCED_S, _DEVICES_MAX / _ANNOUNCED_S),
        make=_calibrations,
    ),
    Kind(
        name="prices",
        summary="trades of an exchange, corrected and cancelled ones too",
        schema_file="trade.avsc",
        key="symbol",
        times=("traded_at",),
        rate=_LISTED * TRADES_PER_SECOND,
        rates=_RATES,
        make=_trades,
    ),
    Kind(
        name="prices.quotes",
        summary="quotes of the same exchange",
        schema_file="quote.avsc",
        key="symbol",
        times=("quoted_at",),
        rate=_LISTED * QUOTES_PER_SECOND,
        rates=_RATES,
        make=_quotes,
    ),
    Kind(
        name="connections",
        summary="connections of a network, scans of ports too",
        schema_file="connection.avsc",
        key="source",
        times=("ended_at",),
        rate=200.0,
        rates=_RATES,
        make=_connections,
    ),
    Kind(
        name="calls",
        summary="telephone calls",
        schema_file="call.avsc",
        key="caller",
        times=("ended_at", "began_at"),
        rate=50.0,
        rates=_RATES,
        make=_calls,
    ),
    Kind(
        name="clicks",
        summary="clicks of visitors of a shop, robots too",
        schema_file="click.avsc",
        key="visitor",
        times=("clicked_at",),
        rate=100.0,
        rates=_RATES,
        make=_clicks,
    ),
)
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""By name."""
