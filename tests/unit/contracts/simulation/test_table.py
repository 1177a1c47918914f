"""Figures of simulated runs as CSV and SVG."""

import random
import xml.etree.ElementTree as ET

from pipeline.contracts.simulation.run import run
from pipeline.contracts.simulation.scenario import Scenario
from pipeline.contracts.simulation.table import Key, Run, Worth, as_csv, plot, plot_of, rows, run_of

RUNS = [
    Run(Key(10, 0.9, 1), seed, 30.0, final, 30.0, moves, 0.5, seed, 20.0, 60.0, worth)
    for seed, final, moves, worth in (
        (1, 0.0, 2.0, Worth(0.0, 0.1, 0)),
        (2, 0.5, 4.0, Worth(-0.1, 0.3, 2)),
    )
] + [Run(Key(20, 0.9, 1, 0.1), 1, 30.0, 0.0, 30.0, 1.0, 0.0, 0, 20.0, 60.0)]


def test_rows_have_mean_and_worst_of_the_seeds() -> None:
    """Of what is left, and of the moves."""
    first, second = rows(RUNS)
    assert (first.key.contracts, first.final, first.worst) == (10, 0.25, 0.5)
    assert (first.moves, first.moves_most) == (3.0, 4.0)
    assert first.repeated == 2
    assert first.worth == Worth(-0.1, 0.2, 2)
    assert (second.key.contracts, second.worth) == (20, None)


def test_csv_has_a_line_for_each_run() -> None:
    """With its seed."""
    lines = as_csv(RUNS).splitlines()
    assert len(lines) == 4
    assert (
        lines[1]
        == "10,0.9,1,0,1,30.0000,0.0000,30.0000,2.0000,0.5000,1,20.00,60.0,0.00000,0.10000,0"
    )


def test_plots_are_svg() -> None:
    """Of a table, and of one run over time."""
    result = run(Scenario(participants=6, contracts=2), random.Random(1), sample_ms=10_000)
    assert run_of(Key(2, 0.9, 1), 1, result).worth is not None
    for text in (plot(RUNS), plot_of(result)):
        assert "polyline" in ET.tostring(ET.fromstring(text), "unicode")  # noqa: S314 - our own text
