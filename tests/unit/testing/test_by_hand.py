import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.errors import DocumentError, UsageError
from pipeline.testing.by_hand import TestedNetwork
from tests.unit.testing.twins import DOCUMENT, SCHEMA, Toys

FIRST = {"car": "a", "at": "2026-01-01T00:00:01Z"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A network's document."""
    (tmp_path / "sighting.avsc").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "cars.yaml").write_text(DOCUMENT, encoding="utf-8")
    return tmp_path / "cars.yaml"


@pytest.fixture
def cars(file: Path) -> Iterator[TestedNetwork]:
    """The network, running."""
    made = TestedNetwork(file, "test_cars", Toys(), looked_at=["counts"])
    yield made
    made.close()


def test_the_steps_are_calls(cars: TestedNetwork) -> None:
    """Times as texts or as Python types; results are JSON."""
    cars.send("sightings", [FIRST, FIRST], key="car", timestamp="2026-01-01T00:00:01Z")
    cars.advance(datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    cars.expect("counts", [{"car": "a", "n": 2}], in_order=True)
    assert [row["car"] for row in cars.take("moving")] == ["a", "a"]
    cars.send(
        "sightings",
        [{"car": "b", "speed": Decimal("1.5"), "at": datetime(2026, 1, 1, 0, 1, 30, tzinfo=UTC)}],
    )
    cars.wait("1m")
    cars.expect("counts", [{"car": "b"}])
    cars.settle()
    cars.expect("counts", [])
    cars.expect("moving", [{"car": "b", "speed": 1.5}])


def test_differences_fail_the_assertion(cars: TestedNetwork) -> None:
    """With the messages of `medusa test`."""
    cars.send("sightings", [FIRST])
    with pytest.raises(AssertionError, match=r"speed: expected 2\.0, came 1\.0"):
        cars.expect("moving", [{"car": "a", "speed": 2.0}])


def test_dead_letters_are_checked_too(cars: TestedNetwork) -> None:
    """Those that were read are not reported again."""
    cars.advance("2026-01-01T00:01:00Z")
    cars.send("sightings", [FIRST])
    with pytest.raises(AssertionError, match="late"):
        cars.expect_dead_letters([])
    cars.expect_dead_letters([])
    cars.send("sightings", [FIRST])
    assert cars.take_dead_letters()[0]["reason"] == "late"


def test_errors_name_the_test(cars: TestedNetwork) -> None:
    """And the cause."""
    with pytest.raises(DocumentError) as caught:
        cars.send("sightings", [{"car": 1}])
    assert str(caught.value.problems[0]).startswith("test_cars: car: 1 is not a value of")
    with pytest.raises(UsageError, match="not a duration"):
        cars.wait("long")
    with pytest.raises(DocumentError):
        cars.send("sightings", [{"car": object(), "at": 0}])


def test_unknown_names_are_reported_with_the_existing_ones(file: Path, cars: TestedNetwork) -> None:
    """In every call with a stream or a box."""
    with pytest.raises(UsageError, match="there is no busi") as caught:
        cars.take("busi")
    assert caught.value.hint.startswith("there is: busy")
    with pytest.raises(UsageError, match="there is no count"):
        TestedNetwork(file, "t", Toys(), looked_at=["count"])
    with pytest.raises(UsageError, match="there is no moving"):
        TestedNetwork(file, "t", Toys(), partitions={"moving": 2})


def test_several_partitions_are_declared_at_the_start(file: Path) -> None:
    """They block event time until they have records, as in Kafka."""
    cars = TestedNetwork(file, "t", Toys(), looked_at=["counts"], partitions={"sightings": 2})
    cars.send("sightings", [FIRST, {"car": "b", "at": "2026-01-01T00:02:00Z"}], partition=1)
    cars.expect("counts", [])
    cars.send("sightings", [{"car": "c", "at": "2026-01-01T00:02:00Z"}], partition=0)
    cars.expect("counts", [{"car": "a", "n": 1}])
    cars.close()


def test_a_run_without_these_fixtures_imports_nothing_of_ours() -> None:
    """The plugin is loaded in every run of pytest, and costs nothing."""
    program = (
        "import sys, medusa_streams.pytest_plugin\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('pyspark', 'pyarrow', 'schemas')"
        " or m.startswith('pipeline.') and not m.startswith('pipeline.testing')])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout == "[]\n"
