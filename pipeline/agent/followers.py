"""The followers of a node: one thread for each fragment that moves here."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from pipeline.agent.back_off import back_off_ms
from pipeline.agent.effects import Following
from pipeline.agent.logged import of_transfer
from pipeline.catalog.records import Transfer
from pipeline.catalog.transfers import Transfers
from pipeline.clock import Clock, Deadline
from pipeline.errors import BrokenInvariantError, MedusaError
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import NO_RUN, Epoch, FragmentId, LaneId, LaneRole
from pipeline.lanes.follower_phases import FollowerCourse, FollowerEvent, FollowerPhase
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.plan import Fragment
from pipeline.spark.run.handover import Followed, FollowedQuery, FollowedState
from pipeline.spark.run.lane_settings import LaneSettings

TRIES_MAX: Final = 3
"""How often a follower is begun anew after a failure; then the transfer only waits for its end."""
STOP_S: Final = 20.0
"""How long the start of a lane waits for its follower to end; then it begins without its state."""
_PAUSE_S: Final = 1.0

_log = logging.getLogger(__name__)


class FollowerLane(Protocol):
    """As in `pipeline/spark/run/follower.py`."""

    @property
    def followed(self) -> FollowedState | None:
        """The state that it has left, once `run` has returned; None: there is none."""

    def hand_over(
        self, settings: LaneSettings, last: CommitMarker, stop: threading.Event
    ) -> FollowedQuery | None:
        """As `query` of `Followed`; from another thread."""

    def discard(self) -> None:
        """Remove what it has left, once `run` has returned, unless its query was taken over."""

    def run(self) -> None:
        """Build the state and follow; returns after `request_stop`, or if its query is taken."""

    def request_stop(self) -> None:
        """Let the current batch finish, then return from `run`."""


MakeFollower = Callable[[LaneSettings, Callable[[], None], FollowerCourse], FollowerLane]
"""The settings of the lane that would start now; what is called about once a second; its phase."""


class _OverError(MedusaError):
    """The transfer has ended, so that its follower ends."""

    code = "transfer-over"


@dataclass(slots=True)
class _Thread:
    """The thread of one follower; `before`: that of an earlier one, which has to end first."""

    following: Following
    course: FollowerCourse
    before: "_Thread | None" = None
    stop: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    lane: FollowerLane | None = None
    is_ready: bool = False
    is_taken: bool = False
    has_turn: bool = False
    followed: FollowedState | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is not begun again."""
        return self.is_taken or self.stop.is_set()

    def end(self) -> None:
        """Let it end after its batch."""
        self.stop.set()
        if self.lane is not None:
            self.lane.request_stop()

    def join(self, within_s: float) -> bool:
        """Wait for its end; returns whether it has ended."""
        if self.thread is None:
            return True
        self.thread.join(within_s)
        return not self.thread.is_alive()


@dataclass(frozen=True, slots=True)
class _Taken:
    """The follower of a fragment that this node starts, as `Followed`."""

    running: _Thread

    def query(
        self, settings: LaneSettings, last: CommitMarker, stop: threading.Event
    ) -> FollowedQuery | None:
        """See `Followed`."""
        lane = self.running.lane
        return None if lane is None else lane.hand_over(settings, last, stop)

    def state(self) -> FollowedState | None:
        """See `Followed`."""
        self.running.end()
        if not self.running.join(STOP_S):
            label = _label(self.running.following.deployed.id)
            _log.warning("its follower does not end", extra=label)
            return None
        return self.running.followed


