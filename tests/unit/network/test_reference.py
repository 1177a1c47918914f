"""Consistency of the reference pages with the code."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.network.aggregate_functions import AGGREGATES
from pipeline.network.boxes.traits import KINDS
from pipeline.network.functions import FUNCTIONS, REFUSED, SECTIONS
from pipeline.network.model import Network
from tests.box_examples import SCHEMAS, Example, examples

DOCS = Path(__file__).parents[3] / "docs" / "reference"


def function_tables() -> str:
    """Every allowed function by section: its result and failures; and the refused ones."""
    parts = []
    for title, table in SECTIONS:
        rows = [
            _row(f"`{f.signature}`" + _also(f.also), f.result, f.meaning, f.fails) for f in table
        ]
        head = [
            f"### {title}",
            "",
            _row("function", "result", "meaning", "fails when"),
            "|---" * 4 + "|",
        ]
        parts.append("\n".join([*head, *rows]))
    refused = [_row(f"`{name}`", reason, instead) for name, (reason, instead) in REFUSED.items()]
    head = ["### Refused", "", _row("function", "it", "instead"), "|---" * 3 + "|"]
    parts.append("\n".join([*head, *refused]))
    return "\n" + "\n\n".join(parts) + "\n\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _also(names: tuple[str, ...]) -> str:
    return "" if not names else ", also " + ", ".join(f"`{name}`" for name in names)


def test_the_list_of_functions_is_the_table_of_the_code() -> None:
    """The page contains the generated text between its two marks."""
    page = (DOCS / "expressions.md").read_text()
    found = re.search(r"<!-- functions: begin -->\n(.*)<!-- functions: end -->", page, re.DOTALL)
    assert found is not None
    assert found[1] == function_tables()


def test_every_aggregate_function_is_documented() -> None:
    """By name, in the part that is written by hand."""
    page = (DOCS / "expressions.md").read_text().split("## Functions")[0]
    assert [name for name in AGGREGATES if f"`{name}" not in page] == []


def test_every_kind_of_box_is_documented() -> None:
    """Each has its heading."""
    page = (DOCS / "network.md").read_text()
    assert [kind for kind in KINDS if f"### `{kind}`" not in page] == []


def test_no_function_is_both_allowed_and_refused() -> None:
    """The three tables have no name in common."""
    assert set(FUNCTIONS) & set(REFUSED) == set()
    assert set(AGGREGATES) & (set(FUNCTIONS) | set(REFUSED)) == set()


def blocks() -> list[str]:
    """The YAML examples of the reference."""
    return re.findall(r"```yaml\n(.*?)```", (DOCS / "network.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("text", [b for b in blocks() if b.startswith("network:")])
def test_the_example_loads(text: str, load_text: Callable[[str], Network]) -> None:
    """A copied example is valid."""
    assert load_text(text).boxes


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_example_of_a_kind_loads(example: Example, load_text: Callable[..., Network]) -> None:
    """The example below its heading is valid in a network with the streams that it reads."""
    boxes = load_text(example.document, {file.name: file.read_text() for file in SCHEMAS}).boxes
    assert boxes[0].name == example.name


def test_every_example_of_a_kind_has_records() -> None:
    """They illustrate it; tests/system/spark/test_box_examples.py runs them."""
    assert [example.name for example in examples() if "expect:" not in example.steps] == []


def test_every_kind_has_an_example() -> None:
    """At least one of them."""
    kinds = {kind for kind in KINDS for it in examples() if re.search(rf"\b{kind}: ", it.box)}
    assert kinds == set(KINDS)


def test_there_is_an_example() -> None:
    """So that the test above is not empty."""
    assert sum(block.startswith("network:") for block in blocks()) == 1
