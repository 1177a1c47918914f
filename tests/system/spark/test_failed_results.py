"""Dead letters of results that cannot be computed, on real Spark."""

import json
from pathlib import Path

import pytest

from pipeline.spark.run.from_memory import MemoryQueries
from tests.system.spark.support import failures

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

READING = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "sensor", "type": "string"},
        {"name": "value", "type": ["null", "int"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
NETWORK = """
network: failing
streams: {readings: {topic: readings, schema: reading.avsc, event_time: at}}
boxes:
  shares:
    aggregate: readings
    window: 1m
    by: [sensor]
    compute:
      share: 100 / sum(value) FILTER (WHERE value < 9)
      all: sum(value)
  pairs:
    join: {left: readings, right: readings, on: [sensor], within: 0s}
    select: {sensor: sensor, quotient: left.value % right.value}
outputs: {shares: {topic: shares}, pairs: {topic: pairs}}
"""
SHARE = "share cannot be computed: 100 / sum(value) FILTER (WHERE value < 9)"
SIDE = {"sensor": "s", "value": 0, "at": "2026-01-01T08:00:00.000Z"}
STEPS = [
    {
        "send": "readings",
        "records": [{"sensor": "s", "value": 0, "at": "2026-01-01T08:00:00Z"}],
    },
    {"advance": "2026-01-01T08:01:00Z"},
    {
        "dead_letters": [
            {
                "reason": "evaluation_failed",
                "box": "shares",
                "field": "compute.share",
                "message": f"compute.{SHARE}",
                "values": {
                    "sensor": "s",
                    "sum(value) FILTER(WHERE value < 9)": 0,
                    "sum(value)": 0,
                },
            },
            {
                "box": "pairs",
                "field": "select.quotient",
                "values": {"left": SIDE, "right": SIDE},
            },
        ]
    },
]


def test_the_dead_letter_of_a_failed_result_contains_its_values(
    queries: MemoryQueries, tmp_path: Path
) -> None:
    """Values of aggregate functions under their calls; of a pair, the values of both sides."""
    (tmp_path / "reading.avsc").write_text(json.dumps(READING), "utf-8")
    (tmp_path / "network.yaml").write_text(NETWORK, "utf-8")
    test = {"network": "../network.yaml", "steps": STEPS}
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "failing.yaml").write_text(json.dumps(test), "utf-8")
    assert failures(tmp_path, queries) == []
