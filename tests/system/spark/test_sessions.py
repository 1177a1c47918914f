"""Sessions: a record that is late by its own time counts in none, whatever is computed of them."""

from pathlib import Path

import pytest

from pipeline.spark.run.from_memory import MemoryQueries
from tests.system.spark.support import ROW_SCHEMA, failures

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

DOCUMENT = """
network: shop
streams:
  orders: {topic: orders, schema: row.avsc, event_time: at, lateness: 1s}
boxes:
  bursts: {aggregate: orders, session: 30s, by: [item], compute: {found: COMPUTED}}
outputs:
  bursts: {topic: bursts}
"""
STEPS = """
network: ../network.yaml
steps:
  - send: orders
    records:
      - {item: a, amount: 5, at: "2026-01-01T00:00:00Z"}
      - {item: b, amount: 1, at: "2026-01-01T00:00:20Z"}
  - expect: bursts
    records: []
  - send: orders
    records: [{item: a, amount: 9, at: "2026-01-01T00:00:05Z"}]
  - dead_letters:
      - {stream: orders, reason: late, record: {amount: 9}}
  - send: orders
    records: [{item: b, amount: 1, at: "2026-01-01T00:00:41Z"}]
  - expect: bursts
    records: [{item: a, found: FOUND, window_end: "2026-01-01T00:00:30Z"}]
"""


@pytest.mark.parametrize(
    ("computed", "found"),
    [
        ("count(*)", "1"),
        ("max(amount)", "5"),
        ("min(amount)", "5"),
        ("count(distinct amount)", "1"),
        ("first(amount)", "5"),
    ],
)
def test_a_record_that_is_late_by_its_own_time_extends_no_session(
    computed: str, found: str, queries: MemoryQueries, tmp_path: Path
) -> None:
    """Spark's optimiser must not remove what drops it, also if repeated rows change no result."""
    (tmp_path / "row.avsc").write_text(ROW_SCHEMA, "utf-8")
    (tmp_path / "network.yaml").write_text(DOCUMENT.replace("COMPUTED", computed), "utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "late.yaml").write_text(STEPS.replace("FOUND", found), "utf-8")
    assert failures(tmp_path, queries) == []
