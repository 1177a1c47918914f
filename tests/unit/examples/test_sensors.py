from dataclasses import asdict

import pytest

from connectors.generators.sensors import TICK_MS, Fleet, Reading
from pipeline.errors import BrokenInvariantError
from pipeline.examples.judge import compared
from pipeline.examples.sensors import SENSORS, Rules, due_once, rules_of
from pipeline.ids import Millis
from pipeline.network.model import Network
from pipeline.reference.inputs import Due, InputRecord, Inputs, Place, Refusal
from tests.unit.examples import projects

NETWORK = projects.network("sensors")
START_MS = 1_700_000_000_000


def measured(seconds: int) -> Inputs:
    """The contents of the topics after this many seconds."""
    fleet = Fleet(1, START_MS)
    found: dict[str, list[InputRecord]] = {"readings": [], "calibrations": []}
    for at_ms in range(START_MS, START_MS + seconds * 1_000, TICK_MS):
        for report in fleet.reports(at_ms):
            stream = "readings" if isinstance(report, Reading) else "calibrations"
            place = Place(stream, 0, len(found[stream]))
            found[stream].append(InputRecord(place, asdict(report)))
    return Inputs({stream: tuple(records) for stream, records in found.items()})


def due(name: str, inputs: Inputs, network: Network = NETWORK) -> list[Due]:
    """The expected rows of one output."""
    return list(next(r for r in SENSORS.results if r.box == name).due(inputs, network))


def test_the_times_are_those_of_the_network() -> None:
    """The project's own document, which an example run does not change."""
    day_ms = 86_400_000
    assert rules_of(NETWORK) == Rules(10_000, day_ms, 5_000, 3_000, 1_000, day_ms)


@pytest.mark.parametrize(
    ("now", "then", "box"),
    [
        ("longest: 1d", "longest: 2d", "heard"),
        ("INTERVAL 5 SECONDS", "INTERVAL 6 SECONDS", "beside"),
        ("within: 10s", "within: 10s, key: [device]", None),
    ],
)
def test_another_network_has_no_reference(now: str, then: str, box: str | None) -> None:
    """Rules come only from a network with these boxes; irrelevant parts may differ."""
    network = projects.changed("sensors", now, then)
    if box is None:
        assert rules_of(network) == rules_of(NETWORK)
    else:
        with pytest.raises(BrokenInvariantError, match=f"reference knows: box {box}"):
            rules_of(network)


def test_a_short_run_produces_rows_for_every_output() -> None:
    """In twenty seconds; each row can be identified, and equals itself exactly."""
    inputs = measured(20)
    found = {str(one.box): [due.row for due in one.due(inputs, NETWORK)] for one in SENSORS.results}
    for result in SENSORS.results:
        rows = found[result.box]
        assert len(rows) > 3, result.name
        assert all(result.text(row) for row in rows)
        assert compared(result, inputs, NETWORK, rows, Millis(START_MS)).exact
    assert {row[2] for row in found["alarms"]} == {"hot", "cool"}
    last_ms = START_MS + 15_000
    assert any(isinstance(row[1], int) and row[1] < last_ms for row in found["silences"])


def test_records_refused_by_the_deduplication_are_missing_everywhere() -> None:
    """And no other."""
    inputs = measured(5)
    late = Refusal("once", inputs.given["readings"][-1].place, "", "late", "")
    without = Inputs(inputs.given, (late,))
    assert len(list(due_once(inputs, NETWORK))) == len(list(due_once(without, NETWORK))) + 1


def test_records_refused_by_one_side_are_missing_there() -> None:
    """A late calibration applies to no reading."""
    inputs = measured(5)
    late = tuple(
        Refusal("calibrated", given.place, "right", "late", "")
        for given in inputs.given["calibrations"]
    )
    assert due("statistics", inputs)
    assert due("statistics", Inputs(inputs.given, late)) == []
    assert due("silences", Inputs(inputs.given, late)) == due("silences", inputs)
