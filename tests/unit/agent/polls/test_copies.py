"""The poll that copies checkpoints."""

import logging
from dataclasses import dataclass, field

import pytest

from pipeline.agent.polls.copies import CopiesPoll
from pipeline.agent.watched import Watched
from pipeline.checkpoint_store.manifest import CheckpointCopy
from pipeline.errors import UnavailableError
from pipeline.ids import BatchId, Epoch, FragmentId, FragmentName, Incarnation, Millis, NetworkLife
from tests.unit.agent.support import SPEED

OTHER = FragmentId(SPEED.network, FragmentName("tow"))
COPY = CheckpointCopy(
    NetworkLife("life"), Incarnation("1-1"), Epoch(1), BatchId(1), Millis(1), 2, "4.2.0", ()
)


@dataclass
class Copies:
    """Records what is to be copied."""

    fails: set[FragmentId] = field(default_factory=set)
    asked: list[tuple[str, int]] = field(default_factory=list)

    def copy(self, fragment: FragmentId, every_ms: int) -> CheckpointCopy | None:
        """Copy, unless it fails."""
        if fragment in self.fails:
            raise UnavailableError("the store does not answer")
        self.asked.append((fragment.fragment, every_ms))
        return COPY


def test_each_fragment_is_asked_for_with_its_interval() -> None:
    """Those that are wanted now, and no others."""
    copies, watched = Copies(), Watched()
    poll = CopiesPoll(copies, watched)
    watched.copy({SPEED: 1_000, OTHER: 2_000})
    poll.read()
    watched.copy({OTHER: 3_000})
    poll.read()
    assert copies.asked == [("speed", 1_000), ("tow", 2_000), ("tow", 3_000)]


def test_a_fragment_that_fails_does_not_hold_others_and_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And that it is copied again, too."""
    copies, watched = Copies(fails={SPEED}), Watched()
    watched.copy({SPEED: 1_000, OTHER: 1_000})
    poll = CopiesPoll(copies, watched)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            poll.read()
        copies.fails.clear()
        poll.read()
    assert [record.getMessage() for record in caplog.records] == [
        "its checkpoint is not copied: the store does not answer",
        "its checkpoint is copied again",
    ]
    assert [name for name, _ in copies.asked] == ["tow"] * 3 + ["speed", "tow"]
