"""`medusa test` as a command: the tolls project, passing and failing tests."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pipeline.cli.main import run as medusa
from pipeline.errors import ExitCode

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

LATE = """
network: ../network.yaml
steps:
  - send: sightings
    key: car
    file: cars.jsonl
  - advance: 2026-01-01T00:01:00Z
  - send: sightings
    records:
      - {car: b, kind: car, road: A1, segment: 1, speed: 10, location: x,
         seen_at: "2026-01-01T00:00:30Z"}
  - dead_letters:
      - {stream: sightings, reason: late, record: {car: b}}
  - settle
  - expect: traffic
    order: exact
    records:
      - {segment: 1, cars: 2}
"""
EARLY = """
network: ../network.yaml
steps:
  - advance: 2026-01-01T00:01:00Z
  - send: sightings
    records:
      - {car: b, kind: car, road: A1, segment: 1, speed: 10, location: x,
         seen_at: "2026-01-01T00:00:30Z"}
  - dead_letters:
      - {stream: sightings, reason: late, record: {car: b}}
"""
"""Event time that moves before the first record."""
WRONG = """
network: ../network.yaml
steps:
  - send: sightings
    file: cars.jsonl
  - settle
  - expect: traffic
    records:
      - {segment: 1, cars: 3}
      - {segment: 9}
  - send: sightings
    records:
      - {car: b, kind: car, road: A1, segment: 1, speed: 10, location: x,
         seen_at: "2026-01-01T00:00:30Z"}
"""
CARS = """
{"car":"a","kind":"car","road":"A1","segment":1,"speed":20,"location":"x","seen_at":1767225610000}
{"car":"c","kind":"car","road":"A1","segment":1,"speed":20,"location":"x","seen_at":1767225620000}
"""
SMALL = """
network: small
streams:
  sightings:
    {topic: cars, schema: schemas/sighting.avsc, event_time: seen_at, lateness: 1s}
boxes:
  traffic:
    {aggregate: sightings, window: 1m, by: [segment], compute: {cars: count(DISTINCT car)}}
"""
IN_PYTHON = """
from medusa_streams.builder import NetworkBuilder, boxes

network = NetworkBuilder("small")
sightings = network.stream(
    "sightings", topic="cars", schema="schemas/sighting.avsc", event_time="seen_at"
)
moving = boxes.filter("moving", sightings, where="speed > 0")
network.output(boxes.map("plates", moving, select=["car", "seen_at"]), topic="plates")
"""
WITH_PYTEST = """
def test_moving(medusa_network):
    network = medusa_network("../moving.py", looked_at=["moving"])
    cars = [
        {"car": c, "kind": "car", "road": "A1", "segment": 1, "speed": s, "location": "x",
         "seen_at": "2026-01-01T00:00:10Z"}
        for c, s in (("a", 1.5), ("b", 0.0))
    ]
    network.send("sightings", cars)
    network.expect("moving", [{"car": "a", "speed": 1.5}])
"""
ROOT = Path(__file__).parents[3]
WITHIN_S = 280.0
PAGE = (ROOT / "docs" / "reference" / "testing.md").read_text(encoding="utf-8")


def example(language: str) -> str:
    """The first example of the reference in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def run_module(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a module of this source tree as a program in a folder."""
    return subprocess.run(
        [sys.executable, "-P", "-m", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The tolls project with the examples of the reference, and a second, small network."""
    assert medusa(("init", "tolls", "--into", str(tmp_path))) == ExitCode.DONE
    (tmp_path / "tests" / "page.yaml").write_text(example("yaml"), encoding="utf-8")
    (tmp_path / "tests" / "test_page.py").write_text(example("python"), encoding="utf-8")
    small = tmp_path / "small"
    (small / "tests").mkdir(parents=True)
    (small / "schemas").symlink_to(tmp_path / "schemas")
    (small / "network.yaml").write_text(SMALL, encoding="utf-8")
    (small / "moving.py").write_text(IN_PYTHON, encoding="utf-8")
    for name, text in (("late", LATE), ("early", EARLY), ("wrong", WRONG)):
        (small / "tests" / f"{name}.yaml").write_text(text, encoding="utf-8")
    (small / "tests" / "cars.jsonl").write_text(CARS.strip(), encoding="utf-8")
    (small / "tests" / "test_moving.py").write_text(WITH_PYTEST, encoding="utf-8")
    return tmp_path


def test_tests_that_pass_and_one_that_fails(project: Path) -> None:
    """The project's, the reference's and those with a late record pass; differences are printed."""
    called = run_module(project, "pipeline.cli.main", "test", "tests", "small/tests", "-o", "json")
    assert called.stdout, called.stderr
    report = json.loads(called.stdout)
    found = {test["name"]: test for test in report["tests"]}
    assert {name: test["passed"] for name, test in found.items()} == {
        "page": True,
        "tolls": True,
        "late": True,
        "early": True,
        "wrong": False,
    }, textwrap.indent(json.dumps(report, indent=1), "  ")
    assert (called.returncode, report["passed"], report["failed"]) == (1, 4, 1)
    traffic, dead_letters = found["wrong"]["failures"]
    assert traffic["place"] == "small/tests/wrong.yaml:7"
    assert [pair["fields"] for pair in traffic["different"]] == [["cars"]]
    assert traffic["different"][0]["came"]["cars"] == 2
    assert traffic["missing"][0]["expected"] == {"segment": 9}
    assert dead_letters["unexpected"][0]["reason"] == "late"


def test_the_fixture_tests_a_network_in_python(project: Path) -> None:
    """Pytest finds it where Medusa is installed; the inspected box has no topic."""
    tests = ("small/tests/test_moving.py", "tests/test_page.py")
    called = run_module(project, "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert called.returncode == 0, called.stdout + called.stderr
