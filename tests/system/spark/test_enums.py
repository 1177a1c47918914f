"""Enums and UUIDs that boxes pass through are written and read back, on real Spark."""

import json
from pathlib import Path

import pytest

from pipeline.spark.run.from_memory import MemoryQueries
from tests.system.spark.support import failures

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}},
        {"name": "other", "type": ["null", "Size"]},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
NETWORK = """
network: enums
streams: {orders: {topic: orders, schema: order.avsc, event_time: at}}
boxes:
  large: {filter: orders, where: size = 'L'}
  counts: {aggregate: large, window: 1m, by: [size, other], compute: {n: count(*)}}
outputs: {large: {topic: large}, counts: {topic: counts}}
"""
IDS = [f"00000000-0000-0000-0000-00000000000{n}" for n in range(3)]
LARGE = [
    {"size": "L", "other": other, "id": key, "at": "2026-01-01T08:00:00Z"}
    for other, key in zip((None, "S", "L"), IDS, strict=True)
]
STEPS = [
    {"send": "orders", "records": [*LARGE, {**LARGE[0], "size": "S"}]},
    {"advance": "2026-01-01T08:01:00Z"},
    {"expect": "large", "records": LARGE},
    {
        "expect": "counts",
        "records": [{"size": "L", "other": other, "n": 1} for other in (None, "S", "L")],
    },
    {"dead_letters": []},
]


def test_enums_and_uuids_pass_through_and_are_read_back(
    queries: MemoryQueries, tmp_path: Path
) -> None:
    """Also null ones, an enum used twice, and an enum as the key of a window."""
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER), "utf-8")
    (tmp_path / "network.yaml").write_text(NETWORK, "utf-8")
    test = {"network": "../network.yaml", "steps": STEPS}
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "enums.yaml").write_text(json.dumps(test), "utf-8")
    assert failures(tmp_path, queries) == []
