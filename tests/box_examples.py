"""Box examples of the reference: a box with input and output records."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.network.boxes.traits import KINDS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "network.md"
SCHEMAS = tuple((Path(__file__).parent / "data" / "box_examples").glob("*.avsc"))
"""Schemas of the examples' input; every field but the event time has a default."""

OF_SIGHTINGS = ("sightings", "cars", "trucks", "stopped", "departures", "arrivals")
STREAMS = (
    "streams:\n"
    "  orders: {topic: orders, schema: order.avsc, event_time: at}\n"
    "  readings: {topic: readings, schema: reading.avsc, event_time: at}\n"
    "  calibrations: {topic: calibrations, schema: calibration.avsc, event_time: since}\n"
    + "".join(
        f"  {name}: {{topic: {name}, schema: sighting.avsc, event_time: seen_at}}\n"
        for name in OF_SIGHTINGS
    )
)


@dataclass(frozen=True, slots=True)
class Example:
    """An example under the heading of a box kind.

    Attributes:
        name: the box's.
        box: its lines, as under `boxes`.
        steps: those of a test of it; empty if it has none.
        code: the file of its function; empty if it has none.
    """

    name: str
    box: str
    steps: str
    code: str

    @property
    def document(self) -> str:
        """A network of this box alone."""
        box = "".join(f"  {line}\n" for line in self.box.splitlines())
        return f"network: example\n{STREAMS}boxes:\n{box}"


def examples() -> tuple[Example, ...]:
    """All examples, in the order of the page."""
    sections = PAGE.read_text("utf-8").split("\n### ")[1:]
    kinds = (one for one in sections if one.startswith("`") and one.split("`")[1] in KINDS)
    of_kinds = (section.split("\n## ")[0] for section in kinds)
    return tuple(example for section in of_kinds for example in _examples_in(section))


def _examples_in(section: str) -> Iterator[Example]:
    blocks = re.findall(r"```(yaml|python)\n(.*?)```", section, re.DOTALL)
    boxes = [
        place
        for place, (language, text) in enumerate(blocks)
        if language == "yaml" and not text.startswith("steps:")
    ]
    for at, following in zip(boxes, [*boxes[1:], len(blocks)], strict=True):
        box = blocks[at][1]
        beside = dict(blocks[at + 1 : following])
        name = box.split(":", maxsplit=1)[0]
        yield Example(name, box, beside.get("yaml", ""), beside.get("python", ""))
