import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from benchmarks.latency import (
    TAIL_MS,
    Fed,
    Measured,
    Seen,
    closed_by,
    stateless,
    summarise,
    windowed,
)
from benchmarks.sides import Run

BEGIN_MS = 1_767_225_600_000
LAST_MS = BEGIN_MS + 8_600
"""The last reading; windows that end by three and a half seconds are compared."""


def at(after_ms: int) -> datetime:
    """A time so many milliseconds after the beginning."""
    return datetime.fromtimestamp((BEGIN_MS + after_ms) / 1_000, UTC)


def fed() -> Fed:
    """A reading each 500 ms, in both of two partitions, the second 100 ms later."""
    times = [range(BEGIN_MS + late, LAST_MS + 1, 500) for late in (0, 100)]
    readings = tuple(
        {
            "sensor": "s",
            "site": "a",
            "celsius": 10.0,
            "humidity": 0.5,
            "at": datetime.fromtimestamp(at_ms / 1_000, UTC),
        }
        for at_ms in sorted(at_ms for part in times for at_ms in part)
    )
    return Fed(readings, tuple(tuple(part) for part in times))


class Results:
    """Results of a run, each received so many milliseconds after its event time."""

    def __init__(
        self, run: Run, rows: Sequence[Mapping[str, Any]], time: str, late_ms: float
    ) -> None:
        self.rows = {str(n).encode(): row for n, row in enumerate(rows)}
        self.seen = [
            Seen(0, row[time].timestamp() * 1_000 + late_ms, run.targets[0], value)
            for value, row in self.rows.items()
        ]

    def decode(self, value: bytes) -> Mapping[str, Any]:
        """The row of a value."""
        return self.rows[value]


def converted(run: Run, late_ms: float = 40) -> Results:
    """The stateless job's results of all readings."""
    rows = [{**reading, "fahrenheit": 50.0} for reading in fed().readings]
    return Results(run, rows, "at", late_ms)


def averages(run: Run, ends_s: Sequence[int], celsius: float = 10.0) -> Results:
    """Results of windows that end so many seconds after the beginning."""
    rows = [
        {"site": "a", "window_end": at(end * 1_000), "celsius": celsius, "readings": 4}
        for end in ends_s
    ]
    return Results(run, rows, "window_end", 250)


def test_stateless_results_are_timed_from_their_reading() -> None:
    """Those of the measured time."""
    run = Run("stateless", "flink", 0)
    results = converted(run)
    figures = stateless(run, results.seen, fed(), results.decode)
    (found,) = figures(BEGIN_MS + 4_000)
    timed = sum(at_ms >= BEGIN_MS + 4_000 for part in fed().times_ms for at_ms in part)
    assert (found.p50, found.p99, found.count) == (40, 40, timed)


def test_a_lost_stateless_result_ends_the_benchmark() -> None:
    """Before anything is timed."""
    run = Run("stateless", "flink", 0)
    results = converted(run)
    with pytest.raises(SystemExit, match="1 results are lost, 0 are wrong"):
        stateless(run, results.seen[1:], fed(), results.decode)


def test_windows_are_timed_from_their_end() -> None:
    """Since the closing reading, in the slowest partition, the second one's part is shorter."""
    run = Run("window", "flink", 0)
    results = averages(run, (1, 2, 3, 4))
    (found,) = windowed(run, results.seen, fed(), results.decode, None)(BEGIN_MS + 2_000)
    assert (found.what, found.p50, found.count, found.differing) == ("averages", 250, 2, 0)
    assert found.parts == (("since the reading that closes it", 150.0),)


@pytest.mark.parametrize(
    ("ends_s", "differing", "timed"), [((1, 2), 1, 2), ((1, 2, 3, 3), 1, 3), ((1,), 2, 1)]
)
def test_a_window_that_is_lost_or_comes_twice_is_counted(
    ends_s: Sequence[int], differing: int, timed: int
) -> None:
    """And not timed; an exact side's ends the benchmark."""
    exact, other = Run("window", "ours", 0), Run("window", "plain", 0)
    results = averages(other, ends_s)
    (found,) = windowed(other, results.seen, fed(), results.decode, None)(0)
    assert (found.differing, found.count) == (differing, timed)
    results = averages(exact, ends_s)
    with pytest.raises(SystemExit, match="windows are lost"):
        windowed(exact, results.seen, fed(), results.decode, None)(0)


def test_wrong_windows_are_not_timed() -> None:
    """If none is right, the latency is infinite."""
    run = Run("window", "plain", 0)
    results = averages(run, (1, 2, 3), 10.1)
    (found,) = windowed(run, results.seen, fed(), results.decode, None)(0)
    assert (found.p50, found.p99) == (math.inf, math.inf)
    assert (found.count, found.differing) == (0, 3)


def test_the_windows_at_the_end_are_not_compared() -> None:
    """No reading comes that would close them, nor those that wait for a grace."""
    last_ms = LAST_MS - 100
    assert fed().until_ms(Run("window", "ours", 0)) == last_ms - TAIL_MS
    assert fed().until_ms(Run("chain", "x", 0, grace_ms=200)) == last_ms - TAIL_MS - 600


@pytest.mark.parametrize(
    ("side", "grace_ms", "due_ms"),
    [("ours", 0, 1_100), ("plain", 0, 1_000), ("kafka-streams", 300, 1_500)],
)
def test_a_window_is_closed_by_the_slowest_or_the_fastest(
    side: str, grace_ms: int, due_ms: int
) -> None:
    """Partition, after the grace."""
    run = Run("window", side, 0, grace_ms=grace_ms)
    assert closed_by(fed(), run, BEGIN_MS + 1_000) == BEGIN_MS + due_ms


def test_a_summary_has_each_side_and_the_ratios_of_pairs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The rounds' ratios are 2 and 0.5 and 1."""
    rounds = [
        [Measured("plain", "averages", plain, 1, 1), Measured("ours", "averages", ours, 2, 1)]
        for plain, ours in ((10, 20), (40, 20), (30, 30))
    ]
    summarise("window", rounds, ("plain", "ours"))
    out = capsys.readouterr().out
    assert "plain   averages: p50 30 [10, 40] ms, p99 1 [1, 1] ms\n" in out
    assert "ours / plain, averages: p50 1.00 [0.50, 2.00], p99 2.00 [2.00, 2.00]" in out
