"""The followers of a node, and how they note in the catalog how far they are."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from pipeline.agent.effects import Follow, Following
from pipeline.agent.follower_thread import TRIES_MAX
from pipeline.catalog.records import OwnerRecord, Transfer
from pipeline.errors import (
    BrokenInvariantError,
    RefusedError,
    RetryError,
    UnavailableError,
)
from pipeline.event_log.event import EventKind
from pipeline.ids import (
    Epoch,
    FragmentName,
    LaneRole,
    Millis,
    NodeId,
)
from pipeline.lanes.follower_phases import FollowerPhase, Reached
from pipeline.lanes.following import NotToFollowError, UnlikeOwnerError
from pipeline.system_clock import SystemClock
from tests.unit.agent.performers import (
    DEPLOYED,
    LIFE,
    MOVING,
    NETWORK,
    NODE,
    PLAN,
    VERSION,
    Node,
    make_node,
)
from tests.unit.agent.support import fresh_marker
from tests.unit.catalog.support import leaving

SOURCE = replace(NODE, node=NodeId("source"))
WITHIN_S = 10.0


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for something that another thread does."""
    ends_s = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < ends_s, what
        time.sleep(0.005)


@contextmanager
def followed() -> Iterator[Node]:
    """A node to which a fragment of another one moves."""
    node = make_node()(None)
    node.catalog.nodes.register(SOURCE)
    node.catalog.nodes.register(NODE)
    node.catalog.owners.claim(NETWORK, MOVING.fragment, SOURCE, Millis(0))
    yield node
    node.stop()


@pytest.fixture
def node() -> Iterator[Node]:
    """As `followed`."""
    with followed() as node:
        yield node


def more_than(found: Sequence[object], number: int) -> bool:
    """Whether there are more than so many."""
    return len(found) > number


def moved(node: Node, within_ms: int = 60_000) -> Transfer:
    """Ask for the move, and let the node follow."""
    now_ms = SystemClock().now_ms()
    transfer = Transfer(
        NETWORK,
        LIFE,
        MOVING.fragment,
        VERSION,
        SOURCE.node,
        Epoch(1),
        NODE.node,
        NODE.started_at_ms,
        now_ms,
        Millis(now_ms + within_ms),
        is_ready=False,
        problem="",
    )
    node.catalog.transfers.ask(transfer)
    node.performer.perform(Follow((Following(DEPLOYED, PLAN.fragments[0], transfer),)))
    return transfer


def stored(node: Node) -> Transfer | None:
    """The transfer in the catalog."""
    found = node.catalog.transfers.of(NETWORK.participant)
    return found[0] if found else None


def is_ready(node: Node) -> bool:
    """Whether the transfer is ready."""
    found = stored(node)
    return found is not None and found.is_ready


def test_a_level_follower_is_taken_by_the_lane_that_starts(node: Node) -> None:
    """The lane may have its query while it runs; else it ends, and the lane has its state."""
    moved(node)
    until(lambda: is_ready(node), "ready")
    (follower,) = node.followers
    assert follower.settings.lane.role is LaneRole.FOLLOWER
    assert follower.settings.epoch == 2
    owner = node.catalog.owners.get(NETWORK, MOVING.fragment)
    assert isinstance(owner, OwnerRecord)
    node.catalog.owners.release(MOVING, leaving(node.catalog, owner, MOVING))
    node.start()
    until(lambda: bool(node.lanes), "a lane")
    lane = node.lanes[0]
    assert lane.followed is not None
    assert not follower.stopped.is_set()
    last = fresh_marker()
    assert lane.followed.query(lane.settings, last, threading.Event()) is None
    assert follower.asked == [(lane.settings, last)]
    assert lane.followed.state() == follower.followed
    assert follower.stopped.is_set()
    assert stored(node) is None


