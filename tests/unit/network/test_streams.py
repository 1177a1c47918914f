"""Streams from outside: what decides their event time."""

from collections.abc import Callable

import pytest

from pipeline.network.model import Load, Network
from tests.unit.network.described import ProblemsOf


@pytest.mark.parametrize("time", ["TIMESTAMP '2024-01-01 00:00:00'", "CAST(NULL AS TIMESTAMP)"])
def test_event_time_is_made_of_columns(time: str, problems_of: ProblemsOf) -> None:
    """Else it never moves, so that no window closes, or no record has any."""
    stream = f'{{topic: cars, schema: a, event_time: "{time}"}}'
    text = f"network: n\nstreams:\n  s: {stream}\nboxes: {{b: {{filter: s, where: speed > 0}}}}\n"
    (found,) = problems_of(text)
    assert found == (
        "network.yaml:3: event_time of stream s: reads no column of the record (there is: seen_at)"
        "\n    hint: name the column that says when it happened"
    )


def test_a_stream_says_how_long_its_topic_keeps_records(
    load_text: Callable[[str], Network],
) -> None:
    """Where it says nothing, the network decides."""
    stream = "{topic: %s, schema: sighting.avsc, event_time: seen_at%s}"
    streams = f"{{s: {stream % ('a', ', retention: 30d')}, t: {stream % ('b', '')}}}"
    boxes = "{b: {filter: s, where: speed > 0}}"
    found = load_text(f"network: n\nstreams: {streams}\nboxes: {boxes}\n").streams
    assert {one.name: one.retention_ms for one in found} == {"s": 30 * 86_400_000, "t": None}


def test_a_table_is_silent_by_nature(load_text: Callable[[str], Network]) -> None:
    """So what is loaded first steps aside at once, unless it is said otherwise."""
    head = "network: n\nstreams: {s: {topic: cars, schema: a, event_time: seen_at, load: first"
    boxes = "}}\nboxes: {b: {filter: s, where: speed > 0}}\n"
    (table,) = load_text(head + boxes).streams
    assert (table.load, table.idle_after_ms) == (Load.FIRST, 1_000)
    (patient,) = load_text(head + ", idle_after: 1m" + boxes).streams
    assert (patient.load, patient.idle_after_ms) == (Load.FIRST, 60_000)
