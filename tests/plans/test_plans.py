"""Golden files of plans: `NAME.txt` is the `explain` output of the network `NAME.yaml`."""

from pathlib import Path

import pytest

from pipeline.ids import ParticipantId
from pipeline.network.document import (
    SchemaText,
    code_references,
    load,
    read,
    schema_references,
)
from pipeline.planner.explain import explain
from pipeline.planner.planner import plan

HERE = Path(__file__).parent
PROJECTS = HERE.parent.parent / "pipeline" / "projects"

DOCUMENTS = {
    "tolls": PROJECTS / "tolls" / "network.yaml",
    **{path.stem: path for path in sorted(HERE.glob("*.yaml"))},
}


def _explained(document: Path) -> str:
    text = document.read_text(encoding="utf-8")
    schemas = {
        reference: SchemaText((document.parent / reference.value).read_text(), reference.value)
        for reference in schema_references(text, document.name)
    }
    code = {
        reference.box: (document.parent / reference.file).read_text()
        for reference in code_references(read(text, document.name))
    }
    return explain(plan(load(text, document.name, schemas, code), ParticipantId("local")))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_plan_equals_its_golden_file(name: str, *, rewrite: bool) -> None:
    """Any change of a plan or of its explanation is visible as a difference in review."""
    text = _explained(DOCUMENTS[name])
    golden = HERE / f"{name}.txt"
    if rewrite:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_every_golden_file_has_a_document() -> None:
    """No golden file is without its network."""
    assert {path.stem for path in HERE.glob("*.txt")} == set(DOCUMENTS)
