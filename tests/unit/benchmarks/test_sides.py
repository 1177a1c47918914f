import argparse
import doctest

import pytest
import yaml

from benchmarks import sides
from benchmarks.readings import HERE
from benchmarks.sides import DEFAULT_SIDES, JOBS, OURS, SIDES, Run, add_options, against, runs


def parsed(*arguments: str) -> argparse.Namespace:
    """The options of a command line."""
    parser = argparse.ArgumentParser()
    add_options(parser, 3)
    return parser.parse_args(arguments)


def test_examples_in_docstrings_hold() -> None:
    """The doctests of the module pass."""
    assert doctest.testmod(sides).failed == 0


@pytest.mark.parametrize("job", JOBS)
def test_a_document_has_the_names_of_its_run(job: str) -> None:
    """Network, input and outputs; nothing else changes."""
    run = Run(job, OURS, 3, "elsewhere")
    text = (HERE / f"{job}.yaml").read_text(encoding="utf-8")
    before, after = yaml.safe_load(text), yaml.safe_load(run.document(text))
    assert after["network"] == run.network != before["network"]
    assert after["streams"]["readings"]["topic"] == "elsewhere"
    assert tuple(output["topic"] for output in after["outputs"].values()) == run.targets
    assert after["boxes"] == before["boxes"]
    assert run.last_box in after["outputs"]


def test_runs_share_no_topic() -> None:
    """Of any job, side and round."""
    targets = [
        target
        for job in JOBS
        for side in SIDES
        for turn in range(3)
        for target in Run(job, side, turn).targets
    ]
    assert len(set(targets)) == len(targets)


def test_the_order_of_sides_is_turned_each_round() -> None:
    """So that no side is always the first after a change of the machine."""
    options = parsed("--sides", "plain", "flink", "ours")
    first, second = ([run.side for run in runs("window", turn, options)] for turn in (0, 1))
    assert first == ["plain", "flink", "ours"]
    assert second == first[::-1]


def test_only_kafka_streams_has_a_grace() -> None:
    """The others' event time follows each partition, or has no such option."""
    options = parsed("--sides", *SIDES, "--grace-ms", "70")
    found = {run.side: run.grace_ms for run in runs("window", 0, options)}
    assert found.pop("kafka-streams") == 70
    assert set(found.values()) == {0}


def test_ratios_are_of_ours_to_each_other_side() -> None:
    """Without ours there are none."""
    assert against(("plain", "ours", "flink")) == ("plain", "flink")
    assert against(("plain", "flink")) == ()
    assert tuple(parsed().sides) == DEFAULT_SIDES
