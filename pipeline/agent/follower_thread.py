"""One follower of a node, on a thread of its own."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from pipeline.agent.back_off import back_off_ms
from pipeline.agent.effects import Following
from pipeline.agent.follower_notes import FollowerNotes, NotesContext
from pipeline.agent.turns import Turns, rank_of
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError, MedusaError
from pipeline.ids import NO_RUN, Epoch, LaneId, LaneRole
from pipeline.lanes.follower_phases import (
    FollowerCourse,
    FollowerEvent,
    FollowerPhase,
    Reached,
)
from pipeline.lanes.following import UnlikeOwnerError
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.plan import Fragment
from pipeline.spark.run.disk import DiskFullError
from pipeline.spark.run.handover import FollowedQuery, FollowedState
from pipeline.spark.run.lane_settings import LaneSettings

TRIES_MAX: Final = 3
"""How often the follower of a move is begun anew after a failure; then it is discarded. That of a
secondary is tried without an end: a failure may end by itself. One whose repairs do not help is
discarded at once."""
DISK_FULL_S: Final = 300.0
"""How long a follower rests whose disk is full; it has removed its files."""
AGAIN_S: Final = 600.0
"""After this time a discarded follower of a secondary is begun again, once."""
TURN_S: Final = 30.0
"""How long a follower that has its state, but is not level, lets others wait."""
STOP_S: Final = 20.0
"""How long the start of a lane waits for its follower to end; then it begins without its state."""
_PAUSE_S: Final = 1.0

_log = logging.getLogger(__name__)


class FollowerLane(Protocol):
    """As in `pipeline/spark/run/follower.py` and `copied_standby.py`."""

    @property
    def problem(self) -> str:
        """Why it gets no further at present, although it goes on trying; empty: it does."""

    @property
    def reached(self) -> Reached:
        """How far its state is."""

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


MakeFollower = Callable[
    [Following, LaneSettings, Callable[[], None], FollowerCourse, FollowedState | None],
    FollowerLane,
]
"""What is followed; the settings of the lane that would start now; what is called about once a
second; its phase; the state of the follower whose place it takes."""


@dataclass(frozen=True, slots=True)
class FollowerContext(NotesContext):
    """What the followers of a node share.

    Args:
        make: makes a follower.
        turns: which of them begin now.
    """

    make: MakeFollower
    turns: Turns


class _OverError(MedusaError):
    """The transfer has ended, so that its follower ends."""

    code = "transfer-over"


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failure of a follower.

    Args:
        problem: why.
        counts: whether it is discarded after some of them.
        is_lasting: whether it is discarded at once, and its state with it.
    """

    problem: str
    counts: bool
    is_lasting: bool