class Followers:
    """Runs followers, and notes in the catalog how far they are.

    Args:
        transfers: the transfers of the catalog.
        make: makes a follower.
        clock: of the end of a transfer.
        log: receives entries of the event log.
        at_once: how many may be on their way to being level at the same time; the others wait. Many
            at once would take each as long as all of them.
    """

    def __init__(
        self,
        transfers: Transfers,
        make: MakeFollower,
        clock: Clock,
        log: Callable[[LoggedEvent], None],
        at_once: int = 1,
    ) -> None:
        self._transfers = transfers
        self._make = make
        self._clock = clock
        self._log_event = log
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(at_once)
        self._threads: dict[FragmentId, _Thread] = {}
        self._wanted: dict[FragmentId, Following] = {}
        self._held: set[FragmentId] = set()
        self._left: dict[FragmentId, _Thread] = {}
        """The last follower of a fragment, if it is not followed now."""

    def follow(self, fragments: tuple[Following, ...]) -> None:
        """Follow these fragments from now on, and no others; never waits.

        One whose follower was taken for its move is not followed again.
        """
        wanted = {one.deployed.id: one for one in fragments}
        with self._lock:
            self._wanted = wanted
            for fragment in self._threads.keys() - self._held:
                self._end_unless_wanted(fragment)
            for fragment in wanted.keys() - self._threads.keys():
                one, left = wanted[fragment], self._left.get(fragment)
                same = left is not None and one.transfer.is_same(left.following.transfer)
                if left is None or not (same and left.is_taken):
                    self._threads[fragment] = self._started(one, self._left.pop(fragment, None))

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

    def take(self, fragment: FragmentId) -> Followed | None:
        """The follower of a fragment that this node starts, for its lane; None: there is none.

        It can be taken again, as long as the fragment is not followed again: a start may fail.
        """
        with self._lock:
            running = self._threads.pop(fragment, None) or self._left.get(fragment)
            if running is None:
                return None
            running.is_taken = True
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
        if one is None or not running.following.goes_on(one):
            running.end()
            self._left[fragment] = self._threads.pop(fragment)

    # --- threads --------------------------------------------------------------------------------

    def _started(self, following: Following, before: _Thread | None) -> _Thread:
        running = _Thread(following, FollowerCourse(f"fragment {following.deployed.id}"), before)
        name = f"follower {following.deployed.id}"
        running.thread = threading.Thread(target=self._run, args=(running,), name=name, daemon=True)
        running.thread.start()
        return running

    def _run(self, running: _Thread) -> None:
        """Follow until the stop; after a failure again, a bounded number of times in a row."""
        if self._alone(running):
            self._try(running)
        is_taken = running.is_taken
        if running.lane is not None and not is_taken and running.followed is None:
            running.lane.discard()
        if running.course.phase is not FollowerPhase.ABSENT:
            running.course.move(FollowerEvent.CLAIMED if is_taken else FollowerEvent.ENDED)

    def _try(self, running: _Thread) -> None:
        transfer, label = running.following.transfer, _label(running.following.deployed.id)
        tries = failures = 0
        while failures < TRIES_MAX and not running.is_over:
            try:
                self._run_once(running)
            except _OverError:
                return
            except MedusaError as error:
                running.course.move(FollowerEvent.FAILED)
                _log.warning("the follower has failed: %s", error, extra=label)
                if running.is_taken:
                    return
                tries, failures = tries + 1, failures + (not error.external)
                if running.is_ready:
                    failures = min(failures, 1)
                self._note_failure(running, str(error))
                if isinstance(error, BrokenInvariantError) or error is running.following.fragment:
                    break
                running.stop.wait(back_off_ms(transfer.id, tries) / 1_000)
            except Exception as error:  # noqa: BLE001 - the thread's top
                running.course.move(FollowerEvent.FAILED)
                _log.exception("the follower has failed", extra=label)
                self._note_failure(running, f"{type(error).__name__}: {error}".splitlines()[0])
                break
        while not (running.is_taken or running.stop.wait(_PAUSE_S) or self._is_over(transfer)):
            pass

    def _alone(self, running: _Thread) -> bool:
        """Wait for the end of the earlier follower, whose folder is the same; False: too late."""
        while running.before is not None and not running.before.join(_PAUSE_S):
            if running.stop.is_set() or self._is_over(running.following.transfer):
                return False
        running.before = None
        return True

    def _run_once(self, running: _Thread) -> None:
        """Run a follower; of an earlier one nothing is level any more."""
        following = running.following
        running.course.move(FollowerEvent.BEGUN)
        if isinstance(following.fragment, MedusaError):
            raise following.fragment
        self._transfers.note_failed(following.transfer, "")
        running.is_ready = False
        settings = _settings(following, following.fragment)
        lane = self._make(settings, partial(self._watch, running), running.course)
        running.lane = lane
        try:
            self._await_turn(running)
            if running.stop.is_set():
                return
            _log.info("followed, to move here", extra=_label(following.deployed.id))
            lane.run()
        except _OverError:  # this node may claim it next, as that of a drained one
            running.followed = lane.followed
            raise
        finally:
            self._end_turn(running)
        running.followed = lane.followed if running.is_taken else None

    def _await_turn(self, running: _Thread) -> None:
        """Wait until it may begin."""
        while not running.stop.is_set():
            if self._turns.acquire(timeout=_PAUSE_S):
                running.has_turn = True
                return
            if self._is_over(running.following.transfer):
                raise _OverError("the transfer has ended")

    def _end_turn(self, running: _Thread) -> None:
        """Let another one begin."""
        if running.has_turn:
            running.has_turn = False
            self._turns.release()

    def _watch(self, running: _Thread) -> None:
        """Note once that a follower is level; end it with its transfer."""
        transfer = running.following.transfer
        if running.is_taken:
            return
        if self._is_over(transfer):
            raise _OverError("the transfer has ended")
        if running.course.is_level:
            self._end_turn(running)
        if running.is_ready or not running.course.is_level or running.stop.is_set():
            return
        try:
            if self._transfers.note_ready(transfer):
                _log.info("level: its owner may release it", extra=_label(transfer.id))
                self._log_step(EventKind.FOLLOWER_LEVEL, transfer)
        except MedusaError as error:
            _log.debug("not noted to be level yet: %s", error)
        else:
            running.is_ready = True

    def _log_step(self, kind: EventKind, transfer: Transfer, why: str = "") -> None:
        now_ms = self._clock.now_ms()
        self._log_event(of_transfer(kind, transfer, transfer.to, now_ms, why))

    def _note_failure(self, running: _Thread, problem: str) -> None:
        self._log_step(EventKind.FOLLOWER_FAILED, running.following.transfer, problem)
        try:
            self._transfers.note_failed(running.following.transfer, problem)
        except MedusaError as error:
            _log.debug("the failure is not noted: %s", error)

    def _is_over(self, transfer: Transfer) -> bool:
        """Whether the time of a transfer has passed; then it is ended."""
        if self._clock.now_ms() <= transfer.until_ms:
            return False
        try:
            if self._transfers.end(transfer):
                text = "its move has ended: it was not done in time"
                _log.warning("%s", text, extra=_label(transfer.id))
                self._log_step(EventKind.MOVE_EXPIRED, transfer)
        except MedusaError as error:
            _log.debug("the move is not ended: %s", error)  # the next read of the catalog does
        return True


def _settings(following: Following, fragment: Fragment) -> LaneSettings:
    """The settings of the lane that would start on this node now."""
    deployed, transfer = following.deployed, following.transfer
    return LaneSettings(
        lane=LaneId(deployed.id, LaneRole.FOLLOWER),
        run=NO_RUN,
        fragment=fragment,
        life=deployed.network.life,
        version=deployed.record.version,
        epoch=Epoch(transfer.epoch + 1),
        topic_ids=deployed.topic_ids,
        letters_kept_ms=_nothing,
        ran_before=True,
        record_start=_nothing,
        check_wanted=_nothing,
        choice=deployed.choice,
        begins=deployed.begins,
        succession=deployed.succession,
    )


def _nothing() -> None:
    """A follower records nothing."""


def _label(fragment: FragmentId) -> dict[str, str]:
    return {"fragment": str(fragment)}
