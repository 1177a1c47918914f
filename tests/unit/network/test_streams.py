"""Streams from outside: what decides their event time."""

import pytest

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
