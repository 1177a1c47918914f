from collections.abc import Callable
from pathlib import Path
from typing import Any

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