def test_a_lane_without_a_follower_has_no_state_of_one(node: Node) -> None:
    """As after a claim of a fragment whose owner has died."""
    owner = node.catalog.owners.get(NETWORK, MOVING.fragment)
    assert owner is not None
    node.catalog.owners.release(MOVING, leaving(node.catalog, owner, MOVING))
    node.start()
    until(lambda: bool(node.lanes), "a lane")
    assert node.lanes[0].followed is None


def test_a_taken_follower_is_not_begun_again(node: Node) -> None:
    """Until the claim is read the transfer is still in the catalog as the node knows it.

    A start that fails takes the state again.
    """
    transfer = moved(node)
    until(lambda: is_ready(node), "ready")
    followers = node.performer._context.followers
    taken = followers.take(MOVING, Epoch(2))
    assert taken is not None
    state = taken.state()
    assert state is not None
    following = Following(DEPLOYED, PLAN.fragments[0], transfer)
    for _ in range(2):
        node.performer.perform(Follow((following,)))
        taken = followers.take(MOVING, Epoch(2))
        assert taken is not None
        assert taken.state() == state
    assert len(node.followers) == 1
    again = replace(following, transfer=replace(transfer, epoch=Epoch(3)))
    node.performer.perform(Follow((again,)))
    until(lambda: len(node.followers) == 2, "a follower of the next move")
    assert node.followers[1].before == state  # the lane was fenced before it had a query


@pytest.mark.parametrize("error", [None, RetryError("a batch has another outcome")])
def test_a_follower_whose_query_is_taken_over_ends(node: Node, error: Exception | None) -> None:
    """It is not begun again; an error of it is nothing for the move, which is done."""
    moved(node)
    until(lambda: is_ready(node), "ready")
    taken = node.performer._context.followers.take(MOVING, Epoch(2))
    (follower,) = node.followers
    if error is None:
        follower.stopped.set()
    else:
        follower.raises.append(error)
    until(lambda: follower.course.phase is FollowerPhase.TAKEN, "the end")
    assert not follower.discarded.is_set()
    assert len(node.followers) == 1
    assert taken is not None
    assert (found := stored(node)) is not None
    assert found.problem == ""


def test_a_transfer_that_is_ready_by_an_earlier_follower_is_not(node: Node) -> None:
    """A new follower has first to be level itself."""
    transfer = moved(node)
    until(lambda: is_ready(node), "ready")
    node.performer.perform(Follow(()))
    node.followers[0].stopped.wait(WITHIN_S)
    node.levels.append(False)
    stale = replace(transfer, is_ready=True)
    node.performer.perform(Follow((Following(DEPLOYED, PLAN.fragments[0], stale),)))
    until(lambda: len(node.followers) == 2, "another follower")
    assert not is_ready(node)
    node.followers[1].is_level = True
    until(lambda: is_ready(node), "ready")


def test_a_fragment_that_cannot_be_planned_here_is_not_followed(node: Node) -> None:
    """The transfer has the reason."""
    transfer = moved(node)
    until(lambda: is_ready(node), "ready")
    node.catalog.transfers.end(transfer)
    node.catalog.transfers.ask(transfer)
    node.performer.perform(Follow(()))
    problem = RefusedError("another version made the plan")
    node.performer.perform(Follow((Following(DEPLOYED, problem, transfer),)))
    until(lambda: (found := stored(node)) is not None and found.problem != "", "the reason")
    assert len(node.followers) == 1


def test_followers_become_level_one_after_the_other(node: Node) -> None:
    """Only so many build their states at once; one that is level makes room."""
    node.levels.append(False)
    transfer = moved(node)
    until(lambda: len(node.followers) == 1, "the first")
    (first,) = node.followers
    until(first.runs.is_set, "its turn")
    other = replace(DEPLOYED, record=replace(DEPLOYED.record, fragment=FragmentName("other")))
    both = [
        Following(one, PLAN.fragments[0], replace(transfer, fragment=one.id.fragment))
        for one in (DEPLOYED, other)
    ]
    node.performer.perform(Follow(tuple(both)))
    until(lambda: len(node.followers) == 2, "the second")
    assert not node.followers[1].runs.wait(0.2)
    first.is_level = True
    until(node.followers[1].runs.is_set, "its turn")


