"""Figures of simulated runs as CSV and SVG."""

import random
import xml.etree.ElementTree as ET

from pipeline.contracts.simulation.run import run
from pipeline.contracts.simulation.scenario import Scenario
from pipeline.contracts.simulation.table import Run, as_csv, plot, plot_of, rows, run_of

RUNS = [
    Run(10, 0.9, 1, seed, 30.0, final, moves, 20.0, 60.0)
    for seed, final, moves in ((1, 0.0, 2.0), (2, 0.5, 4.0))
] + [Run(20, 0.9, 1, 1, 30.0, 0.0, 1.0, 20.0, 60.0)]


def test_rows_have_mean_and_worst_of_the_seeds() -> None:
    """Of what is left, and of the moves."""
    first, second = rows(RUNS)
    assert (first.contracts, first.final, first.worst) == (10, 0.25, 0.5)
    assert (first.moves, first.moves_most) == (3.0, 4.0)
    assert second.contracts == 20


def test_csv_has_a_line_for_each_run() -> None:
    """With its seed."""
    lines = as_csv(RUNS).splitlines()
    assert len(lines) == 4
    assert lines[1] == "10,0.9,1,1,30.0000,0.0000,2.0000,20.00,60.0"


def test_plots_are_svg() -> None:
    """Of a table, and of one run over time."""
    result = run(Scenario(participants=6, contracts=2), random.Random(1), sample_ms=10_000)
    assert run_of((2, 0.9, 1, 1), result).final == result.final
    for text in (plot(RUNS), plot_of(result)):
        assert "polyline" in ET.tostring(ET.fromstring(text), "unicode")  # noqa: S314 - our own text
