from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import RetryError
from pipeline.testing import session
from tests.unit.testing.test_load import GOOD
from tests.unit.testing.twins import DOCUMENT, SCHEMA, Toys

Caller = Callable[..., Any]


@pytest.fixture
def project(medusa: Caller, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one test; its queries run on a double of Spark."""
    del medusa

    @contextmanager
    def toys(*_: object) -> Iterator[Toys]:
        yield Toys()

    monkeypatch.setattr(session, "open_tests", toys)
    Path("cars.yaml").write_text(DOCUMENT, encoding="utf-8")
    Path("network.yaml").write_text(DOCUMENT, encoding="utf-8")
    Path("sighting.avsc").write_text(SCHEMA, encoding="utf-8")
    Path("medusa.yaml").touch()
    Path("tests").mkdir()
    Path("tests/good.yaml").write_text(GOOD, encoding="utf-8")
    return Path("tests")


@pytest.mark.usefixtures("project")
def test_all_tests_of_a_project_run(medusa: Caller) -> None:
    """Durations are notes; the exit code is 0."""
    called = medusa("test")
    assert called.code == 0, called.err
    assert called.out == "1 test passed, 0 failed\n"
    assert "ok      good" in called.err


def test_differences_are_printed_and_end_with_1(medusa: Caller, project: Path) -> None:
    """As notes, or as data with -o json."""
    bad = GOOD.replace("n: 2", "n: 3").replace("network: ../cars.yaml", "")
    (project / "bad.yaml").write_text(bad, encoding="utf-8")
    called = medusa("test", "-o", "json")
    assert called.code == 1
    assert "FAILED  bad" in called.err
    assert "    n: expected 3, came 2" in called.err
    assert (called.data["passed"], called.data["failed"]) == (1, 1)
    (failure,) = called.data["tests"][0]["failures"]
    assert failure["stream"] == "counts"
    assert failure["different"][0]["came"]["n"] == 2
    assert medusa("test", "tests/good.yaml").code == 0


def test_a_lane_that_fails_fails_its_test(
    medusa: Caller, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the error's message; the command itself does not fail."""
    del project

    def fail(*_: object, **__: object) -> None:
        raise RetryError("the query failed: it could not")

    monkeypatch.setattr(Toys, "__call__", fail)
    called = medusa("test", "-o", "json")
    assert called.code == 1
    assert "it could not" in called.err
    assert called.data["tests"][0]["error"].startswith("the query failed")


def test_mistakes_are_printed_before_anything_runs(medusa: Caller, project: Path) -> None:
    """All mistakes of all tests, with exit code 65."""
    (project / "x.yaml").write_text("steps: [now]\n", encoding="utf-8")
    (project / "y.yaml").write_text("stps: []\n", encoding="utf-8")
    called = medusa("test")
    assert called.code == 65
    assert "tests/x.yaml:1: a step is settle" in called.err
    assert "tests/y.yaml:1: the test has no key stps" in called.err
    assert "ok" not in called.err
    assert medusa("test", "tests/z.yaml").code == 65
