"""The followers of a node: of fragments that move here, and of those it is a secondary of."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.agent.effects import Following
from pipeline.agent.follower_thread import FollowerContext, FollowerThread, MakeFollower
from pipeline.agent.turns import Turns
from pipeline.catalog.records import Standby
from pipeline.catalog.transfers import Transfers
from pipeline.clock import Clock, Deadline
from pipeline.event_log.event import LoggedEvent
from pipeline.ids import NO_EPOCH, Epoch, FragmentId, Millis, NodeId
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.run.handover import Followed, FollowedQuery, FollowedState
from pipeline.spark.run.lane_settings import LaneSettings


@dataclass(frozen=True, slots=True)
class _Taken:
    """The follower of a fragment that this node starts, as `Followed`."""

    running: FollowerThread

    def query(
        self, settings: LaneSettings, last: CommitMarker, stop: threading.Event
    ) -> FollowedQuery | None:
        """See `Followed`."""
        return self.running.hand_over(settings, last, stop)

    def state(self) -> FollowedState | None:
        """See `Followed`."""
        return self.running.left()


class Followers:
    """Decides which followers run, and which of them a lane takes.

    Args:
        transfers: the transfers of the catalog.
        make: makes a follower.
        clock: of the end of a transfer.
        log: receives entries of the event log.
        node: this node.
        at_once: how many may be on their way to being level at the same time; the others wait, in
            the order of their priorities. Many at once would take each as long as all of them.
    """

    def __init__(
        self,
        transfers: Transfers,
        make: MakeFollower,
        clock: Clock,
        log: Callable[[LoggedEvent], None],
        node: NodeId,
        at_once: int = 1,
    ) -> None:
        self._context = FollowerContext(transfers, clock, log, node, make, Turns(at_once))
        self._lock = threading.Lock()
        self._threads: dict[FragmentId, FollowerThread] = {}
        self._wanted: dict[FragmentId, Following] = {}
        self._held: set[FragmentId] = set()
        self._left: dict[FragmentId, FollowerThread] = {}
        """The last follower of a fragment, if it is not followed now."""
        self._claimed: dict[FragmentId, Epoch] = {}
        """The last epoch that this node has claimed: only later owners are followed."""
        self._standbys: dict[FragmentId, Standby] = {}

    def follow(self, fragments: tuple[Following, ...]) -> None:
        """Follow these fragments from now on, and no others; never waits."""
        wanted = {one.deployed.id: one for one in fragments}
        with self._lock:
            self._wanted = wanted
            for fragment in self._threads.keys() - self._held:
                self._end_unless_wanted(fragment)
            for fragment in wanted.keys() - self._threads.keys():
                if self._is_due(wanted[fragment]):
                    self._begin(wanted[fragment])
            for fragment in self._left.keys() - wanted.keys() - self._held:
                if self._left[fragment].yields:
                    self._left.pop(fragment).drop()

    def _is_due(self, one: Following) -> bool:
        """Whether a follower is begun, if there is none."""
        return one.is_begun and one.epoch > self._claimed.get(one.deployed.id, NO_EPOCH)

    def _begin(self, one: Following) -> None:
        """Begin a follower; from the state of the last one of its fragment, if that is of use."""
        fragment = one.deployed.id
        before = self._left.pop(fragment, None)
        # A lane that was to take it has failed, or was fenced; one that has its query leaves none.
        if before is not None and before.is_taken and before.join(0):
            before.yield_to(one)
        if before is not None and not before.yields:
            before.drop()
            before = None
        self._threads[fragment] = FollowerThread(one, self._context, before)

    def forget(self, gone: frozenset[FragmentId]) -> None:
        """Remember nothing of fragments that the catalog does not have any more."""
        with self._lock:
            for fragment in gone - self._threads.keys() - self._held:
                self._claimed.pop(fragment, None)
                if (before := self._left.pop(fragment, None)) is not None:
                    before.drop()

    def hold(self, fragment: FragmentId) -> None:
        """End no follower of a fragment that this node is about to claim: a claim ends its move."""
        with self._lock:
            self._held.add(fragment)

    def let_go(self, fragment: FragmentId) -> None:
        """The opposite of `hold`, once it is claimed and taken, or has not been claimed."""
        with self._lock:
            self._held.discard(fragment)
            if fragment in self._threads:
                self._end_unless_wanted(fragment)

    def take(self, fragment: FragmentId, epoch: Epoch) -> Followed | None:
        """The follower of a fragment that this node has claimed, for its lane; None: there is none.

        It can be taken again, as long as the fragment is not followed again: a start may fail.

        Args:
            fragment: its id.
            epoch: that was claimed.
        """
        with self._lock:
            self._claimed[fragment] = epoch
            running = self._threads.pop(fragment, None) or self._left.get(fragment)
            if running is None:
                return None
            running.take()
            self._left[fragment] = running
            return _Taken(running)

    def stop_all(self, deadline: Deadline) -> None:
        """End all of them."""
        with self._lock:
            threads, self._threads = list(self._threads.values()), {}
        for one in threads:
            one.end()
        for one in threads:
            one.join(deadline.remaining_s())

    def _end_unless_wanted(self, fragment: FragmentId) -> None:
        running, one = self._threads[fragment], self._wanted.get(fragment)
        if one is not None and running.goes_on(one):
            running.change(one)
        else:
            if one is not None and self._is_due(one):
                running.yield_to(one)
            running.end()
            self._left[fragment] = self._threads.pop(fragment)

    def standbys(self) -> tuple[Standby, ...]:
        """How far those are that follow as a secondary, by fragment, each with since when."""
        now_ms = self._context.clock.now_ms()
        with self._lock:
            found = {
                fragment: _standby(fragment, running, now_ms)
                for fragment, running in self._threads.items()
                if running.following.is_standby
            }
            for fragment, before in self._standbys.items():
                if fragment in found and found[fragment].is_same(before):
                    found[fragment] = found[fragment].since(before.since_ms)
            self._standbys = found
            return tuple(found[fragment] for fragment in sorted(found))


def _standby(fragment: FragmentId, running: FollowerThread, now_ms: Millis) -> Standby:
    reached = running.reached
    return Standby(
        fragment.network,
        fragment.fragment,
        *running.seen,
        now_ms,
        reached.at_ms,
        reached.state_bytes,
    )
