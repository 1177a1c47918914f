"""Shapes of boxes, by their rows in the table of traits."""

from dataclasses import replace

import pytest

from pipeline.ids import StreamName
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Windowed
from pipeline.network.boxes.sides import How
from pipeline.network.boxes.traits import traits
from pipeline.network.boxes.windows import TumblingWindow
from tests.unit.planner.networks import (
    aggregated,
    as_of_join,
    column,
    deduplicated,
    external,
    joined,
)

CARS, TOLLS = external("cars", column("car")), external("tolls", column("car"))
SOURCES = {"left": {StreamName("cars")}, "right": {StreamName("tolls")}}
ON = (("car", "car"),)
SELECT = {"car": "`left`.`car`"}


@pytest.mark.parametrize(
    ("how", "behind_ms", "span_ms"), [(How.INNER, 0, 7), (How.LEFT, 4, 10), (How.FULL, 8, 10)]
)
def test_a_join_with_unmatched_rows_waits_for_both_inputs(
    how: How, behind_ms: int, span_ms: int
) -> None:
    """A missing input delays these; pairs of an inner join are emitted once both rows are read."""
    box = replace(joined("pairs", CARS, TOLLS, ON, SELECT, (-3, 7)), how=how)
    assert traits(box).shape(box, SOURCES) == Joined(span_ms, behind_ms, waits=how is not How.INNER)


def test_a_deduplication_is_complete_just_below_the_watermark() -> None:
    """A row at the watermark itself waits for an earlier one."""
    box = deduplicated("once", CARS, ("car",), 5)
    assert traits(box).shape(box, {}) == Joined(5, behind_ms=1, waits=True)


@pytest.mark.parametrize(("right", "passing"), [("tolls", {"cars"}), ("cars", set())])
def test_emitted_rows_of_an_as_of_join_are_not_kept(right: str, passing: set[str]) -> None:
    """Unless their stream is the table as well."""
    box = as_of_join("known", CARS, TOLLS, ON, SELECT, 7)
    sources = {**SOURCES, "right": {StreamName(right)}}
    assert traits(box).shape(box, sources) == Joined(
        7, waits=True, passing=frozenset(map(StreamName, passing))
    )


def test_windows_and_sessions_wait_for_their_ends() -> None:
    """A watermark is above the boundary that closes a window, and at that which ends sessions."""
    windows, sessions = TumblingWindow(10, 0), SessionWindow(gap_ms=5, longest_ms=100)
    boxes = [aggregated("counts", CARS, {}, {}, window=window) for window in (windows, sessions)]
    found = [traits(box).shape(box, {}) for box in boxes]
    assert found == [Windowed(windows), Sessions(sessions)]
    assert [(one.waits, one.watermark_lead_ms) for one in found] == [(True, 1), (True, 0)]
