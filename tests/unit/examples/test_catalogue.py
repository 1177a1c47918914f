import ast
from pathlib import Path

import pytest

from pipeline.examples.catalogue import EXAMPLES
from pipeline.examples.example import PRODUCER, Example
from pipeline.ids import ParticipantId
from pipeline.network.drawing.picture import picture
from pipeline.network.drawing.text import LINES, as_text
from tests.unit.examples import projects

PAGES = Path("docs/examples")
OURS = {"medusa_streams", "pipeline", "connectors", "brokers", "schemas"}
EACH = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


@EACH
def test_every_output_of_the_network_is_compared(example: Example) -> None:
    """The results of an example are the outputs of its network, with their columns."""
    network = projects.network(example.name)
    assert network.name == example.name
    written = {output.stream for output in network.outputs}
    assert {str(result.box) for result in example.results} == written
    assert example.topic in {output.topic for output in network.outputs}
    columns = {box.name: tuple(c.name for c in box.columns) for box in network.boxes}
    for result in example.results:
        assert sorted(result.columns) == sorted(columns[result.box])
        assert set(result.identity) < set(result.columns)


@EACH
def test_the_producer_takes_only_its_traffic_from_medusa(example: Example) -> None:
    """Beyond that it represents an existing program of a user."""
    tree = ast.parse((projects.folder(example.name) / PRODUCER).read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert "confluent_kafka" in imported
    ours = {name for name in imported if name.partition(".")[0] in OURS}
    assert ours == {"medusa_streams.generators"}


@EACH
def test_every_example_has_a_page_with_its_diagram(example: Example) -> None:
    """The page contains the output of `medusa show`, and the overview links it."""
    network = projects.network(example.name)
    page = (PAGES / f"{example.name}.md").read_text(encoding="utf-8")
    assert as_text(picture(network, ParticipantId("local")), LINES) in page
    assert f"({example.name}.md)" in (PAGES / "README.md").read_text(encoding="utf-8")
    assert (projects.folder(example.name) / "README.md").is_file()
