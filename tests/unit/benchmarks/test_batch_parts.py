"""Parts of small batches, from Spark's log."""

import json

import pytest

from benchmarks.batch_parts import batches, plan_times, show

LOG = """\
a line of another kind
Streaming query made progress: {
  "id" : "1",
  "durationMs" : {
    "addBatch" : 70,
    "latestOffset" : 30,
    "triggerExecution" : 110
  },
  "sources" : [ {
    "description" : "x"
  } ]
}
Streaming query has been idle and waiting for new data more than 10000 ms.
Streaming query made progress: {
  "durationMs" : {
    "addBatch" : 90,
    "triggerExecution" : 100
  }
}
"""


def test_the_parts_of_each_batch_are_read() -> None:
    """What Spark logs besides is passed over."""
    assert batches(LOG) == [
        {"addBatch": 70, "latestOffset": 30, "triggerExecution": 110},
        {"addBatch": 90, "triggerExecution": 100},
    ]


def test_the_wait_for_a_batch_is_no_part_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Medians of the parts, and CPU for each batch."""
    show(batches(LOG), {"Java": 0.5})
    printed = capsys.readouterr().out.splitlines()
    lines = [line.split() for line in printed]
    assert ["addBatch", "80"] in lines
    assert ["without", "the", "wait", "90"] in lines
    assert ["Java", "250"] in lines


def test_plans_are_timed_while_a_query_is_behind() -> None:
    """Not the first batch of a query, not the last one, and none without records."""

    def batch(query: str, rows: int, wait_ms: int) -> str:
        progress = {
            "runId": query,
            "numInputRows": rows,
            "durationMs": {"latestOffset": wait_ms},
        }
        return f"Streaming query made progress: {json.dumps(progress, indent=2)}\n"

    log = "".join(
        [
            batch("a", 10, 900),
            batch("a", 10, 2),
            batch("b", 10, 800),
            batch("a", 0, 700),
            batch("a", 10, 3),
            batch("a", 5, 600),
            batch("b", 5, 500),
        ]
    )
    assert plan_times(log) == [2.0, 3.0]
