"""The reference pages say what the code does."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pipeline.network.aggregate_functions import AGGREGATES
from pipeline.network.boxes.kinds import KINDS
from pipeline.network.functions import FUNCTIONS, REFUSED
from pipeline.network.model import Network
from pipeline.network.reference import function_tables

DOCS = Path(__file__).parents[3] / "docs" / "reference"

INSTANT = {"type": "long", "logicalType": "timestamp-millis"}
ROWS: Mapping[str, Mapping[str, object]] = {
    "sighting": {
        "car": "string", "road": "string", "location": "string",
        "segment": "int", "speed": "double", "length": "double", "seen_at": INSTANT,
    },
    "reading": {
        "device": "string", "sensor": "string", "number": "long", "value": "double", "at": INSTANT
    },
    "calibration": {"device": "string", "gain": "double", "offset": "double", "since": INSTANT},
}  # fmt: skip
"""The columns that examples read."""
OF_SIGHTINGS = ("sightings", "cars", "trucks", "stopped", "departures", "arrivals")
STREAMS = (
    "network: shop\nstreams:\n"
    "  orders: {topic: orders, schema: order.avsc, event_time: at}\n"
    "  readings: {topic: readings, schema: reading.avsc, event_time: at}\n"
    "  calibrations: {topic: calibrations, schema: calibration.avsc, event_time: since}\n"
    + "".join(
        f"  {name}: {{topic: {name}, schema: sighting.avsc, event_time: seen_at}}\n"
        for name in OF_SIGHTINGS
    )
    + "boxes:\n"
)
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


def schema(name: str) -> str:
    """The schema of a kind of rows."""
    fields = [{"name": column, "type": of} for column, of in ROWS[name].items()]
    return json.dumps({"type": "record", "name": name, "fields": fields})


def examples() -> list[str]:
    """What stands below the headings of kinds of boxes."""
    sections = (DOCS / "network.md").read_text().split("\n### ")[1:]
    of_kinds = (section for section in sections if section.split("`")[1] in KINDS)
    return [
        block
        for section in of_kinds
        for block in re.findall(r"```yaml\n(.*?)```", section.split("\n## ")[0], re.DOTALL)
    ]


@pytest.mark.parametrize("text", examples(), ids=lambda text: text.split(":")[0])
def test_the_example_of_a_kind_loads(text: str, load_text: Callable[..., Network]) -> None:
    """What stands below its heading works in a network with the streams that it reads."""
    lines = "".join(f"  {line}\n" for line in text.splitlines())
    files = {"order.avsc": ORDER, **{f"{name}.avsc": schema(name) for name in ROWS}}
    boxes = load_text(STREAMS + lines, files).boxes
    assert boxes[0].name == text.split(":", maxsplit=1)[0]


def test_there_is_an_example() -> None:
    """So that the test above tests something."""
    assert sum(block.startswith("network:") for block in blocks()) == 1
