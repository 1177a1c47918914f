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
    """With --sample: to whom it is worth least, and how many are worse off; the seed is printed."""
    assert run([*ARGUMENTS, "--sample", "20"]) == ExitCode.DONE
    printed = capsys.readouterr()
    assert "seed 7" in printed.err
    assert "LEAST WORTH" in printed.out


def test_simulate_draws_one_run_over_time(tmp_path: Path) -> None:
    """With --sample, and one combination."""
    svg = tmp_path / "run.svg"
    one = ("contract", "simulate", "--participants", "8", "--contracts", "2", "--seed", "7")
    assert run([*one, "--sample", "20", "--svg", str(svg)]) == ExitCode.DONE
    assert "each its own tasks" in svg.read_text("utf-8")


def test_demo_explains_each_decision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And draws the loads over time, with a mark for each thing that happens."""
    svg = tmp_path / "loads.svg"
    assert run(["contract", "demo", "--svg", str(svg)]) == ExitCode.DONE
    printed = capsys.readouterr().out
    assert "1. 60 s: the load of alice doubles" in printed
    assert "others: carol for" in printed
    assert svg.read_text("utf-8").count("stroke-dasharray") == 5
    assert run(["contract", "demo", "-o", "json"]) == ExitCode.DONE
    chapters = json.loads(capsys.readouterr().out)["chapters"]
    assert [one["number"] for one in chapters] == list(range(6))


def test_a_wrong_list_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """With the option's name; an impossible graph is bad input."""
    assert run(["contract", "simulate", "--load", "much"]) == ExitCode.USAGE
    assert "--load" in capsys.readouterr().err
    assert run([*ARGUMENTS, "--participants", "2"]) == ExitCode.BAD_INPUT
