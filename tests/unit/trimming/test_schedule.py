"""Removals at intervals in the background of a lane."""

import logging
from collections.abc import Mapping

import pytest

from pipeline.errors import RefusedError
from pipeline.ids import Offset
from pipeline.trimming.schedule import Trimmer
from tests.unit.dead_letters.support import NAMES
from tests.unit.deploy.twins import TwinClock


class Removal:
    """A removal that may be refused."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses, self.calls = refuses, 0

    def apply(self) -> Mapping[int, Offset]:
        """Count the call."""
        self.calls += 1
        if self.refuses:
            raise RefusedError("not allowed", place="topic x")
        return {0: Offset(3)}


def test_a_failure_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """It does not stop the lane; a missing permission is not logged each time."""
    removal = Removal(refuses=True)
    trimmer = Trimmer("old records", removal.apply, 60.0, NAMES.id, TwinClock())
    with caplog.at_level(logging.WARNING):
        trimmer.trim()
        trimmer.trim()
    assert [r.message for r in caplog.records] == [
        "old records are not removed: topic x: not allowed"
    ]


def test_it_is_done_once_in_an_interval() -> None:
    """More calls have no effect."""
    removal, clock = Removal(), TwinClock()
    trimmer = Trimmer("old records", removal.apply, 60.0, NAMES.id, clock)
    for calls, slept_s in ((1, 0.0), (1, 59.0), (2, 1.0)):
        clock.sleep(slept_s)
        trimmer.trim_if_due()
        assert trimmer._thread is not None
        trimmer._thread.join(5)
        assert removal.calls == calls
