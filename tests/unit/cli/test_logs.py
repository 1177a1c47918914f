import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.operations.logs.texts import LOG, SPARK

Caller = Callable[..., Any]


def _log() -> None:
    folder = Path(".medusa/logs")
    folder.mkdir(parents=True)
    (folder / "node-node1.log").write_text(LOG, encoding="utf-8")


def test_logs_of_one_fragment_contain_whole_entries(medusa: Caller) -> None:
    """With all lines after their first."""
    _log()
    called = medusa("logs", "stopped")
    assert called.out.splitlines() == LOG.splitlines()[2:4]


def test_a_full_name_selects_one_network(medusa: Caller) -> None:
    """network.fragment distinguishes two fragments with one name."""
    _log()
    assert len(medusa("logs", "moving").out.splitlines()) == 2
    assert medusa("logs", "other.moving").out == LOG.splitlines()[4] + "\n"


def test_the_name_of_a_network_selects_its_fragments(medusa: Caller) -> None:
    """Other entries are left out."""
    _log()
    assert medusa("logs", "tolls").out.splitlines() == LOG.splitlines()[1:4]


def test_only_the_last_entries(medusa: Caller) -> None:
    """-n counts entries, not lines."""
    _log()
    assert medusa("logs", "-n", "2").out.splitlines() == LOG.splitlines()[2:]


def test_the_logs_of_several_nodes_are_merged_by_time(medusa: Caller) -> None:
    """-n counts all of them; the lines of an entry stay together."""
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


def test_missing_logs_are_an_error_with_the_folder(medusa: Caller) -> None:
    """There is no log of a node."""
    called = medusa("logs")
    assert called.code == 65
    assert ".medusa/logs" in called.err


def test_an_unknown_name_is_an_error_with_the_existing_ones(medusa: Caller) -> None:
    """A mistyped name is not an empty log."""
    _log()
    called = medusa("logs", "movign")
    assert (called.code, called.out) == (65, "")
    assert "about movign" in called.err
    assert "other.moving, tolls.moving, tolls.stopped" in called.err


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine two hours east of UTC."""
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_entries_are_data_with_one_line_each(medusa: Caller) -> None:
    """With the parts of their lines."""
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
def test_entries_of_spark_are_merged_by_time(medusa: Caller) -> None:
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
