import ast
from importlib import resources
from pathlib import Path

import pytest

from pipeline.deploy.documents import read_document
from pipeline.examples.catalogue import EXAMPLES
from pipeline.examples.example import DOCUMENT, PRODUCER, Example
from pipeline.ids import ParticipantId
from pipeline.network.drawing.picture import picture
from pipeline.network.drawing.text import LINES, as_text

PAGES = Path("docs/examples")
OURS = {"medusa_streams", "pipeline", "connectors", "brokers", "schemas"}
EACH = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


def project(example: Example) -> Path:
    """The files that `medusa init` copies."""
    return Path(str(resources.files("pipeline.projects") / example.name))


@EACH
def test_every_output_of_the_network_is_compared(example: Example) -> None:
    """The results of an example are the outputs of its network, with their columns."""
    network = read_document(project(example) / DOCUMENT, lambda _: None).network
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
    tree = ast.parse((project(example) / PRODUCER).read_text(encoding="utf-8"))
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
    network = read_document(project(example) / DOCUMENT, lambda _: None).network
    page = (PAGES / f"{example.name}.md").read_text(encoding="utf-8")
    assert as_text(picture(network, ParticipantId("local")), LINES) in page
    assert f"({example.name}.md)" in (PAGES / "README.md").read_text(encoding="utf-8")
    assert (project(example) / "README.md").is_file()
