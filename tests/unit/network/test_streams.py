"""External streams: their event time, retention and loading."""

from collections.abc import Callable

import pytest

from pipeline.network.model import Load, Network
from tests.unit.network.described import ProblemsOf


@pytest.mark.parametrize("time", ["TIMESTAMP '2024-01-01 00:00:00'", "CAST(NULL AS TIMESTAMP)"])
def test_event_time_must_depend_on_columns(time: str, problems_of: ProblemsOf) -> None:
    """Otherwise it is constant, so that no window closes, or no record has any."""
    stream = f'{{topic: cars, schema: a, event_time: "{time}"}}'
    text = f"network: n\nstreams:\n  s: {stream}\nboxes: {{b: {{filter: s, where: speed > 0}}}}\n"
    (found,) = problems_of(text)
    assert found == (
        "network.yaml:3: event_time of stream s: reads no column of the record (there is: seen_at)"
        "\n    hint: name the column that says when it happened"
    )


def test_a_stream_may_define_the_retention_of_its_topic(
    load_text: Callable[[str], Network],
) -> None:
    """The default is that of the network."""
    stream = "{topic: %s, schema: sighting.avsc, event_time: seen_at%s}"
    streams = f"{{s: {stream % ('a', ', retention: 30d')}, t: {stream % ('b', '')}}}"
    boxes = "{b: {filter: s, where: speed > 0}}"
    found = load_text(f"network: n\nstreams: {streams}\nboxes: {boxes}\n").streams
    assert {one.name: one.retention_ms for one in found} == {"s": 30 * 86_400_000, "t": None}


def test_a_table_is_idle_by_default(load_text: Callable[[str], Network]) -> None:
    """So a stream with `load: first` is idle at once, unless the document defines otherwise."""
    head = "network: n\nstreams: {s: {topic: cars, schema: a, event_time: seen_at, load: first"
    boxes = "}}\nboxes: {b: {filter: s, where: speed > 0}}\n"
    (table,) = load_text(head + boxes).streams
    assert (table.load, table.idle_after_ms) == (Load.FIRST, 1_000)
    (patient,) = load_text(head + ", idle_after: 1m" + boxes).streams
    assert (patient.load, patient.idle_after_ms) == (Load.FIRST, 60_000)
