"""The reference pages say what the code does."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.network.aggregate_functions import AGGREGATES
from pipeline.network.boxes.kinds import KINDS
from pipeline.network.functions import FUNCTIONS, REFUSED
from pipeline.network.model import Network
from pipeline.network.reference import function_tables

DOCS = Path(__file__).parents[3] / "docs" / "reference"

ORDERS = """\
network: shop
streams:
  orders: {topic: orders, schema: order.avsc, event_time: at}
boxes:
"""
ORDER = (Path(__file__).parents[2] / "plans" / "order.avsc").read_text()


def test_the_list_of_functions_is_the_table_in_force() -> None:
    """The page holds the generated text between its two marks."""
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
    """What a reader copies works."""
    assert load_text(text).boxes


@pytest.mark.parametrize("kind", ["flat_map", "route"])
def test_the_example_of_a_kind_loads(kind: str, load_text: Callable[..., Network]) -> None:
    """What stands below the heading of a kind works in a network with the stream that it reads."""
    page = (DOCS / "network.md").read_text().split(f"### `{kind}`\n")[1]
    (example,) = re.findall(r"```yaml\n(.*?)```", page.split("\n### ")[0], re.DOTALL)
    lines = "".join(f"  {line}\n" for line in example.splitlines())
    assert load_text(ORDERS + lines, {"order.avsc": ORDER}).boxes[0].kind == kind


def test_there_is_an_example() -> None:
    """So that the test above tests something."""
    assert sum(block.startswith("network:") for block in blocks()) == 1
