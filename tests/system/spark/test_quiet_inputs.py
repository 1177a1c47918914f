"""Idle inputs: the rules of the semantics as network tests."""

from pathlib import Path

import pytest

from pipeline.spark.run.from_memory import MemoryQueries
from tests.system.spark.support import ROW_SCHEMA, failures

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

STREAMS = """
network: shop
streams:
  orders: {topic: orders, schema: row.avsc, event_time: at, lateness: 1s}
  prices: {topic: prices, schema: row.avsc, event_time: at, lateness: 1s, idle_after: 10s}
"""
AS_OF = """
boxes:
  priced:
    as_of: {left: orders, right: prices, on: [item], within: 1d}
    select: {item: left.item, amount: left.amount * right.amount, at: left.at}
outputs:
  priced: {topic: priced}
"""
UNION = """
boxes:
  both: {union: [orders, prices]}
  minutes: {aggregate: both, window: 1m, by: [item], compute: {n: count(*)}}
outputs:
  minutes: {topic: minutes}
"""
AS_OF_DERIVED = """
boxes:
  usable: {filter: prices, where: amount > 0}
  priced:
    as_of: {left: orders, right: usable, on: [item], within: 1d}
    select: {item: left.item, amount: left.amount * right.amount, at: left.at}
outputs:
  usable: {topic: usable}
  priced: {topic: priced}
"""
A_PRICE = """
  - send: prices
    records: [{item: a, amount: 5, at: "2026-01-01T00:00:00Z"}]
  - wait: 30s
"""
ORDERS = """
  - send: orders
    records:
      - {item: a, amount: 2, at: "2026-01-01T00:10:00Z"}
      - {item: b, amount: 2, at: "2026-01-01T00:10:05Z"}
"""
ARRIVES_AT_ONCE = f"""
network: ../network.yaml
steps:{A_PRICE}{ORDERS}
  - expect: priced
    records: [{{item: a, amount: 10}}]
"""
WINDOW_CLOSES = f"""
network: ../network.yaml
steps:{A_PRICE}{ORDERS}
  - expect: minutes
    records: [{{item: a, n: 1}}]
  - send: orders
    records: [{{item: b, amount: 2, at: "2026-01-01T00:11:02Z"}}]
  - expect: minutes
    records: [{{item: a, n: 1}}, {{item: b, n: 1}}]
"""
LATE_THEN_CONTINUES = f"""
network: ../network.yaml
steps:{A_PRICE}{ORDERS}
  - expect: priced
    records: [{{item: a, amount: 10}}]
  - send: prices
    records: [{{item: a, amount: 7, at: "2026-01-01T00:05:00Z"}}]
  - expect: usable
    records: [{{item: a, amount: 5}}, {{item: a, amount: 7}}]
  - dead_letters:
      - {{stream: usable, reason: late, record: {{amount: 7}}}}
  - wait: 30s
  - send: orders
    records:
      - {{item: a, amount: 3, at: "2026-01-01T00:20:00Z"}}
      - {{item: b, amount: 2, at: "2026-01-01T00:20:05Z"}}
  - expect: priced
    records: [{{item: a, amount: 15}}]
"""
NOT_BEFORE_THE_WINDOW = """
network: ../network.yaml
steps:
  - send: prices
    records: [{item: a, amount: 5, at: "2026-01-01T00:00:00Z"}]
  - wait: 30s
  - send: orders
    records:
      - {item: a, amount: 2, at: "2026-01-01T00:10:00Z"}
      - {item: b, amount: 2, at: "2026-01-01T00:10:05Z"}
  - expect: priced
    records: []
  - wait: 2m
  - send: orders
    records: [{item: b, amount: 2, at: "2026-01-01T00:20:00Z"}]
  - expect: priced
    records: [{item: a, amount: 10}]
"""
AS_OF_WINDOWS = """
boxes:
  levels: {aggregate: prices, window: 1m, by: [item], compute: {amount: max(amount)}}
  priced:
    as_of: {left: orders, right: levels, on: [item], within: 1d}
    select: {item: left.item, amount: left.amount * right.amount, at: left.at}
outputs:
  levels: {topic: levels}
  priced: {topic: priced}
"""


PER_MINUTE = """
network: shop
streams:
  orders: {topic: orders, schema: row.avsc, event_time: at}
boxes:
  minutes: {aggregate: orders, window: 1m, by: [item], compute: {n: count(*)}}
outputs:
  minutes: {topic: minutes}
"""
AFTER_AN_OUTAGE = """
network: ../network.yaml
steps:
  - send: orders
    records: [{item: a, amount: 1, at: "2026-01-01T00:00:10Z"}]
  - wait: 2m
  - send: orders
    records:
      - {item: a, amount: 1, at: "2026-01-01T00:00:20Z"}
      - {item: a, amount: 1, at: "2026-01-01T00:01:10Z"}
      - {item: a, amount: 1, at: "2026-01-01T00:02:15Z"}
  - dead_letters: []
  - expect: minutes
    records: [{n: 2}, {n: 1}]
  - wait: 4m
  - expect: minutes
    records: [{n: 1}]
"""
TABLE_AND_ORDERS = """
network: shop
streams:
  orders: {topic: orders, schema: row.avsc, event_time: at}
  prices: {topic: prices, schema: row.avsc, event_time: at, load: first}
"""
A_TABLE = """
network: ../network.yaml
steps:
  - send: prices
    records:
      - {item: a, amount: 5, at: "2026-01-01T00:00:00Z"}
      - {item: b, amount: 7, at: "2025-12-31T23:00:00Z"}
  - wait: 2s
  - send: orders
    records:
      - {item: a, amount: 2, at: "2026-01-01T00:10:00Z"}
      - {item: b, amount: 2, at: "2026-01-01T00:10:01Z"}
      - {item: b, amount: 2, at: "2026-01-01T00:10:07Z"}
  - expect: priced
    records: [{item: a, amount: 10}, {item: b, amount: 14}]
"""


@pytest.mark.parametrize(
    ("document", "steps"),
    [(PER_MINUTE, AFTER_AN_OUTAGE), (TABLE_AND_ORDERS + AS_OF, A_TABLE)],
    ids=["an outage of two minutes", "a table"],
)
def test_default_idleness_loses_nothing_and_delays_little(
    document: str, steps: str, queries: MemoryQueries, tmp_path: Path
) -> None:
    """A producer that delivers after two minutes is in time; a table is idle after a second."""
    assert _failures(document, steps, queries, tmp_path) == []


@pytest.mark.parametrize(
    ("boxes", "steps"),
    [
        (AS_OF, ARRIVES_AT_ONCE),
        (AS_OF_DERIVED, LATE_THEN_CONTINUES),
        (AS_OF_WINDOWS, NOT_BEFORE_THE_WINDOW),
        (UNION, WINDOW_CLOSES),
    ],
    ids=["a table", "a table that a fragment writes", "a window that is still open", "a union"],
)
def test_an_idle_input_does_not_delay_another_one(
    boxes: str, steps: str, queries: MemoryQueries, tmp_path: Path
) -> None:
    """Unless its stored records are still to be read; late records are dead letters."""
    assert _failures(STREAMS + boxes, steps, queries, tmp_path) == []


def _failures(document: str, steps: str, queries: MemoryQueries, folder: Path) -> list[str]:
    (folder / "row.avsc").write_text(ROW_SCHEMA, "utf-8")
    (folder / "network.yaml").write_text(document, "utf-8")
    (folder / "tests").mkdir()
    (folder / "tests" / "quiet.yaml").write_text(steps, "utf-8")
    return failures(folder, queries)
