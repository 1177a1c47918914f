import time
from collections.abc import Iterator

import pytest

from pipeline.operations.logs.entries import LogEntry, LogSource, entries_of_node, entries_of_spark
from tests.unit.operations.logs.texts import LOG, SPARK


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine two hours east of UTC."""
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
def test_the_parts_of_what_spark_writes() -> None:
    """Lines before the first entry are an entry of their own."""
    odd_line = "26/02/31 00:00:02 WARN no such day"
    first, lost, query, odd = entries_of_spark("n", [*SPARK.splitlines(), odd_line])
    assert (first.time, first.level, first.message) == ("", "", "connecting to Kafka")
    assert lost == LogEntry(
        "2025-12-31T22:00:01.000Z", "WARN", "n", LogSource.SPARK, "", "",
        "TaskSetManager: Lost task 0.0\njava.lang.IllegalStateException: no\n"
        "\tat org.apache.spark.Task",
    )  # fmt: skip
    assert (query.label, query.level) == ("tolls.moving", "ERROR")
    assert str(query).startswith("2025-12-31T22:00:02.000Z ERROR [tolls.moving] spark: MicroBatch")
    assert (odd.time, odd.message) == ("", "no such day")


def test_entries_of_a_node_are_printed_as_they_are() -> None:
    """Also lines that are no entry."""
    lines = ["half a line", *LOG.splitlines()]
    assert "\n".join(map(str, entries_of_node("n", lines))).splitlines() == lines