def test_a_follower_goes_on_while_its_fragment_is_claimed(node: Node) -> None:
    """The claim ends its move; if another node has claimed it, the follower ends."""
    transfer = moved(node)
    until(lambda: is_ready(node), "ready")
    followers = node.performer._context.followers
    (follower,) = node.followers
    followers.hold(MOVING)
    node.performer.perform(Follow(()))
    assert not follower.stopped.is_set()
    assert followers.take(MOVING, Epoch(2)) is not None
    followers.let_go(MOVING)
    assert not follower.stopped.is_set()
    node.performer.perform(Follow((Following(DEPLOYED, PLAN.fragments[0], transfer),)))
    again = replace(transfer, epoch=Epoch(3))
    node.performer.perform(Follow((Following(DEPLOYED, PLAN.fragments[0], again),)))
    until(lambda: len(node.followers) == 2, "a follower of the next move")
    assert not follower.stopped.is_set()
    followers.hold(MOVING)
    node.performer.perform(Follow(()))
    followers.let_go(MOVING)
    until(node.followers[1].stopped.is_set, "the end")


def test_a_cancelled_move_ends_its_follower(node: Node) -> None:
    """And another move of the fragment begins a new one."""
    transfer = moved(node)
    until(lambda: is_ready(node), "ready")
    node.catalog.transfers.end(transfer)
    node.performer.perform(Follow(()))
    until(node.followers[0].discarded.is_set, "the end of the follower")
    moved(node)
    until(lambda: len(node.followers) == 2, "another follower")


def test_a_follower_is_begun_again_after_a_failure(node: Node) -> None:
    """The transfer has the reason, and is not ready meanwhile."""
    moved(node)
    until(lambda: is_ready(node), "ready")
    node.followers[0].raises.append(RetryError("a batch has another outcome"))
    until(lambda: len(node.followers) == 2, "another follower")
    until(lambda: is_ready(node), "ready again")


@pytest.mark.parametrize(
    "error", [BrokenInvariantError("it contradicts itself"), ValueError("a mistake of ours")]
)
def test_a_lasting_failure_is_noted_and_not_tried_again(node: Node, error: Exception) -> None:
    """The owner goes on; the move ends by its time limit, or is cancelled."""
    moved(node)
    until(lambda: is_ready(node), "ready")
    node.followers[0].raises.append(error)
    until(lambda: bool((found := stored(node)) and found.problem), "the reason")
    found = stored(node)
    assert found is not None
    assert str(error) in found.problem
    assert not found.is_ready
    assert len(node.followers) == 1


def test_a_follower_is_begun_a_bounded_number_of_times(node: Node) -> None:
    """Unless its failures are external."""
    transfer = moved(node)
    until(lambda: is_ready(node), "ready")
    refused, down = RefusedError("the log begins later"), UnavailableError("Kafka is down")
    for error in (down, refused, refused):
        node.levels.append(False)
        before = len(node.followers)
        node.followers[-1].raises.append(error)
        until(partial(more_than, node.followers, before), "another follower")
    node.followers[-1].raises.append(refused)
    until(lambda: (found := stored(node)) is not None and found.problem != "", "the reason")
    assert transfer.is_same(stored(node) or transfer)


def test_a_plan_that_comes_later_begins_the_follower(node: Node) -> None:
    """The catalog could not be read when it was planned first, for instance."""
    transfer = moved(node)
    until(lambda: is_ready(node), "ready")
    node.performer.perform(Follow(()))
    problem = UnavailableError("ZooKeeper does not answer")
    node.performer.perform(Follow((Following(DEPLOYED, problem, transfer),)))
    until(lambda: (found := stored(node)) is not None and found.problem != "", "the reason")
    node.performer.perform(Follow((Following(DEPLOYED, PLAN.fragments[0], transfer),)))
    until(lambda: len(node.followers) == 2, "a follower")
    until(lambda: is_ready(node), "ready")


