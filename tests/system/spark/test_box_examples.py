"""Box examples of the reference documentation, run on the records shown with them."""

import shutil
from pathlib import Path

import pytest

from pipeline.spark.run.from_memory import MemoryQueries
from tests.box_examples import SCHEMAS, Example, examples
from tests.system.spark.support import failures

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_a_box_example_gives_the_documented_output(
    example: Example, queries: MemoryQueries, tmp_path: Path
) -> None:
    """Each box is run as a network of its own by a network test."""
    for schema in SCHEMAS:
        shutil.copy(schema, tmp_path)
    (tmp_path / "network.yaml").write_text(example.document, "utf-8")
    if example.code:
        (tmp_path / "alerts.py").write_text(example.code, "utf-8")
    (tmp_path / "tests").mkdir()
    test = f"network: ../network.yaml\n{example.steps}"
    (tmp_path / "tests" / f"{example.name}.yaml").write_text(test, "utf-8")
    assert failures(tmp_path, queries) == []
