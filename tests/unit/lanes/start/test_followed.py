"""Starts from the state of a follower."""

from dataclasses import replace

import pytest

from pipeline.ids import BatchId, Incarnation, Millis, Offset
from pipeline.lanes.start.decision import Rebuild
from pipeline.lanes.start.facts import CheckpointFacts, CommittedState
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition
from tests.unit.lanes.start.test_decision import (
    CARS,
    NEW,
    STATEFUL,
    checkpoint,
    ends,
    marker,
    start,
)

LAST = replace(marker(7), needed=ends(3))


def with_new(offset: int) -> CommitMarker:
    """The last marker with another partition, whose records up to an offset were read."""
    end, needed = {**LAST.end, NEW: Offset(offset)}, {**LAST.needed, NEW: Offset(0)}
    return replace(LAST, end=end, needed=needed)


def follower(batch: int = 7, number: int = 52) -> CheckpointFacts:
    """The checkpoint of a follower that has repeated up to a batch, under its own numbers."""
    state = CommittedState(BatchId(number), ends(batch), Millis(batch * 1_000))
    return replace(checkpoint(number, number), state=state, followed=True)


@pytest.mark.parametrize("batch", [7, 6, 4])
@pytest.mark.parametrize("number", [2, 52])
def test_a_lane_begins_from_the_state_of_a_follower(batch: int, number: int) -> None:
    """Level or behind; its batches may have larger numbers than the owner's, or smaller ones."""
    found = start(LAST, follower(batch, number), replace(STATEFUL, positions=ends(7)))
    assert isinstance(found, Rebuild)
    assert not found.chosen
    assert found.since == CommittedState(BatchId(number), ends(batch), Millis(batch * 1_000))
    assert found.since.is_at(LAST.end, LAST.eviction_ms) is (batch == 7)


def test_a_level_follower_continues_a_rebuilt_state() -> None:
    """One that is behind does not: nothing between is a batch of that incarnation."""
    rebuilt = replace(LAST, judged=None)
    for batch, usable in ((7, True), (6, False)):
        found = start(rebuilt, follower(batch), replace(STATEFUL, positions=ends(7)))
        assert isinstance(found, Rebuild)
        assert (found.since is not None) is usable


@pytest.mark.parametrize(
    ("last", "facts", "positions"),
    [
        (LAST, replace(follower(), incarnation=Incarnation("two")), ends(7)),
        (LAST, replace(follower(), foreign="of another Spark"), ends(7)),
        (LAST, replace(follower(), state=None), ends(7)),
        (LAST, follower(8), ends(7)),
        (LAST, follower(2), ends(7)),
        (LAST, follower(), {**ends(7), NEW: Offset(1)}),
        (replace(LAST, eviction_ms=Millis(6_999)), follower(), ends(7)),
        (replace(LAST, end={**LAST.end, NEW: Offset(0)}), follower(), ends(7)),
    ],
)
def test_a_state_that_may_differ_is_not_used(
    last: CommitMarker, facts: CheckpointFacts, positions: dict[InputPartition, Offset]
) -> None:
    """Of another incarnation or engine, ahead, or with other partitions: from the log."""
    found = start(last, facts, replace(STATEFUL, positions=positions))
    assert isinstance(found, Rebuild)
    assert found.since is None
    assert CARS in last.end


@pytest.mark.parametrize(
    ("last", "positions"),
    [
        (LAST, {**ends(7), NEW: Offset(0)}),
        (with_new(0), ends(7)),
        (with_new(0), {**ends(7), NEW: Offset(0)}),
        (with_new(3), {**ends(7), NEW: Offset(3)}),
    ],
)
@pytest.mark.parametrize("batch", [7, 6])
def test_a_state_without_a_partition_that_is_read_from_0_on_is_used(
    last: CommitMarker, positions: dict[InputPartition, Offset], batch: int
) -> None:
    """It is the same state as with that partition, of which it has no record."""
    found = start(last, follower(batch), replace(STATEFUL, positions=positions))
    assert isinstance(found, Rebuild)
    assert found.since is not None
    assert found.since.end == {**ends(batch), NEW: 0}


def test_what_a_new_partition_has_of_the_log_has_to_be_there() -> None:
    """Of what the marker needs no more, dead letters may be gone."""
    last = replace(with_new(3), needed={**LAST.needed, NEW: Offset(1)})
    found = start(last, follower(6), replace(STATEFUL, positions=last.end))
    assert isinstance(found, Rebuild)
    assert found.since is None


def test_a_rebuilt_state_is_continued_by_one_that_is_level_without_new_partitions() -> None:
    """The first batch has read nothing of them."""
    last = replace(LAST, judged=None)
    grown = {**ends(7), NEW: Offset(0)}
    found = start(last, follower(7), replace(STATEFUL, positions=grown))
    assert isinstance(found, Rebuild)
    assert found.since is not None