def test_a_move_that_is_not_done_in_time_ends(node: Node) -> None:
    """Its target ends it, and the follower."""
    moved(node, within_ms=50)
    until(lambda: stored(node) is None, "the end of the transfer")
    owner = node.catalog.owners.get(NETWORK, MOVING.fragment)
    assert owner is not None
    assert owner.node == SOURCE.node


def test_a_taken_follower_does_not_end_with_the_time_of_its_move(node: Node) -> None:
    """Its lane starts: the move is done."""
    moved(node, within_ms=500)
    until(lambda: is_ready(node), "ready")
    assert node.performer._context.followers.take(MOVING, Epoch(2)) is not None
    (follower,) = node.followers
    until(lambda: SystemClock().now_ms() > follower_ends_ms(node), "the end of its time")
    assert not follower.stopped.wait(0.1)
    assert follower.course.phase is FollowerPhase.LEVEL


def follower_ends_ms(node: Node) -> int:
    """When the time of the move ends."""
    found = stored(node)
    assert found is not None
    return found.until_ms


def test_a_follower_that_was_stopped_too_early_is_not_run(node: Node) -> None:
    """The stop may come before the thread has made it."""
    moved(node)
    node.performer.perform(Follow(()))
    until(lambda: all(one.stopped.is_set() for one in node.followers), "the end")


# --- secondaries --------------------------------------------------------------------------------


def standing_by(
    node: Node, epoch: int = 1, *, is_begun: bool = True, every_ms: int = 0
) -> Following:
    """Follow the fragment as its secondary; or have copies of its checkpoint so often."""
    owner = OwnerRecord(SOURCE.node, NETWORK.participant, Epoch(epoch), Millis(0), Millis(0))
    record = replace(DEPLOYED.record, active_standbys=1)
    if every_ms:
        record = replace(
            record, active_standbys=0, passive_standbys=1, checkpoint_every_ms=every_ms
        )
    one = replace(DEPLOYED, owner=owner, record=record)
    following = Following(one, PLAN.fragments[0], None, is_standby=is_begun, is_begun=is_begun)
    node.performer.perform(Follow((following,)))
    return following


def phases(node: Node) -> list[FollowerPhase]:
    """What the node reports of those."""
    return [one.phase for one in node.performer._context.followers.standbys()]


def test_a_secondary_follows_its_owner_through_its_restarts(node: Node) -> None:
    """It reports how far it is, and since when."""
    standing_by(node)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    (before,) = node.performer._context.followers.standbys()
    standing_by(node, epoch=2)
    assert len(node.followers) == 1
    assert node.performer._context.followers.standbys() == (before,)
    node.followers[0].reached = Reached(Millis(7), 5)
    (farther,) = node.performer._context.followers.standbys()
    assert farther == replace(before, reached_ms=Millis(7), state_bytes=5)
    node.performer.perform(Follow(()))
    until(node.followers[0].discarded.is_set, "the end")
    assert phases(node) == []


def test_a_follower_of_a_secondary_serves_a_move_too(node: Node) -> None:
    """The move is ready at once; the follower goes on when the move ends in any way."""
    following = standing_by(node)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    transfer = moved(node, within_ms=500)
    both = replace(following, transfer=transfer)
    node.performer.perform(Follow((both,)))
    until(lambda: is_ready(node), "ready")
    until(lambda: stored(node) is None, "the end of its time")
    node.performer.perform(Follow((following,)))
    assert not node.followers[-1].stopped.is_set()
    assert phases(node) == [FollowerPhase.LEVEL]