class FollowerThread:
    """Begins a follower, and begins it anew after a failure; notes in the catalog how far it is.

    Args:
        following: what it follows.
        context: of the node's followers.
        before: the follower whose place it takes, and from whose state it begins; None: none.
    """

    def __init__(
        self,
        following: Following,
        context: FollowerContext,
        before: "FollowerThread | None" = None,
    ) -> None:
        fragment = following.deployed.id
        self._following = following
        self._context = context
        self._before = before
        self._course = FollowerCourse(f"fragment {fragment}")
        self._label = {"fragment": str(fragment)}
        self._stop = threading.Event()
        self._lane: FollowerLane | None = None
        self._notes = FollowerNotes(fragment, context)
        self._was_level = self._has_turn = self._is_discarded = self._is_dropped = False
        self._is_over_by_time = self._yields = self._is_full = False
        self._built_s: float | None = None
        self._followed: FollowedState | None = None
        self._problem = ""
        self.is_taken = False
        name = f"follower {fragment}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # --- from other threads ---------------------------------------------------------------------

    @property
    def following(self) -> Following:
        """What it follows."""
        return self._following

    @property
    def seen(self) -> tuple[FollowerPhase, str]:
        """Its phase, and why its last try has failed; empty: it has not."""
        lane = self._lane
        return self._course.phase, self._problem or ("" if lane is None else lane.problem)

    @property
    def reached(self) -> Reached:
        """How far its state is."""
        lane = self._lane
        return Reached() if lane is None else lane.reached

    def goes_on(self, other: Following) -> bool:
        """Whether it serves another purpose too; then `change` says so.

        One that is discarded does not serve a purpose that it did not have.
        """
        own = self._following
        is_asked = other.transfer is not None and own.transfer is None
        stands_by = other.is_standby and not own.is_standby
        is_of_use = not (self._is_discarded and (is_asked or stands_by))
        return is_of_use and self._thread.is_alive() and own.goes_on(other)

    def change(self, following: Following) -> None:
        """Follow for another purpose from now on: for a move, as a secondary, or both."""
        self._following = following

    def hand_over(
        self, settings: LaneSettings, last: CommitMarker, stop: threading.Event
    ) -> FollowedQuery | None:
        """The query of its follower, once that has repeated everything up to a marker."""
        lane = self._lane
        return None if lane is None else lane.hand_over(settings, last, stop)

    def left(self) -> FollowedState | None:
        """End it, unless its query was taken over; returns the state it has left."""
        self.end()
        if not self._following.is_active:  # it has what it has, also if it hangs
            return self._followed or (None if self._lane is None else self._lane.followed)
        if self.join(STOP_S):
            return self._followed
        _log.warning("its follower does not end", extra=self._label)
        return None

    def yield_to(self, following: Following) -> None:
        """Leave its state to the next follower, if that can begin from it.

        It can if it is of the same life of the network, is planned, and repeats batches too.
        """
        own = self._following.deployed.network.life
        repeats = following.is_active and not isinstance(following.fragment, MedusaError)
        self._yields = repeats and own == following.deployed.network.life

    @property
    def yields(self) -> bool:
        """Whether the next follower may begin from its state."""
        return self._yields

    def yielded(self) -> FollowedState | None:
        """Wait for its end, for a limited time; returns the state that it leaves to another one.

        Called by that one, once this one was told to end.
        """
        self.end()
        if self.join(STOP_S):
            return self._followed
        _log.warning("the follower before it does not end", extra=self._label)
        self._yields, self._is_dropped = False, True
        return None

    def take(self) -> None:
        """Leave its query, or its state, to the lane that starts."""
        self.is_taken, self._yields = True, False

    def end(self) -> None:
        """Let it end after its batch."""
        self._stop.set()
        if self._lane is not None:
            self._lane.request_stop()

    def drop(self) -> None:
        """End it, and remove what it leaves, since another follower takes its place.

        A query that a lane has taken is the lane's.
        """
        if self.is_taken:
            if self._followed is not None and self._lane is not None:  # its start has failed
                self._lane.discard()
            return
        self._is_dropped = True
        self.end()
        if self._lane is not None and not self._thread.is_alive():
            self._lane.discard()

    def join(self, within_s: float) -> bool:
        """Wait for its end; returns whether it has ended."""
        self._thread.join(within_s)
        return not self._thread.is_alive()

    # --- its thread -----------------------------------------------------------------------------

    @property
    def _is_over(self) -> bool:
        """Whether it is not begun again."""
        return self.is_taken or self._stop.is_set()

    def _run(self) -> None:
        """Follow until the stop; after a failure again, from the state that was left.

        What it leaves is kept if a lane has it, or may take it, or another follower does.
        """
        before, self._before = self._before, None
        if before is not None:
            self._followed = before.yielded()
        self._try()
        is_taken, lane = self.is_taken, self._lane
        is_kept = is_taken or self._yields or self._is_over_by_time
        if self._is_dropped or not is_kept:
            self._followed = None
            if lane is not None:
                lane.discard()
            elif before is not None:
                before.drop()
        if self._course.phase is not FollowerPhase.ABSENT:
            self._course.move(FollowerEvent.CLAIMED if is_taken else FollowerEvent.ENDED)

    def _try(self) -> None:
        """Follow, until it is over or was discarded."""
        tries = failures = 0
        while not self._is_over:
            failure = self._failure()
            if failure is None:
                continue
            self._course.move(FollowerEvent.FAILED)
            if failure.is_lasting:
                self._forget()
            if self.is_taken:
                return
            if self._was_level:
                tries, failures = 0, min(failures, 1)
            tries, failures = tries + 1, failures + failure.counts
            self._problem = failure.problem
            if self._following.transfer is not None:
                self._notes.failed(self._following.transfer, failure.problem)
            if failure.is_lasting or failures >= TRIES_MAX:
                self._rest()
                failures = TRIES_MAX - 1
            elif self._is_full:
                self._stop.wait(DISK_FULL_S)
            else:
                self._stop.wait(back_off_ms(self._following.deployed.id, tries) / 1_000)

    def _failure(self) -> _Failure | None:
        """Follow once; returns why it has failed, None: it was stopped, or its query was taken."""
        try:
            self._run_once()
        except _OverError:
            self._is_over_by_time = True
            self._stop.set()
        except MedusaError as error:
            self._say_failed(error)
            lasting = isinstance(error, BrokenInvariantError | UnlikeOwnerError)
            lasting = lasting or error is self._following.fragment
            return _Failure(str(error), self._counts(error), lasting)
        except Exception as error:  # noqa: BLE001 - the thread's top
            _log.exception("the follower has failed", extra=self._label)
            problem = f"{type(error).__name__}: {error}".splitlines()[0]
            return _Failure(problem, counts=True, is_lasting=True)
        return None

    def _say_failed(self, error: MedusaError) -> None:
        """Log a failure; that the disk is full once, until it has room again."""
        was_full, self._is_full = self._is_full, isinstance(error, DiskFullError)
        if not self._is_full:
            _log.warning("the follower has failed: %s", error, extra=self._label)
        elif not was_full:
            text = "the follower has removed its files, and tries again every %d s: %s"
            _log.error(text, DISK_FULL_S, error, extra=self._label)

    def _forget(self) -> None:
        """Remove the state that it has left: it may differ from that of the owner."""
        if self._lane is not None:
            self._lane.discard()
        self._followed = None

    def _rest(self) -> None:
        """Do nothing until it is over; a follower of a secondary is begun again after a while."""
        self._is_discarded, clock = True, self._context.clock
        if self._following.transfer is None and not self._is_over:
            self._notes.discarded(self._problem)
        again = Deadline.after(clock, AGAIN_S, "beginning a discarded follower again")
        while not (self.is_taken or self._stop.wait(_PAUSE_S) or self._has_passed()):
            if self._following.is_standby and again.passed:
                self._is_discarded = False
                return
        self._stop.set()

    def _counts(self, error: MedusaError) -> bool:
        """Whether a failure is one of those after some of which it is discarded."""
        return not self._following.is_standby and not error.external

    def _run_once(self) -> None:
        """Run a follower; of an earlier one nothing is level any more."""
        following = self._following
        self._course.move(FollowerEvent.BEGUN)
        self._was_level, self._built_s = False, None
        self._notes.begun()
        if isinstance(following.fragment, MedusaError):
            raise following.fragment
        if following.transfer is not None:
            self._context.transfers.note_failed(following.transfer, "")
        settings = _settings(following, following.fragment)
        left, self._followed = self._followed, None
        if left is not None and not following.is_active:  # a copy is fetched anew
            self._forget()
            left = None
        lane = self._context.make(following, settings, self._watch, self._course, left)
        self._lane = lane
        try:
            if following.is_active:  # a copy takes little
                self._await_turn()
            if self._stop.is_set():
                return
            purpose = "as a secondary" if following.transfer is None else "to move here"
            _log.info("followed, %s", purpose, extra=self._label)
            lane.run()
        finally:
            # For the next one; or if this node claims it next, as that of a drained one.
            self._followed = lane.followed
            self._end_turn()

    def _await_turn(self) -> None:
        """Wait until it may begin."""
        turns, rank = self._context.turns, rank_of(self._following)
        self._has_turn = turns.take(rank, lambda: self._stop.is_set() or self._has_passed())
        if not self._has_turn and not self._stop.is_set():
            raise _OverError("the transfer has ended")

    def _end_turn(self) -> None:
        """Let another one begin."""
        if self._has_turn:
            self._has_turn = False
            self._context.turns.give_back()

    def _watch(self) -> None:
        """Note once that a follower is level; end it with its transfer."""
        if self.is_taken:
            return
        if self._has_passed():
            raise _OverError("the transfer has ended")
        if self._course.is_level:
            self._was_level, self._is_full, self._problem = True, False, ""
        if self._course.is_level or self._is_slow():
            self._end_turn()
        transfer = self._following.transfer
        if transfer is None or self._stop.is_set() or not self._course.is_level:
            return
        self._notes.ready(transfer)

    def _is_slow(self) -> bool:
        """Whether it has its state, but is not level for long: others need not wait for it."""
        if self._course.phase in {FollowerPhase.ABSENT, FollowerPhase.BUILDING}:
            return False
        now_s = self._context.clock.monotonic_s()
        self._built_s = now_s if self._built_s is None else self._built_s
        return now_s - self._built_s > TURN_S

    def _has_passed(self) -> bool:
        """Whether the time of its move has passed, and it has no other use."""
        transfer, is_standby = self._following.transfer, self._following.is_standby
        return transfer is not None and self._notes.has_passed(transfer) and not is_standby


def _settings(following: Following, fragment: Fragment) -> LaneSettings:
    """The settings of the lane that would start on this node now."""
    deployed = following.deployed
    return LaneSettings(
        lane=LaneId(deployed.id, LaneRole.FOLLOWER),
        run=NO_RUN,
        fragment=fragment,
        life=deployed.network.life,
        version=deployed.record.version,
        epoch=Epoch(following.epoch + 1),
        topic_ids=deployed.topic_ids,
        kept=_nothing,
        readers=None,
        ran_before=True,
        record_start=_nothing,
        check_wanted=_nothing,
        choice=deployed.choice,
        begins=deployed.begins,
        succession=deployed.succession,
        begun_anew=deployed.begun_anew,
    )


def _nothing() -> None:
    """A follower records nothing."""
