"""What an editor offers while a network is described: asked of jedi, which several editors ask."""

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


def offered(line: str) -> list[str]:
    """What completes a line that stands below the beginning of a network."""
    here = jedi.InterpreterEnvironment()
    script = jedi.Script(BEGUN + line, project=jedi.Project(ROOT), environment=here)
    return [completion.name for completion in script.complete()]


def options(function: object) -> set[str]:
    """The parameters that are given by name."""
    assert callable(function)
    parameters = inspect.signature(function).parameters.values()
    return {f"{one.name}=" for one in parameters if one.kind is one.KEYWORD_ONLY}


def test_the_kinds_of_boxes_are_offered() -> None:
    """Each of them, and nothing that is no kind."""
    assert [name for name in offered("boxes.") if not name.startswith("_")] == sorted(boxes.__all__)


@pytest.mark.parametrize("kind", boxes.__all__)
def test_the_options_of_a_box_are_offered(kind: str) -> None:
    """Behind what is given by place."""
    given = '"b", sightings, moving, ' if kind in ("join", "as_of") else '"b", moving, '
    assert options(getattr(boxes, kind)) <= {*offered(f"boxes.{kind}({given}")}


def test_streams_and_what_a_network_can_do_are_offered() -> None:
    """By the names of the variables, as of any other object."""
    assert {"sightings", "moving"} <= {*offered('boxes.map("b", ')}
    assert {"stream", "output"} <= {*offered("network.")}
    assert options(NetworkBuilder.stream) <= {*offered('network.stream("s", ')}