def test_a_secondary_that_has_claimed_follows_only_later_owners(node: Node) -> None:
    """An old read of the catalog does not begin a follower beside its own lane."""
    standing_by(node)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    followers = node.performer._context.followers
    standing_by(node, is_begun=False)
    assert not node.followers[0].stopped.is_set()
    assert followers.take(MOVING, Epoch(2)) is not None
    standing_by(node)
    assert len(node.followers) == 1
    node.followers[0].stopped.set()
    standing_by(node, epoch=3)
    until(lambda: len(node.followers) == 2, "a follower of the next owner")


def test_a_node_that_is_to_run_a_fragment_begins_no_follower(node: Node) -> None:
    """Its lane starts."""
    standing_by(node, is_begun=False)
    assert node.followers == []


def test_a_secondary_is_discarded_by_other_outcomes_alone(node: Node) -> None:
    """It has repaired its state before, in vain. Whatever else happens may end by itself."""
    standing_by(node)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    for number in range(1, TRIES_MAX + 2):
        node.levels.append(False)
        node.followers[-1].raises.append(NotToFollowError("the owner runs another plan"))
        until(partial(more_than, node.followers, number), "another follower")
    node.followers[-1].raises.append(UnlikeOwnerError("box b0 is not deterministic"))
    until(lambda: phases(node) == [FollowerPhase.DISCARDED], "the end")
    (standby,) = node.performer._context.followers.standbys()
    assert "box b0 is not deterministic" in standby.problem
    until(lambda: bool(node.logged), "an entry")
    assert node.logged[-1].why == "box b0 is not deterministic"
    assert node.followers[-1].discarded.is_set()
    before = len(node.followers)
    moved(node)
    until(partial(more_than, node.followers, before), "a move begins it anew")


def test_a_discarded_follower_of_a_move_is_begun_anew_as_a_secondary(node: Node) -> None:
    """It tries again without an end then, whatever has failed before."""
    transfer = moved(node)
    until(lambda: is_ready(node), "ready")
    node.followers[-1].raises.append(BrokenInvariantError("it contradicts itself"))
    until(lambda: bool((found := stored(node)) and found.problem), "the reason")
    (thread,) = node.performer._context.followers._threads.values()
    until(lambda: thread._is_discarded, "the end")
    following = Following(DEPLOYED, PLAN.fragments[0], transfer, is_standby=True)
    node.performer.perform(Follow((following,)))
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")


def test_what_a_follower_has_left_is_removed_with_the_next_one(node: Node) -> None:
    """Its move has ended in time without a claim: the state might have been of use."""
    moved(node, within_ms=50)
    until(lambda: stored(node) is None, "the end of the transfer")
    assert not node.followers[0].discarded.is_set()
    node.performer.perform(Follow(()))
    standing_by(node)
    until(node.followers[0].discarded.is_set, "removed")


def test_a_thread_that_has_ended_follows_nothing_more(node: Node) -> None:
    """As when its move has ended at the moment at which the node becomes a secondary."""
    moved(node, within_ms=50)
    until(lambda: stored(node) is None, "the end of the transfer")
    until(lambda: node.followers[0].course.phase is FollowerPhase.ABSENT, "the end")
    standing_by(node)
    until(lambda: len(node.followers) == 2, "a follower of the secondary")


def test_an_unexpected_failure_of_a_secondary_is_logged(node: Node) -> None:
    """It is discarded at once, for a while."""
    standing_by(node)
    until(lambda: phases(node) == [FollowerPhase.LEVEL], "level")
    node.followers[-1].raises.append(ValueError("a mistake of ours"))
    until(lambda: phases(node) == [FollowerPhase.DISCARDED], "discarded")
    until(lambda: bool(node.logged), "an entry")
    (entry,) = node.logged
    assert (entry.kind, entry.why) == (EventKind.FOLLOWER_FAILED, "ValueError: a mistake of ours")
    assert dict(entry.facts) == {"discarded": "yes"}
