from functools import partial
from pathlib import Path

import pytest

from pipeline.operations.logs.entries import LogEntry, entries_of_node, entries_of_spark
from pipeline.operations.logs.files import LogFile, new_entries
from tests.unit.deploy.twins import TwinClock
from tests.unit.operations.logs.texts import LOG


class _Writer(TwinClock):
    """Clock that appends the next text to a file at each sleep, and interrupts at the end."""

    def __init__(self, steps: list[tuple[Path, str]]) -> None:
        super().__init__()
        self._steps = steps

    def sleep(self, seconds: float) -> None:
        """Append the next text."""
        super().sleep(seconds)
        if not self._steps:
            raise KeyboardInterrupt
        file, text = self._steps.pop(0)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)


def test_new_entries_are_followed_in_files_that_come_later(tmp_path: Path) -> None:
    """Spark's file may be created later; a line is read once it is complete."""
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
        LogFile(node, partial(entries_of_node, "n")),
        LogFile(spark, partial(entries_of_spark, "n")),
    )
    found: list[LogEntry] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(new_entries(both, clock))
    assert [(one.label, one.message) for one in found] == [("tolls.moving", "whole"), ("", "A: b")]
