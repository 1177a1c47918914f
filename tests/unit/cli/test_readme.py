"""The first screen of the README; tests/system/commands runs its commands."""

import json
import re
import shlex
from pathlib import Path

import pytest

import pipeline
from pipeline.cli.main import COMMANDS
from pipeline.deploy.documents import Document, read_document
from tests.tidy.tree import text_of

PAGE = text_of(Path("README.md"))
SCREEN_LINES = 50
TOLLS = Path(pipeline.__file__).parent / "projects" / "tolls"


def block(info: str) -> list[str]:
    """The lines of the first block with this info string."""
    found = re.search(rf"^```{info}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1].splitlines()


@pytest.fixture
def document(tmp_path: Path) -> Document:
    """The network of the page, in a project as `medusa init tolls` writes it."""
    (tmp_path / "schemas").mkdir()
    for file in (TOLLS / "schemas").iterdir():
        (tmp_path / "schemas" / file.name).write_bytes(file.read_bytes())
    file = tmp_path / "speeds.yaml"
    file.write_text("\n".join(block("yaml speeds.yaml")), encoding="utf-8")
    return read_document(file, lambda _: None)


def test_the_first_screen_installs_describes_runs_and_shows() -> None:
    """One line, ten lines, a few commands, their results; and the two commands of a clone."""
    assert block("sh") == ["pip install ."]
    assert len(block("yaml speeds.yaml")) == 10
    assert PAGE[: PAGE.index(block("text")[-1])].count("\n") < SCREEN_LINES
    assert "make demo\nmake test\n" in PAGE


def test_its_commands_exist() -> None:
    """Each verb is one of `medusa`; the producer is that of `init`."""
    words = [shlex.split(line, comments=True) for line in block("sh run")]
    assert {verb for program, verb, *_ in words if program == "medusa"} <= COMMANDS.keys()
    assert {script for program, script, *_ in words if program == "python"} == {"producer.py"}


def test_its_results_have_the_schema_of_its_network(document: Document) -> None:
    """Every column, and the end of the window as the time."""
    (box,) = document.network.boxes
    columns = [column.name for column in box.columns]
    for line in block("text"):
        value = json.loads(line.rpartition("  ")[2])
        assert [*value] == columns
        assert value["window_start"][:-5] < value["window_end"][:-5]
        assert value["window_end"] == line.partition("  ")[0]
