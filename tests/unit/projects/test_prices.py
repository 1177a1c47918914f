import json
from dataclasses import asdict
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from connectors.generators.prices import TICK_MS, Market, Quote, Trade
from pipeline.projects.prices import producer
from pipeline.projects.prices.producer import parse

START_MS = 1_700_000_000_000


@pytest.mark.parametrize(("kind", "file"), [(Quote, "quote.avsc"), (Trade, "trade.avsc")])
def test_reports_have_the_fields_of_their_schemas(kind: type, file: str) -> None:
    """The schemas that come with the project have exactly the fields that are sent."""
    path = Path(producer.__file__).parent / "schemas" / file
    schema = json.loads(path.read_text(encoding="utf-8"))
    market = Market(1, START_MS)
    reports = (one for at_ms in count(START_MS, TICK_MS) for one in market.reports(at_ms))
    report = next(one for one in reports if isinstance(one, kind))
    assert {field["name"] for field in schema["fields"]} == set(asdict(report))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--speed", "0.5"], "--speed is 1 to 60"),
        (["--seconds", "0"], "above 0"),
        (["--registry", "localhost:8081"], "begins with http://"),
        (["--start-at", "yesterday"], "not an ISO 8601 time"),
        (["--start-at", "2026-01-01T00:00:00"], "needs a zone"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A value out of range ends the program with a message about it."""
    with pytest.raises(SystemExit):
        parse(arguments)
    assert says in capsys.readouterr().err


class Clock:
    """Time passes only in sleep."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def monotonic(self) -> float:
        """Seconds that have passed."""
        return self.passed_s

    def time_ns(self) -> int:
        """Now."""
        return START_MS * 1_000_000

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.passed_s += seconds


class Taken:
    """Takes the sent records."""

    failure = None

    def __init__(self) -> None:
        self.times: list[int] = []

    def send(self, report: Quote | Trade) -> None:
        """Keep its time."""
        self.times.append(report.quoted_at if isinstance(report, Quote) else report.traded_at)

    def poll(self) -> None:
        """No record is pending."""


def test_a_fast_market_begins_in_the_past_and_ends_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four seconds at ten times the speed are forty of the market, and none of the future."""
    clock, taken = Clock(), Taken()
    monkeypatch.setattr(producer, "time", clock)
    options = parse(["--seconds", "4", "--speed", "10"])
    stop = cast("producer.Stop", SimpleNamespace(asked=False))
    producer.run(options, cast("producer.Feed", taken), stop)
    assert clock.passed_s == pytest.approx(4)
    assert START_MS - 36_000 <= min(taken.times) < START_MS - 35_000
    assert START_MS + 3_000 < max(taken.times) <= START_MS + 4_000
