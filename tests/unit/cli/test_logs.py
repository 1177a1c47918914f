import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.commands import logs
from pipeline.cli.log_entries import Entry, Source, entries_of_node, entries_of_spark
from tests.unit.deploy.twins import TwinClock

Caller = Callable[..., Any]

LOG = """\
2026-01-01T00:00:00.000Z INFO node up
2026-01-01T00:00:01.000Z INFO [tolls.moving] started
2026-01-01T00:00:02.000Z ERROR [tolls.stopped] failed
  because of this
2026-01-01T00:00:03.000Z INFO [other.moving] started
"""


def _log() -> None:
    folder = Path(".medusa/logs")
    folder.mkdir(parents=True)
    (folder / "node-node1.log").write_text(LOG, encoding="utf-8")


def test_logs_of_one_fragment_keep_lines_that_belong_together(medusa: Caller) -> None:
    """An entry is shown whole, also the lines below its first."""
    _log()
    called = medusa("logs", "stopped")
    assert called.out.splitlines() == LOG.splitlines()[2:4]


def test_a_full_name_selects_one_network(medusa: Caller) -> None:
    """network.fragment tells two fragments of one name apart."""
    _log()
    assert len(medusa("logs", "moving").out.splitlines()) == 2
    assert medusa("logs", "other.moving").out == LOG.splitlines()[4] + "\n"


def test_the_name_of_a_network_selects_its_fragments(medusa: Caller) -> None:
    """What is about none of them is left out."""
    _log()
    assert medusa("logs", "tolls").out.splitlines() == LOG.splitlines()[1:4]


def test_only_the_last_entries(medusa: Caller) -> None:
    """-n counts entries, not lines."""
    _log()
    assert medusa("logs", "-n", "2").out.splitlines() == LOG.splitlines()[2:]


def test_the_logs_of_several_nodes_are_one_by_time(medusa: Caller) -> None:
    """-n counts over all of them; lines that belong together stay so."""
    _log()
    other = Path(".medusa/logs/node-a.log")
    other.write_text(
        "2026-01-01T00:00:01.500Z INFO a is up\n2026-01-01T00:00:02.500Z INFO [tolls.moving] b\n",
        encoding="utf-8",
    )
    lines, ours = medusa("logs").out.splitlines(), LOG.splitlines()
    a, b = other.read_text(encoding="utf-8").splitlines()
    assert lines == [*ours[:2], a, *ours[2:4], b, ours[4]]
    assert medusa("logs", "-n", "3").out.splitlines() == [*ours[2:4], b, ours[4]]
    assert medusa("logs", "-n", "0").out == ""
    assert medusa("logs", "tolls.moving", "-n", "1").out == f"{b}\n"


def test_no_logs_is_told_with_the_place(medusa: Caller) -> None:
    """Without a node's log the command says where it looked."""
    called = medusa("logs")
    assert called.code == 65
    assert ".medusa/logs" in called.err


def test_a_name_that_nothing_is_about_is_an_error_with_those_that_exist(medusa: Caller) -> None:
    """A mistyped name is not an empty log."""
    _log()
    called = medusa("logs", "movign")
    assert (called.code, called.out) == (65, "")
    assert "about movign" in called.err
    assert "other.moving, tolls.moving, tolls.stopped" in called.err


