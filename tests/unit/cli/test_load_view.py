"""Loads in tables and as data."""

from dataclasses import replace

from pipeline.catalog.load_records import FragmentLoad, NodeLoadRecord
from pipeline.cli.load_view import load_data, load_text, node_load_data, node_load_text
from pipeline.ids import (
    FragmentName,
    Millis,
    NetworkId,
    NetworkName,
    NodeId,
    ParticipantId,
)

ME = ParticipantId("local")
LOAD = FragmentLoad(
    NetworkId(ME, NetworkName("tolls")),
    FragmentName("moving"),
    planning=1_000,
    tasks=2_250,
    writing=500,
    functions=0,
    shared=300,
    records_in=10,
    records_out=5,
    bytes_in=100,
    bytes_out=50,
    charged=123_456,
)
NODE = NodeLoadRecord(
    NodeId("node1"), ME, Millis(1), Millis(0), 60_000, 1_250, 2, 900, 5, 4_950, 3, (LOAD,)
)


def test_a_load_is_the_sum_of_its_parts_in_load_units() -> None:
    """With one decimal in a table, and thousandths as data."""
    assert load_text(LOAD) == "4.0"
    found = load_data(LOAD)
    assert found is not None
    parts = ("planning", "tasks", "writing", "functions", "shared")
    assert found["units_per_s"] == 4.05
    assert [found[name] for name in parts] == [1.0, 2.25, 0.5, 0.0, 0.3]
    assert found["units_charged"] == 123.456


def test_a_node_shows_its_load_and_what_its_cores_can_do() -> None:
    """Two cores of 1.25 reference cores can do 250 load units in a second."""
    assert node_load_text(NODE) == "5.0 of 250"
    found = node_load_data(NODE)
    assert found is not None
    assert (found["units_per_s"], found["overhead"], found["core"]) == (4.95, 0.9, 1.25)
    assert found["fragments"] == [
        {"network": "local.tolls", "fragment": "moving", **(load_data(LOAD) or {})}
    ]
    assert node_load_data(replace(NODE, fragments=()))["fragments"] == []  # type: ignore[index]


def test_what_was_not_metered_is_not_shown_as_nothing() -> None:
    """A dash in a table, null as data."""
    assert (load_text(None), node_load_text(None)) == ("-", "-")
    assert (load_data(None), node_load_data(None)) == (None, None)
