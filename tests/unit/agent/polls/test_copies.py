"""When checkpoints are copied."""

import logging
from dataclasses import dataclass, field

import pytest

from pipeline.agent.polls.copies import CopiesPoll
from pipeline.agent.watched import Watched
from pipeline.checkpoint_store.manifest import CheckpointCopy
from pipeline.errors import UnavailableError
from pipeline.ids import BatchId, Epoch, FragmentId, FragmentName, Incarnation, Millis, NetworkLife
from tests.unit.agent.support import SPEED
from tests.unit.deploy.twins import TwinClock

OTHER = FragmentId(SPEED.network, FragmentName("tow"))
COPY = CheckpointCopy(
    NetworkLife("life"), Incarnation("1-1"), Epoch(1), BatchId(1), Millis(1), 2, "4.2.0", ()
)


@dataclass
class Copies:
    """Records what is copied."""

    clock: TwinClock
    runs: bool = True
    fails: bool = False
    copied: list[tuple[str, float]] = field(default_factory=list)

    def copy(self, fragment: FragmentId) -> CheckpointCopy | None:
        """Copy, unless it does not run or fails."""
        if self.fails:
            raise UnavailableError("the store does not answer")
        if not self.runs:
            return None
        self.copied.append((fragment.fragment, self.clock.passed_s))
        return COPY


def polled(copies: Copies, watched: Watched, seconds: float) -> CopiesPoll:
    """A poll that has been read until then."""
    poll = CopiesPoll(copies, watched, copies.clock)
    go_on(poll, copies, seconds)
    return poll


def go_on(poll: CopiesPoll, copies: Copies, seconds: float) -> None:
    """Read a poll for so long."""
    ends_s = copies.clock.passed_s + seconds
    while copies.clock.passed_s < ends_s:
        copies.clock.passed_s += poll.read()


def test_each_is_copied_at_once_and_then_as_often_as_it_says() -> None:
    """Each with its own interval."""
    copies, watched = Copies(TwinClock()), Watched()
    watched.copy({SPEED: 1_000, OTHER: 2_000})
    polled(copies, watched, 3.5)
    found = {
        name: [at_s for other, at_s in copies.copied if other == name] for name in ("speed", "tow")
    }
    assert found == {"speed": [0.0, 1.0, 2.0, 3.0], "tow": [0.0, 2.0]}


def test_one_that_does_not_run_is_copied_as_soon_as_it_does() -> None:
    """Its interval begins with its first copy."""
    copies, watched = Copies(TwinClock(), runs=False), Watched()
    watched.copy({SPEED: 60_000})
    poll = polled(copies, watched, 2.0)
    copies.runs = True
    go_on(poll, copies, 2.0)
    assert copies.copied == [("speed", 2.0)]


def test_one_that_is_wanted_no_more_is_not_copied() -> None:
    """And at once when it is wanted again."""
    copies, watched = Copies(TwinClock()), Watched()
    watched.copy({SPEED: 60_000})
    poll = polled(copies, watched, 1.0)
    watched.copy({})
    go_on(poll, copies, 1.0)
    watched.copy({SPEED: 60_000})
    go_on(poll, copies, 1.0)
    assert copies.copied == [("speed", 0.0), ("speed", 2.0)]


def test_a_store_that_fails_is_asked_again_and_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """At the next interval; and that it is back, too."""
    copies, watched = Copies(TwinClock(), fails=True), Watched()
    watched.copy({SPEED: 1_000})
    with caplog.at_level(logging.INFO):
        poll = polled(copies, watched, 3.0)
        copies.fails = False
        go_on(poll, copies, 2.0)
    assert [record.getMessage() for record in caplog.records] == [
        "its checkpoint is not copied: the store does not answer",
        "its checkpoint is copied again",
    ]
    assert copies.copied == [("speed", 3.0), ("speed", 4.0)]
