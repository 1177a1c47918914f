from dataclasses import asdict

import pytest

from connectors.generators.prices import TICK_MS, Market, Quote
from pipeline.errors import BrokenInvariantError
from pipeline.examples.judge import compared
from pipeline.examples.prices import BARS, PRICES, Rules, due_spreads, rules_of
from pipeline.ids import Millis
from pipeline.network.model import Network
from pipeline.reference.inputs import Due, InputRecord, Inputs, Place, Refusal
from tests.unit.examples import projects

NETWORK = projects.network("prices")
START_MS = 1_700_000_000_000


def market(seconds: int) -> Inputs:
    """The contents of the topics after this many seconds."""
    source = Market(1, START_MS)
    found: dict[str, list[InputRecord]] = {"quotes": [], "trades": []}
    for at_ms in range(START_MS, START_MS + seconds * 1_000, TICK_MS):
        for report in source.reports(at_ms):
            stream = "quotes" if isinstance(report, Quote) else "trades"
            place = Place(stream, 0, len(found[stream]))
            found[stream].append(InputRecord(place, asdict(report)))
    return Inputs({stream: tuple(records) for stream, records in found.items()})


def due(name: str, inputs: Inputs, network: Network = NETWORK) -> list[Due]:
    """The expected rows of one output."""
    return list(next(r for r in PRICES.results if r.box == name).due(inputs, network))


def test_the_times_are_those_of_the_network() -> None:
    """The project's own document, which an example run does not change."""
    assert rules_of(NETWORK) == Rules(
        {"bars_1s": 1_000, "bars_10s": 10_000, "bars_1m": 60_000},
        110_000,
        60_000,
        10_000,
        5_000,
    )


def test_another_network_has_no_reference() -> None:
    """Rules come only from a network with these boxes."""
    network = projects.changed("prices", "{after: 110s}", "110s")
    with pytest.raises(BrokenInvariantError, match="not the one the reference knows"):
        rules_of(network)


def test_a_short_run_produces_rows_for_every_output() -> None:
    """In fifteen seconds; each row can be identified, and equals itself exactly."""
    inputs = market(150)
    for result in PRICES.results:
        rows = [due.row for due in result.due(inputs, NETWORK)]
        assert len(rows) >= (8 if result.box != "crossings" else 3)
        assert all(result.text(row) for row in rows)
        assert compared(result, inputs, NETWORK, rows, Millis(START_MS)).exact


def test_a_late_report_is_missing_only_where_it_was_refused() -> None:
    """Each size of bars decides separately."""
    inputs = market(20)
    late = Refusal("bars_1s", inputs.given["trades"][0].place, "", "late", "")
    without = Inputs(inputs.given, (late,))
    assert due("bars_1s", without) != due("bars_1s", inputs)
    assert [due(name, without) == due(name, inputs) for name in BARS[1:]] == [True, True]
    assert due("averages", without) == due("averages", inputs)


def test_spreads_are_computed_from_quotes() -> None:
    """Each quote is in six windows."""
    inputs = market(20)
    rows = [due.row for due in due_spreads(inputs, NETWORK)]
    quotes = next(r for r in PRICES.results if r.box == "spreads").columns.index("quotes")
    assert sum(int(row[quotes] or 0) for row in rows) == 6 * len(inputs.given["quotes"])
