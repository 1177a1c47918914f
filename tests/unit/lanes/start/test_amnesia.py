"""Decisions of a start with amnesia."""

from dataclasses import replace

import pytest

from pipeline.errors import FencedError, RefusedError
from pipeline.ids import BatchId, Incarnation, Millis, Offset
from pipeline.lanes.start.decision import BeginAt, Rebuild, SkipToEnd
from pipeline.lanes.start.facts import CommittedState
from pipeline.lanes.start.markers import adopted, begun_anew, rebuilt
from pipeline.markers.gap import Gap
from pipeline.planner.state import OnChange
from tests.unit.lanes.start.test_decision import (
    GONE,
    ONE,
    STATEFUL,
    STATELESS,
    checkpoint,
    ends,
    marker,
    start,
)

FORGETS = replace(STATEFUL, amnesia=True)


def test_with_amnesia_a_lost_state_is_not_built_again() -> None:
    """Whatever is wrong with the checkpoint, and although the dead letters are gone."""
    last = replace(marker(7), letters="another", letters_from={0: Offset(3)})
    for facts in (GONE, checkpoint(7, 7, "other"), checkpoint(3, 4)):
        found = start(last, facts, FORGETS)
        assert isinstance(found, SkipToEnd)
        assert found.marker == last
    assert start(last, GONE, FORGETS) == SkipToEnd(last, GONE.why)
    other = replace(last, state="0:digest")
    assert isinstance(start(other, GONE, replace(FORGETS, state="1:digest")), SkipToEnd)


def test_with_amnesia_a_state_that_is_there_is_continued() -> None:
    """So is that of a follower which lacks little, and a lane without state goes on."""
    for committed, planned in ((7, 7), (7, 8), (6, 7)):
        assert start(marker(7), checkpoint(committed, planned), FORGETS) == start(
            marker(7), checkpoint(committed, planned)
        )
    level = CommittedState(BatchId(2), ends(7), Millis(7_000))
    followed = replace(checkpoint(2, 2), followed=True, state=level)
    found = start(marker(7), followed, FORGETS)
    assert isinstance(found, Rebuild)
    assert found.since == level
    state = CommittedState(BatchId(2), ends(6), Millis(6_000))
    behind = replace(followed, state=state)
    lacks = sum(int(marker(7).end[at]) - offset for at, offset in state.end.items())
    assert lacks > 0
    assert start(marker(7), behind, replace(FORGETS, most=lacks)) == start(marker(7), behind)
    assert isinstance(start(marker(7), behind, replace(FORGETS, most=lacks - 1)), SkipToEnd)
    assert isinstance(start(marker(7), GONE, replace(FORGETS, stateful=False)), BeginAt)
    assert isinstance(start(marker(-1), GONE, FORGETS), BeginAt)


def test_with_amnesia_a_state_that_lacks_little_needs_the_dead_letters() -> None:
    """Without them it begins as with no state at all; a state that lacks nothing needs none."""
    last = replace(marker(7), letters="another", letters_from={0: Offset(3)})
    behind = CommittedState(BatchId(2), ends(6), Millis(6_000))
    facts = replace(checkpoint(2, 2), followed=True, state=behind)
    assert isinstance(start(last, facts, FORGETS), SkipToEnd)
    with pytest.raises(RefusedError, match="dead-letter topic"):
        start(last, facts)
    level = replace(facts, state=CommittedState(BatchId(2), ends(7), Millis(7_000)))
    for request in (FORGETS, STATEFUL):
        found = start(last, level, request)
        assert isinstance(found, Rebuild)
        assert found.since == level.state
        after = rebuilt(found, ends(6), BatchId(2), request, ONE)
        assert (after.letters, after.letters_from) == (last.letters, last.letters_from)


def test_amnesia_replaces_no_refusal_and_no_choice() -> None:
    """Lost markers, another owner, another state."""
    with pytest.raises(RefusedError, match="holds no commit marker"):
        start(None, GONE, replace(FORGETS, ran_before=True))
    with pytest.raises(FencedError):
        start(marker(7, epoch=4), GONE, FORGETS)
    with pytest.raises(RefusedError, match="another version of the network"):
        start(marker(7), GONE, replace(FORGETS, state="other"))
    for choice in OnChange:
        assert isinstance(start(marker(7), GONE, replace(FORGETS, on_change=choice)), Rebuild)


def test_a_choice_ends_a_gap_and_a_rebuild_keeps_it() -> None:
    """The state of a choice is another one; that of a rebuild is the same."""
    gap = Gap(ONE, (), None, Millis(5), Millis(9), Millis(1))
    last = replace(marker(7), gap=gap)
    again = Rebuild(last, ends(5), None, "gone")
    two = Incarnation("two")
    assert rebuilt(again, ends(5), BatchId(0), STATEFUL, two).gap == gap
    chosen = replace(again, chosen=True)
    assert rebuilt(chosen, ends(5), BatchId(0), STATEFUL, two).gap is None
    assert begun_anew(last, STATELESS, two).gap is None
    assert adopted(last, STATEFUL).gap == gap


def test_amnesia_skips_nothing_of_a_lane_that_has_not_begun() -> None:
    """One that takes an output over has a promise and counts, and begins where its deploy says."""
    anew = replace(marker(-1), boundary_ms=Millis(50), eviction_ms=Millis(50))
    anew = replace(anew, totals=replace(anew.totals, records_in=9))
    for request in (replace(FORGETS, anew=True), FORGETS):  # and once more, after a failure
        found = start(anew, GONE, request)
        assert isinstance(found, Rebuild)
        assert found.begin == anew.end


def test_a_level_state_is_continued_although_a_topic_has_grown() -> None:
    """The new partition begins at 0, so nothing of it is in the state."""
    last = marker(7)
    at = next(iter(last.end))
    positions = {**last.end, replace(at, partition=9): Offset(0)}
    level = CommittedState(BatchId(2), ends(7), Millis(7_000))
    followed = replace(checkpoint(2, 2), followed=True, state=level)
    found = start(last, followed, replace(FORGETS, positions=positions))
    assert isinstance(found, Rebuild)
    assert found.since is not None
    assert found.since.end == positions