SPARK = """\
connecting to Kafka
26/01/01 00:00:01 WARN TaskSetManager: Lost task 0.0
java.lang.IllegalStateException: no
\tat org.apache.spark.Task
26/01/01 00:00:02 ERROR MicroBatchExecution: Query tolls.moving.3 [id = 1, runId = 2] terminated
"""


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine two hours east of UTC."""
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_entries_are_data_one_line_each(medusa: Caller) -> None:
    """With what their lines say, in parts."""
    _log()
    lines = [json.loads(line) for line in medusa("logs", "-o", "json").out.splitlines()]
    assert len(lines) == 4
    assert lines[2] == {
        "time": "2026-01-01T00:00:02.000Z",
        "level": "ERROR",
        "node": "node1",
        "source": "node",
        "network": "tolls",
        "fragment": "stopped",
        "message": "failed\n  because of this",
    }
    assert (lines[0]["fragment"], lines[0]["message"]) == (None, "node up")
    one = medusa("logs", "other.moving", "-o", "yaml").out
    assert one.startswith("---\ntime: ")


@pytest.mark.usefixtures("zone")
def test_what_spark_wrote_is_among_them_by_its_time(medusa: Caller) -> None:
    """In UTC, whatever the zone of the machine; a trace stays with its entry."""
    _log()
    folder = Path(".medusa/logs")
    (folder / "node1.out").write_text(SPARK.replace(" 00:", " 02:"), encoding="utf-8")
    (folder / "kafka.out").write_text("26/01/01 00:00:01 INFO not of a node\n", encoding="utf-8")
    ours = LOG.splitlines()
    assert medusa("logs").out.splitlines() == [
        "spark: connecting to Kafka",
        *ours[:2],
        "2026-01-01T00:00:01.000Z WARN spark: TaskSetManager: Lost task 0.0",
        *SPARK.splitlines()[2:4],
        *ours[2:4],
        f"2026-01-01T00:00:02.000Z ERROR [tolls.moving] spark: {SPARK.partition('ERROR ')[2][:-1]}",
        ours[4],
    ]
    about = medusa("logs", "moving", "-o", "json").out.splitlines()
    assert [json.loads(line)["source"] for line in about] == ["node", "spark", "node"]


@pytest.mark.usefixtures("zone")
def test_the_parts_of_what_spark_writes() -> None:
    """Lines before the first entry are one of their own."""
    odd_line = "26/02/31 00:00:02 WARN no such day"
    first, lost, query, odd = entries_of_spark("n", [*SPARK.splitlines(), odd_line])
    assert (first.time, first.level, first.message) == ("", "", "connecting to Kafka")
    assert lost == Entry(
        "2025-12-31T22:00:01.000Z", "WARN", "n", Source.SPARK, "", "",
        "TaskSetManager: Lost task 0.0\njava.lang.IllegalStateException: no\n"
        "\tat org.apache.spark.Task",
    )  # fmt: skip
    assert (query.label, query.level) == ("tolls.moving", "ERROR")
    assert str(query).startswith("2025-12-31T22:00:02.000Z ERROR [tolls.moving] spark: MicroBatch")
    assert (odd.time, odd.message) == ("", "no such day")


def test_entries_of_a_node_are_printed_as_they_are() -> None:
    """What is no entry, too."""
    lines = ["half a line", *LOG.splitlines()]
    assert "\n".join(map(str, entries_of_node("n", lines))).splitlines() == lines


class _Writer(TwinClock):
    """Writes the next lines into a file whenever somebody waits; in the end it interrupts."""

    def __init__(self, steps: list[tuple[Path, str]]) -> None:
        super().__init__()
        self._steps = steps

    def sleep(self, seconds: float) -> None:
        """Do the next step."""
        super().sleep(seconds)
        if not self._steps:
            raise KeyboardInterrupt
        file, text = self._steps.pop(0)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)


def test_new_entries_are_followed_in_files_that_come_later(tmp_path: Path) -> None:
    """Those of Spark may, and a line counts once it is whole."""
    node, spark = tmp_path / "node-n.log", tmp_path / "n.out"
    node.write_text(LOG, encoding="utf-8")
    clock = _Writer(
        [
            (node, "2026-01-01T00:00:09.000Z INFO [tolls.mov"),
            (node, "ing] whole\n"),
            (spark, "26/01/01 00:00:09 WARN A: b\n"),
        ]
    )
    both = (
        logs.Log(node, partial(entries_of_node, "n")),
        logs.Log(spark, partial(entries_of_spark, "n")),
    )
    found: list[Entry] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(logs._follow(both, clock))
    assert [(one.label, one.message) for one in found] == [("tolls.moving", "whole"), ("", "A: b")]
