"""Completions of an editor in a network description, by jedi, which several editors use."""

import inspect
from pathlib import Path

import jedi  # type: ignore[import-untyped] # it has no types
import pytest

from pipeline.builder import NetworkBuilder, boxes

ROOT = Path(__file__).parents[3]
BEGUN = """
from medusa_streams.builder import NetworkBuilder, boxes
network = NetworkBuilder("cars")
sightings = network.stream("sightings", topic="t", schema="s.avsc", event_time="seen_at")
moving = boxes.filter("moving", sightings, where="speed > 0")
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jedi.settings, "cache_directory", str(tmp_path))


def completions(line: str) -> list[str]:
    """The completions of a line after the beginning of a network."""
    here = jedi.InterpreterEnvironment()
    script = jedi.Script(BEGUN + line, project=jedi.Project(ROOT), environment=here)
    return [completion.name for completion in script.complete()]


def options(function: object) -> set[str]:
    """The keyword parameters."""
    assert callable(function)
    parameters = inspect.signature(function).parameters.values()
    return {f"{one.name}=" for one in parameters if one.kind is one.KEYWORD_ONLY}


def test_the_kinds_of_boxes_are_completed() -> None:
    """All of them, and nothing else."""
    assert [name for name in completions("boxes.") if not name.startswith("_")] == sorted(
        boxes.__all__
    )


@pytest.mark.parametrize("kind", boxes.__all__)
def test_the_options_of_a_box_are_completed(kind: str) -> None:
    """After its positional parameters."""
    given = '"b", sightings, moving, ' if kind in ("join", "as_of") else '"b", moving, '
    assert options(getattr(boxes, kind)) <= {*completions(f"boxes.{kind}({given}")}


def test_streams_and_methods_of_a_network_are_completed() -> None:
    """By the names of the variables, as of any other object."""
    assert {"sightings", "moving"} <= {*completions('boxes.map("b", ')}
    assert {"stream", "output"} <= {*completions("network.")}
    assert options(NetworkBuilder.stream) <= {*completions('network.stream("s", ')}
