import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka.schema_registry import SchemaRegistryError
from httpx import ConnectError

from connectors.generators.cars import DELAY_MAX_MS, TICK_MS, Sighting, Traffic
from pipeline.projects.tolls import producer
from pipeline.projects.tolls.producer import parse

START_MS = 1_700_000_000_000


def test_sightings_have_the_fields_of_the_schema() -> None:
    """The schema that comes with the project has exactly the fields that are sent."""
    path = Path(producer.__file__).parent / "schemas" / "sighting.avsc"
    schema = json.loads(path.read_text(encoding="utf-8"))
    sighting = next(Traffic(1, START_MS).sightings(START_MS, 1))
    assert {field["name"] for field in schema["fields"]} == set(asdict(sighting))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--rate", "0"], "above 0"),
        (["--seconds", "100000"], "up to 86400"),
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


def test_a_start_time_is_parsed_with_its_zone() -> None:
    """`--start-at` becomes ms since 1970 UTC."""
    assert parse(["--start-at", "1970-01-01T01:00:01+01:00"]).start_at_ms == 1_000


class SetClock:
    """Two clocks: time passes only in sleep, and the wall clock jumps with each of them."""

    def __init__(self) -> None:
        self.passed_s = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        """Seconds that have passed."""
        return self.passed_s

    def time_ns(self) -> int:
        """A wall clock that is two hours ahead, then five hours behind, and so on."""
        ahead_s = (0, 7_200, -18_000)[len(self.slept) % 3]
        return int((1_700_000_000 + self.passed_s + ahead_s) * 1e9)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.slept.append(seconds)
        self.passed_s += seconds


class Taken:
    """Takes the sent records."""

    failure = None

    def __init__(self) -> None:
        self.times: list[int] = []

    def send(self, sighting: Sighting) -> None:
        """Keep its time."""
        self.times.append(sighting.seen_at)

    def poll(self) -> None:
        """No record is pending."""


def test_a_clock_change_neither_stops_the_feed_nor_shifts_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It continues in its steps, and event time with it."""
    clock, taken = SetClock(), Taken()
    monkeypatch.setattr(producer, "time", clock)
    options = parse(["--seconds", "3", "--rate", "50"])
    stop = cast("producer.Stop", SimpleNamespace(asked=False))
    producer.run(options, cast("producer.Feed", taken), stop)
    assert max(clock.slept) <= TICK_MS / 1_000
    assert sum(clock.slept) == pytest.approx(3)
    start_ms = 1_700_000_000_000
    assert start_ms - DELAY_MAX_MS <= min(taken.times)
    assert max(taken.times) <= start_ms + 3_000


@pytest.mark.parametrize(
    "error", [ConnectError("refused"), SchemaRegistryError(500, 50001, "no store")]
)
def test_an_unreachable_registry_is_reported_in_two_lines(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address, and how to name another; no stack trace."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(producer, "Feed", fail)
    assert producer.main(["--registry", "http://127.0.0.1:1"]) == 1
    reported = capsys.readouterr().err.splitlines()
    assert reported[0].startswith("producer: schema registry http://127.0.0.1:1: ")
    assert "SCHEMA_REGISTRY_URL" in reported[1]


_WARNS = """\
import importlib.abc, sys, warnings
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "confluent_kafka.schema_registry":
            warnings.warn("another library", FutureWarning)
sys.meta_path.insert(0, Finder())
"""


def test_only_the_known_warning_of_a_library_is_hidden(tmp_path: Path) -> None:
    """Authlib's deprecation warning is not for users of the producer; others are displayed."""
    (tmp_path / "sitecustomize.py").write_text(_WARNS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "default", producer.__file__, "--help"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path.cwd()}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "FutureWarning: another library" in done.stderr
    assert "authlib" not in done.stderr.lower()
