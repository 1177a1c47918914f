"""The prices network as `medusa init` gives it, on its own producer's market, judged as there."""

import importlib.resources
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from random import Random

import yaml

from pipeline.deploy.documents import read_document
from pipeline.examples.prices import PRICES as EXAMPLE
from pipeline.examples.prices import due_aged
from pipeline.ids import BoxName
from pipeline.projects.prices.producer import SYMBOLS, TICK_MS, Market, Quote, Trade
from pipeline.reference.inputs import Given, Inputs, Refusal
from pipeline.reference.inputs import Place as Stood
from tests.faults.case import Case, Fed, Stream
from tests.faults.history import Expected, Fate, Place
from tests.faults.letters import Accepted
from tests.faults.traffic import BAD_SHARE, POISON
from tests.faults.values import Columns

PROJECT = Path(str(importlib.resources.files("pipeline.projects") / "prices"))
NETWORK = read_document(PROJECT / "network.yaml", lambda _: None).network
LATENESS_MS = 3_000
PARTITIONS = 2
TIMES = {"trades": "traded_at", "quotes": "quoted_at"}


def _document() -> str:
    """The project's own, for a network of any name, with inputs of its own."""
    text = (PROJECT / "network.yaml").read_text(encoding="utf-8")
    document = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - builds texts only; "on" stays a word
    document["network"] = "{name}"
    for name, stream in document["streams"].items():
        stream |= {
            "topic": f"{{name}}-{name}",
            "schema": f"{name}.avsc",
            "silence": "missing",
            "partitions": PARTITIONS,
        }
    for name, output in document["outputs"].items():
        output["topic"] = f"{{name}}-{name}"
    return json.dumps(document)


def _schema(file: str) -> Mapping[str, object]:
    found: Mapping[str, object] = json.loads((PROJECT / "schemas" / file).read_text("utf-8"))
    return found


def _inputs(accepted: Accepted) -> Inputs:
    """What was sent and refused, as the example takes it; closing records are no input."""
    given: dict[str, list[Given]] = {name: [] for name in TIMES}
    for record in sorted(accepted.sent, key=lambda record: record.place):
        if record.fate is not Fate.CLOSING:
            given[record.stream].append(Given(_stood(record.place), record.fields))
    return Inputs(
        {name: tuple(records) for name, records in given.items()},
        tuple(
            Refusal(letter.fragment, _stood(letter.origin), letter.port, letter.reason, "")
            for letter in accepted.letters
            if letter.origin is not None
        ),
    )


def _stood(place: Place) -> Stood:
    return Stood(place.topic, place.partition, place.offset)


def _reference(accepted: Accepted) -> Mapping[str, Iterable[Expected]]:
    inputs = _inputs(accepted)
    references = {result.box: result.due for result in EXAMPLE.results}
    return {
        box: [Expected(due.row, due.at_ms) for due in reference(inputs, NETWORK)]
        for box, reference in {**references, BoxName("aged"): due_aged}.items()
    }


def _fed(report: Quote | Trade, fate: Fate = Fate.GOOD) -> Fed:
    stream = "quotes" if isinstance(report, Quote) else "trades"
    key = report.symbol.encode()
    return Fed(stream, sum(key) % PARTITIONS, key, asdict(report), fate)


def _feed(random: Random, start_ms: int) -> Iterator[Fed]:
    """The producer's market, some of it spoilt on the way."""
    market = Market(random.randrange(2**31), start_ms)
    newest: dict[tuple[str, int], int] = {}
    at_ms = start_ms
    while True:
        at_ms += TICK_MS
        for report in market.reports(at_ms):
            fed = _fed(report)
            if random.random() < BAD_SHARE:
                yield Fed(
                    fed.stream, fed.partition, fed.key, fed.fields, Fate.BAD, random.choice(POISON)
                )
                continue
            happened_ms = int(fed.fields[TIMES[fed.stream]] or 0)
            place = (fed.stream, fed.partition)
            newest[place] = max(newest.get(place, happened_ms), happened_ms)
            behind = newest[place] - happened_ms > LATENESS_MS
            yield _fed(report, Fate.MAYBE_LATE) if behind else fed


def _close(at_ms: int) -> Iterator[Fed]:
    for symbol in _one_symbol_each():
        yield _fed(Quote(symbol, 1.0, 2.0, at_ms), Fate.CLOSING)
        yield _fed(Trade(symbol, "closing", "new", 1.0, 1, None, None, at_ms), Fate.CLOSING)


def _one_symbol_each() -> list[str]:
    """One symbol of each partition."""
    return list({sum(symbol.encode()) % PARTITIONS: symbol for symbol in SYMBOLS}.values())


PRICES = Case(
    name="prices",
    document=_document(),
    streams=(
        Stream("trades", _schema("trade.avsc"), TIMES["trades"], PARTITIONS),
        Stream("quotes", _schema("quote.avsc"), TIMES["quotes"], PARTITIONS),
    ),
    feed=_feed,
    close=_close,
    reference=_reference,
    columns={
        "aged": Columns(("symbol", "bar_end", "vwap", "age"), ("symbol", "bar_end", "age")),
        **{str(one.box): Columns(one.columns, one.identity) for one in EXAMPLE.results},
    },
    settle_ms=300_000,
    per_second=200,
)
