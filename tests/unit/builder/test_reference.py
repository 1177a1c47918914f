import re
import shutil
from pathlib import Path

import pytest

import pipeline
from pipeline.builder import NetworkBuilder, boxes
from pipeline.deploy.documents import read_document

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "builder.md").read_text(encoding="utf-8")
TOLLS = Path(pipeline.__file__).parent / "projects" / "tolls"


def block(info: str) -> str:
    """The first block of code of the page with this language."""
    found = re.search(rf"^```{info}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_is_the_toll_network(tmp_path: Path) -> None:
    """The page's network in Python and the project's in YAML are equal, field by field."""
    shutil.copytree(TOLLS / "schemas", tmp_path / "schemas")
    example = tmp_path / "network.py"
    example.write_text(block("python tolls"), encoding="utf-8")
    described = read_document(example, lambda _: None)
    written = read_document(TOLLS / "network.yaml", lambda _: None)
    assert described.network == written.network
    assert described.schemas == written.schemas


def test_the_loop_of_the_page_describes_boxes() -> None:
    """It runs without changes."""
    network = NetworkBuilder("n")
    sightings = network.stream("s", topic="t", schema="a", event_time="at")
    exec(block("python"), {"boxes": boxes, "sightings": sightings, "network": network})  # noqa: S102 - our own page
    assert "bikes: {filter: s, where: kind = 'bike'}" in network.yaml()


@pytest.mark.parametrize("kind", boxes.__all__)
def test_every_kind_of_box_is_on_the_page(kind: str) -> None:
    """With a link to its semantics."""
    assert f"| `boxes.{kind}(" in PAGE
    assert f"(network.md#{kind})" in PAGE
