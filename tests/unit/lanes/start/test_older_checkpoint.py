"""Rebuilds that begin from an older checkpoint."""

from dataclasses import replace

import pytest

from pipeline.ids import BatchId, Incarnation, Millis, Offset
from pipeline.lanes.start.decision import Rebuild
from pipeline.lanes.start.facts import CheckpointFacts, CommittedState, Unusable
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition
from pipeline.planner.state import OnChange
from tests.unit.lanes.start.test_decision import (
    GONE,
    NEW,
    STATEFUL,
    checkpoint,
    ends,
    marker,
    start,
)


def older(batch: int = 4, planned: int | None = None) -> CheckpointFacts:
    """A checkpoint before the last batch, whose state is known."""
    state = CommittedState(BatchId(batch), ends(batch), Millis(batch * 1_000))
    return replace(checkpoint(batch, batch if planned is None else planned), state=state)


REACHES_BACK = replace(marker(7), needed=ends(3))
"""Its windows are open since before the checkpoint."""


@pytest.mark.parametrize("planned", [4, 5])
def test_a_rebuild_begins_from_an_older_checkpoint(planned: int) -> None:
    """Whether the next batch is planned there or not; it needs no less than from the log."""
    request = replace(STATEFUL, positions=ends(7))
    found = start(REACHES_BACK, older(planned=planned), request)
    assert isinstance(found, Rebuild)
    assert found.since == CommittedState(BatchId(4), ends(4), Millis(4_000))
    assert found.begin == ends(3)
    assert f"batch 4 is committed and {planned} planned" in found.why
    assert isinstance(written := start(replace(marker(5), needed=ends(3)), older(3, 4)), Rebuild)
    assert written.since is not None


@pytest.mark.parametrize(
    ("last", "facts", "positions"),
    [
        (REACHES_BACK, replace(older(), incarnation=Incarnation("two")), ends(7)),
        (REACHES_BACK, replace(older(), foreign="of another Spark"), ends(7)),
        (REACHES_BACK, replace(older(), state=None), ends(7)),
        (REACHES_BACK, replace(older(), planned=None), ends(7)),
        (REACHES_BACK, older(planned=6), ends(7)),
        (REACHES_BACK, older(), {**ends(7), NEW: Offset(1)}),
        (replace(REACHES_BACK, judged=None), older(), ends(7)),
        (replace(REACHES_BACK, needed=ends(5)), older(), ends(7)),
        (replace(REACHES_BACK, eviction_ms=Millis(3_999)), older(), ends(7)),
        (replace(REACHES_BACK, end={**ends(7), NEW: Offset(0)}), older(), ends(7)),
        (replace(REACHES_BACK, state="1:abc"), older(), ends(7)),
        (REACHES_BACK, GONE, ends(7)),
    ],
)
def test_a_rebuild_does_not_begin_from_what_may_differ(
    last: CommitMarker, facts: CheckpointFacts | Unusable, positions: dict[InputPartition, Offset]
) -> None:
    """Another incarnation, engine, plan or partitions; damage; or less is read of the log."""
    request = replace(STATEFUL, positions=positions)
    if last.state != marker(7).state:
        request = replace(request, on_change=OnChange.REBUILD)
    found = start(last, facts, request)
    assert isinstance(found, Rebuild)
    assert found.since is None


def test_a_partition_that_came_later_begins_at_0_in_an_older_checkpoint() -> None:
    """As the lane has begun it; the checkpoint has no record of it."""
    needed = {**ends(3), NEW: Offset(0)}
    last = replace(REACHES_BACK, end={**ends(7), NEW: Offset(5)}, needed=needed)
    found = start(last, older(), replace(STATEFUL, positions=last.end))
    assert isinstance(found, Rebuild)
    assert found.since is not None
    assert found.since.end == {**ends(4), NEW: 0}


def test_a_checkpoint_ahead_of_the_marker_is_not_used() -> None:
    """Its state contains records that the next batch reads."""
    found = start(REACHES_BACK, older(8), replace(STATEFUL, positions=ends(7)))
    assert isinstance(found, Rebuild)
    assert found.since is None
