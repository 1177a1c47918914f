"""`medusa contract`."""

import json
from pathlib import Path

import pytest

from pipeline.cli.main import run
from pipeline.errors import ExitCode

ARGUMENTS = ("contract", "simulate", "--participants", "8", "--contracts", "2,3", "--seed", "7")


def test_simulate_prints_a_row_for_each_combination(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And writes the figures of each run, and a plot."""
    csv, svg = tmp_path / "runs.csv", tmp_path / "runs.svg"
    files = ("--csv", str(csv), "--svg", str(svg), "--seeds", "2", "-o", "json")
    assert run([*ARGUMENTS, *files]) == ExitCode.DONE
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert [row["contracts"] for row in found["rows"]] == [2, 3]
    assert found["seed"] == 7
    assert len(csv.read_text("utf-8").splitlines()) == 5
    assert svg.read_text("utf-8").startswith("<svg")


def test_simulate_measures_what_taking_part_is_worth(capsys: pytest.CaptureFixture[str]) -> None:
    """With --sample; the seed is printed."""
    assert run([*ARGUMENTS, "--sample", "20"]) == ExitCode.DONE
    printed = capsys.readouterr().err
    assert "seed 7" in printed
    assert "worth of taking part" in printed


def test_a_wrong_list_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """With the option's name; an impossible graph is bad input."""
    assert run(["contract", "simulate", "--load", "much"]) == ExitCode.USAGE
    assert "--load" in capsys.readouterr().err
    assert run([*ARGUMENTS, "--participants", "2"]) == ExitCode.BAD_INPUT
