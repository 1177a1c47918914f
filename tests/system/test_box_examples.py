"""The examples of boxes in the reference, run on the records that it shows with them."""

import shutil
from pathlib import Path

import pytest

from tests.box_examples import SCHEMAS, examples
from tests.system.tested import medusa_test

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


def write_project(folder: Path) -> list[str]:
    """A network and a test for each example; their names."""
    (folder / "tests").mkdir()
    for schema in SCHEMAS:
        shutil.copy(schema, folder)
    for example in examples():
        (folder / f"{example.name}.yaml").write_text(example.document, "utf-8")
        test = f"network: ../{example.name}.yaml\n{example.steps}"
        (folder / "tests" / f"{example.name}.yaml").write_text(test, "utf-8")
        if example.code:
            (folder / "alerts.py").write_text(example.code, "utf-8")
    return [example.name for example in examples()]


def test_every_box_makes_of_its_records_what_the_page_shows(tmp_path: Path) -> None:
    """With `medusa test`, as a reader would."""
    names = write_project(tmp_path)
    _, said = medusa_test(tmp_path)
    tests = said["tests"]
    assert [test for test in tests if not test["passed"]] == []
    assert sorted(test["name"] for test in tests) == sorted(names)
