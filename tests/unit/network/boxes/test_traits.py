"""The table of traits, and the modules of every layer for each kind of box."""

import importlib
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from pipeline.builder import boxes as builder_boxes
from pipeline.errors import BrokenInvariantError
from pipeline.ids import BoxName, StreamName
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.shape import Stateless, stateless
from pipeline.network.boxes.traits import (
    KINDS,
    TRAITS,
    Keeps,
    Lateness,
    Provenance,
    Traits,
    traits,
)
from pipeline.network.model import Expression
from pipeline.network.types import Scalar
from pipeline.planner.boxes.catalogue import KINDS as WORDED
from pipeline.spark.query.boxes.catalogue import STATEFUL, STATELESS

ROOT = Path(__file__).parents[4]
TRUE = Expression("true", "true", None, Scalar.BOOLEAN, nullable=False, columns=frozenset())


def places() -> list[str]:
    """The places for a kind of box in the architecture page."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    found = re.search(r"^- \*\*A kind of box\*\*: (.*?)(?=^- \*\*)", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    return re.findall(r"`([^`]+)`", found[1])


def missing(folder: str, kinds: Iterable[str]) -> list[str]:
    """The kinds without a file in a folder."""
    return [kind for kind in kinds if not (ROOT / "pipeline" / folder / f"{kind}.py").is_file()]


def test_the_map_names_a_folder_for_each_layer_and_the_table() -> None:
    """A new kind needs only these."""
    assert places() == [
        "network/boxes/",
        "builder/boxes/",
        "planner/boxes/",
        "spark/query/boxes/",
        "network/boxes/traits.py",
    ]


@pytest.mark.parametrize("folder", [place for place in places() if place.endswith("/")])
def test_every_kind_has_a_file_in_each_layer(folder: str) -> None:
    """A kind that depends on another one is in its file: branches are in that of routes."""
    assert missing(folder, KINDS) == []
    assert set(TRAITS) - set(KINDS) == {"branch"}
    assert missing(folder, ["sort"]) == ["sort"]


def test_every_kind_is_in_the_catalogue_of_each_layer() -> None:
    """A row without an entry there, or an entry without a row, is an incomplete kind."""
    assert set(builder_boxes.__all__) == set(KINDS)
    assert set(WORDED) == set(TRAITS)
    assert set(STATELESS) == {kind for kind, row in TRAITS.items() if not row.stateful}
    assert set(STATEFUL) == {kind for kind, row in TRAITS.items() if row.stateful}


def test_every_kind_of_the_document_has_a_row() -> None:
    """A box is looked up by the name in its class."""
    modules = [importlib.import_module(f"pipeline.network.boxes.{kind}") for kind in KINDS]
    classes = (one for module in modules for one in vars(module).values())
    assert {one.kind for one in classes if isinstance(getattr(one, "kind", None), str)} == set(
        TRAITS
    )


@pytest.mark.parametrize("row", TRAITS.values(), ids=TRAITS)
def test_a_stateless_kind_has_no_lateness_and_no_wait(row: Traits) -> None:
    """And vice versa; its rows are each computed from one."""
    nothing = row.keeps is Keeps.NOTHING
    assert (row.lateness is Lateness.NONE, row.shape is stateless) == (nothing, nothing)
    assert (row.lateness is Lateness.GROUP) == (row.keeps is Keeps.GROUPS)
    assert row.from_one_row or row.stateful


@pytest.mark.parametrize("kind", TRAITS)
def test_the_planner_describes_the_state_of_stateful_kinds(kind: str) -> None:
    """And the columns that are copied from one row."""
    row, words = TRAITS[kind], WORDED[kind]
    assert (words.keeps is not None) == row.stateful
    assert (words.passes_on is not None) == (row.provenance is Provenance.COMPUTED)


def test_a_box_has_the_row_of_its_kind() -> None:
    """With the shape that follows from it; for a kind without a row there is no default."""
    box = Filter(BoxName("moving"), StreamName("cars"), TRUE, columns=(), event_time_column=None)
    assert traits(box) is TRAITS["filter"]
    assert traits(box).shape(box, {}) == Stateless()
    sort = type("Sort", (Filter,), {"kind": "sort"})
    with pytest.raises(BrokenInvariantError, match="box of kind sort"):
        traits(
            sort(BoxName("by_time"), StreamName("cars"), TRUE, columns=(), event_time_column=None)
        )
