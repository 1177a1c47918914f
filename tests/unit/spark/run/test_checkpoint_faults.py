"""Checkpoints that a lane cannot go on from."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from pipeline.errors import (
    BrokenInvariantError,
    MedusaError,
    NotAllowedError,
    RefusedError,
    RetryError,
    UnavailableError,
)
from pipeline.ids import Epoch, Incarnation
from pipeline.lanes.batch import RepeatedOtherwiseError
from pipeline.spark.run.checkpoint_faults import CheckpointFaults
from pipeline.spark.run.rebuild import UnlikeError
from pipeline.spark.run.spark_errors import (
    DamagedCheckpointError,
    LostDataError,
    OutsideBatchError,
)
from tests.unit.lanes.start.test_decision import marker

FOLDER = Path("/c/epoch-4")


@dataclass
class Folders:
    """Notes what is set aside; a failure is known from the second one on."""

    set: list[tuple[Epoch, Incarnation]] = field(default_factory=list)
    failures: int = 0

    def set_aside(self, epoch: Epoch, incarnation: Incarnation) -> None:
        """See `Checkpoints`."""
        self.set.append((epoch, incarnation))

    def suspected(self, _epoch: Epoch, _incarnation: Incarnation) -> bool:
        """See `Checkpoints`."""
        self.failures += 1
        return self.failures > 1


@dataclass
class Copies:
    """Counts how often copies are discarded."""

    discarded: int = 0

    def discard(self, _folder: Path, _marker: object) -> None:
        """See `LaneCopies`."""
        self.discarded += 1


class World:
    """A lane at batch 7 of an incarnation."""

    def __init__(self) -> None:
        self.folders, self.copies = Folders(), Copies()
        self.marker = marker(7)
        self.faults = CheckpointFaults(
            cast("Any", self.folders), cast("Any", self.copies), Epoch(4), cast("Any", self)
        )

    @property
    def is_set_aside(self) -> bool:
        """Whether the checkpoint is, with its copies."""
        assert len(self.folders.set) == self.copies.discarded
        assert set(self.folders.set) <= {(Epoch(4), Incarnation("one"))}
        return bool(self.folders.set)


def failing(around: AbstractContextManager[None], error: MedusaError) -> MedusaError:
    """What leaves the block if an error is raised in it."""
    with pytest.raises(MedusaError) as caught, around:
        raise error
    return caught.value


@pytest.mark.parametrize("kind", [DamagedCheckpointError, RepeatedOtherwiseError])
def test_a_damaged_checkpoint_is_set_aside(kind: type[MedusaError]) -> None:
    """With its copies: they have the same files."""
    world, error = World(), kind("x")
    assert failing(world.faults.of_query(FOLDER), error) is error
    assert world.is_set_aside


def test_an_unknown_failure_sets_aside_when_it_comes_again() -> None:
    """A node that has run out of memory would cost every lane its state."""
    world, error = World(), OutsideBatchError("x")
    for times in (0, 1):
        assert failing(world.faults.of_query(FOLDER), error) is error
        assert world.is_set_aside is bool(times)


@pytest.mark.parametrize("kind", [RetryError, UnavailableError, RefusedError])
def test_other_failures_of_a_query_leave_the_checkpoint(kind: type[MedusaError]) -> None:
    """They say nothing about it."""
    world, error = World(), kind("x")
    assert failing(world.faults.of_query(FOLDER), error) is error
    assert not world.is_set_aside


@pytest.mark.parametrize("kind", [DamagedCheckpointError, UnlikeError, RefusedError, LostDataError])
def test_a_state_to_which_nothing_can_be_added_is_given_up(kind: type[MedusaError]) -> None:
    """The next start decides without it; it would meet the same again."""
    world = World()
    found = failing(world.faults.of_addition(FOLDER), kind("x", place="topic t"))
    assert type(found) is RetryError
    assert found.place == "topic t"
    assert world.is_set_aside


@pytest.mark.parametrize(
    "kind", [RetryError, UnavailableError, NotAllowedError, BrokenInvariantError]
)
def test_what_ends_by_itself_is_waited_for(kind: type[MedusaError]) -> None:
    """And a broken invariant stops the lane."""
    world, error = World(), kind("x")
    assert failing(world.faults.of_addition(FOLDER), error) is error
    assert not world.is_set_aside


def test_an_unknown_failure_of_an_addition_is_tried_again_first() -> None:
    """As that of a query."""
    world, error = World(), OutsideBatchError("x")
    assert failing(world.faults.of_addition(FOLDER), error) is error
    assert not world.is_set_aside
    assert type(failing(world.faults.of_addition(FOLDER), error)) is RetryError
    assert world.is_set_aside
