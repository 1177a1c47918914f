"""Performs effects: starts and stops lanes, sends signals, plans, reports."""

import logging
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from brokers.kafka_interface import RecordWriter
from pipeline.agent.background import Job
from pipeline.agent.effects import (
    CopyCheckpoints,
    Effect,
    FindExpiring,
    Follow,
    LogEvent,
    MakePlan,
    NoteRetention,
    PublishStatus,
    Rehearse,
    ReleaseFragment,
    SendActivity,
    StartLane,
    StopLane,
    WatchTopics,
)
from pipeline.agent.events import Event, ExpiringFound, FragmentTaken, PlanFailed, PlanMade
from pipeline.agent.followers import Followers
from pipeline.agent.logged import claimed, released
from pipeline.agent.suspicions import Suspicions
from pipeline.agent.takeover import takeover
from pipeline.agent.watched import Watched
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.catalog.records import NodeRecord
from pipeline.catalog.snapshot import VersionId
from pipeline.clock import Clock, Deadline, rfc3339, steady_ms
from pipeline.errors import BrokenInvariantError, MedusaError, RefusedError
from pipeline.event_log.event import LoggedEvent
from pipeline.ids import (
    NO_EPOCH,
    Epoch,
    FragmentId,
    LaneId,
    Millis,
)
from pipeline.lanes.events import LaneStopped, stopped_by
from pipeline.lanes.expiring import ExpiringRecords, LogNeeds
from pipeline.lanes.expiring_text import message
from pipeline.markers import codec
from pipeline.markers.signals import ActivityRecord, activity_key
from pipeline.names import FragmentNames, boundaries_topic
from pipeline.planner.plan import Kept, Plan
from pipeline.spark.run.handover import Followed
from pipeline.spark.run.lane_news import LaneNews
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.trimming.readers import ReadersInCatalog

_log = logging.getLogger(__name__)


class Lane(Protocol):
    """The interface of a lane; as in `pipeline/spark/run/lane.py`."""

    def run(self) -> None:
        """Start, and block until `request_stop`; raises when the lane cannot continue."""

    def request_stop(self) -> None:
        """Let the current batch finish, then return from `run`."""


class Work(Protocol):
    """As `Background` in `pipeline/agent/background.py`."""

    def put(self, key: Hashable, job: Job) -> None:
        """Queue a job; it takes the place in the queue of a waiting job with this key."""

    def end(self, within_s: float) -> bool:
        """Run the waiting jobs, then end; returns whether that took no longer than `within_s`."""


MakeLane = Callable[[LaneSettings, Followed | None], Lane]
"""Makes a lane; it may go on from the follower of its fragment."""
Log = Callable[[LoggedEvent], None]
"""Queues an entry of the event log; never waits."""
Admit = Callable[[FragmentNames], Epoch]
"""Epoch of a fragment's last commit marker; raises if this program cannot continue from it."""
MakePlanOf = Callable[[VersionId], Plan]
"""The plan of a version of a network; raises if there is none."""
FindExpiringIn = Callable[[LogNeeds, Millis], tuple[ExpiringRecords, ...]]
"""As `find_expiring` in `pipeline/lanes/expiry.py`, in the topics of a cluster."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Worker threads for what waits for servers, apart from lanes; each runs its jobs in order."""

    planning: Work
    signals: Work
    reports: Work
    topics: Work

    def end(self, deadline: Deadline) -> bool:
        """End all of them; returns whether each that is waited for has finished its jobs."""
        self.topics.end(0.0)  # its answers are only shown: not worth waiting for Kafka
        every = (self.signals, self.reports, self.planning)
        ended = [work.end(deadline.remaining_s()) for work in every]
        return all(ended)


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The dependencies of a performer; constant while the node runs."""

    node: NodeRecord
    catalog: Catalog
    make_plan: MakePlanOf
    find_expiring: FindExpiringIn
    admit: Admit
    make_lane: MakeLane
    signals: RecordWriter
    watched: Watched
    news: LaneNews
    followers: Followers
    suspicions: Suspicions
    workers: Workers
    log: Log
    clock: Clock


@dataclass(slots=True)
class _Running:
    """A lane's thread; the lane once it exists; what it removes of the topics that it writes."""

    thread: threading.Thread
    stop: threading.Event
    lane: Lane | None = None
    kept: Kept | None = None


class Performer:
    """Performs effects; used by the agent's loop alone. Lanes run on threads of their own."""

    def __init__(self, context: NodeContext, emit: Callable[[Event], None]) -> None:
        self._context = context
        self._emit = emit
        self._lanes: dict[LaneId, _Running] = {}
        self._expiring: dict[LaneId, frozenset[object]] = {}
        """What was last logged; only the worker uses it."""
        self._handed_over: set[FragmentId] = set()
        """What this node has claimed after a release, as long as it has not failed here since."""

    def perform(self, effect: Effect) -> None:
        """Perform an effect, or queue it for a worker; its results are sent as events."""
        workers = self._context.workers
        match effect:
            case StartLane() | StopLane() | NoteRetention():
                self._signal_lane(effect)
            case MakePlan(version):
                workers.planning.put(version, partial(self._plan, effect))
            case SendActivity(lane):
                workers.signals.put(("activity", lane), partial(self._send_activity, effect))
            case PublishStatus(lane):
                workers.reports.put(lane, partial(self._report, effect))
            case FindExpiring(lane):
                workers.topics.put(lane, partial(self._find_expiring, effect))
            case ReleaseFragment(fragment):  # after the last report of its lane
                workers.reports.put(("release", fragment), partial(self._release, effect))
            case WatchTopics() | Rehearse() | Follow() | CopyCheckpoints() | LogEvent():
                self._pass_on(effect)

    def stop_all(self, deadline: Deadline) -> None:
        """Stop every lane at a batch boundary, within the deadline."""
        for lane in self._lanes:
            self._stop(lane)
        for running in self._lanes.values():
            running.thread.join(deadline.remaining_s())
        self._context.followers.stop_all(deadline)
        if self._context.workers.end(deadline):
            self._context.signals.close()  # else a worker may still send

    def _pass_on(
        self, effect: WatchTopics | Rehearse | Follow | CopyCheckpoints | LogEvent
    ) -> None:
        """Pass an effect on to the part of the node that performs it; never waits."""
        context = self._context
        match effect:
            case WatchTopics(topics, derived):
                context.news.watch(derived)
                context.watched.watch(topics, derived)
            case Rehearse():
                context.watched.rehearse(effect)
            case Follow(fragments, gone):
                context.followers.follow(fragments)
                context.followers.forget(gone)
            case CopyCheckpoints(every_ms):
                context.watched.copy(every_ms)
            case LogEvent(event):
                context.log(event)

    # --- lanes ----------------------------------------------------------------------------------

    def _signal_lane(self, effect: StartLane | StopLane | NoteRetention) -> None:
        running = self._lanes.get(effect.lane)
        match effect:
            case StartLane():
                self._start(effect)
            case StopLane(lane):
                self._stop(lane)
            case NoteRetention(_, kept) if running is not None:
                running.kept = kept
            case _:  # the lane has ended meanwhile
                pass

    def _start(self, effect: StartLane) -> None:
        running = _Running(
            threading.Thread(
                target=self._run_lane, args=(effect,), name=f"lane {effect.lane}", daemon=True
            ),
            threading.Event(),
        )
        self._lanes = {key: lane for key, lane in self._lanes.items() if lane.thread.is_alive()}
        self._lanes[effect.lane] = running
        running.thread.start()

    def _stop(self, lane: LaneId) -> None:
        running = self._lanes.get(lane)
        if running is not None:
            running.stop.set()
            if running.lane is not None:
                running.lane.request_stop()

    def _run_lane(self, effect: StartLane) -> None:
        """Run a lane on its thread; exactly one `LaneStopped` is sent, whatever ends it."""
        lane, run, label = effect.lane, effect.run, _label(effect.lane.fragment)
        running = self._lanes[lane]
        epoch, followed = NO_EPOCH, None
        try:
            written = self._context.admit(effect.deployed.names)
            epoch, followed = self._claim_with_follower(effect, written)
            running.lane = self._lane(effect, epoch, running, followed)
            if running.stop.is_set():
                running.lane.request_stop()
            running.lane.run()
            stopped = LaneStopped(lane, run, epoch, None, retry=True, fenced=False)
        except MedusaError as found:
            stopped = self._stopped_by(effect, epoch, found)
            if stopped.fenced:
                _log.warning("%s", self._ownership_message(lane.fragment, epoch), extra=label)
        except Exception as found:  # noqa: BLE001 - the thread's top: it becomes a LaneStopped
            _log.exception("the lane failed", extra=label)
            error = f"{type(found).__name__}: {found}".splitlines()[0]
            stopped = LaneStopped(lane, run, epoch, error, retry=True, fenced=False)
        if followed is not None:
            followed.state()  # ends it, if the lane has not
        if stopped.error is not None:
            if not stopped.external:
                self._handed_over.discard(lane.fragment)
            _log.warning("stopped: %s", stopped.error, extra=label)
        self._emit(stopped)

    def _stopped_by(self, effect: StartLane, epoch: Epoch, error: MedusaError) -> LaneStopped:
        """The end of a run by an error.

        One with amnesia that was handed over has built its state; if that cannot be done, as when
        the log is too short, the next start does without it.
        """
        stopped = stopped_by(effect.lane, effect.run, epoch, error)
        was_handed_over = effect.lane.fragment in self._handed_over
        has_other_way = was_handed_over and effect.deployed.record.amnesia
        return replace(stopped, retry=stopped.retry or (has_other_way and _is_refused(error)))

    def _ownership_message(self, fragment: FragmentId, epoch: Epoch) -> str:
        """The log message of a fenced lane: who owns the fragment, and what this node does."""
        context = self._context
        try:
            owner = context.catalog.owners.get(fragment.network, fragment.fragment)
        except MedusaError as error:
            return (
                f"fenced with epoch {epoch}, and the catalog cannot return its owner "
                f"({error.message}): not started again before it can"
            )
        if owner is None:
            return f"fenced with epoch {epoch}; it has no owner now: started again if it should run"
        if owner.node == context.node.node:
            return (
                f"fenced with epoch {epoch}; by the catalog this node owns it with epoch "
                f"{owner.epoch}: started again after a while"
            )
        return (
            f"fenced with epoch {epoch}; node {owner.node} owns it with epoch {owner.epoch} since "
            f"{rfc3339(owner.claimed_at_ms)}: left to it as long as it is up"
        )

    def _claim_with_follower(
        self, effect: StartLane, written: Epoch
    ) -> tuple[Epoch, Followed | None]:
        """Claim a fragment; returns its follower, too, which the end of the move does not end."""
        followers, fragment = self._context.followers, effect.lane.fragment
        followers.hold(fragment)
        try:
            epoch = self._claim(effect, written)
            return epoch, followers.take(fragment, epoch)
        finally:
            followers.let_go(fragment)

    def _claim(self, effect: StartLane, written: Epoch) -> Epoch:
        context, now_ms = self._context, self._context.clock.now_ms()
        fragment = effect.lane.fragment
        claim = context.catalog.owners.claim(
            fragment.network,
            fragment.fragment,
            context.node,
            now_ms,
            written=written,
            is_suspected=context.suspicions.has,
        )
        if claim.before is None:
            self._handed_over.add(fragment)
        elif claim.before.node != context.node.node:
            self._handed_over.discard(fragment)
        if (event := claimed(fragment, context.node, claim, now_ms)) is not None:
            context.log(event)
        noticed = None if claim.before is None else context.suspicions.noticed(claim.before)
        taken = takeover(claim, context.node.node, noticed, steady_ms(context.clock))
        if taken is not None:
            self._emit(FragmentTaken(effect.lane, effect.run, taken))
        return claim.epoch

    def _lane(
        self,
        effect: StartLane,
        epoch: Epoch,
        running: _Running,
        followed: Followed | None,
    ) -> Lane:
        deployed, starts = effect.deployed, self._context.catalog.starts
        version = deployed.record.version
        label = _label(effect.lane.fragment)
        _log.info("starting version %d as epoch %d", version, epoch, extra=label)
        name = deployed.id.network, deployed.id.fragment
        settings = LaneSettings(
            lane=effect.lane,
            run=effect.run,
            fragment=effect.fragment,
            life=deployed.network.life,
            version=version,
            epoch=epoch,
            topic_ids=deployed.topic_ids,
            kept=lambda: running.kept,
            readers=ReadersInCatalog(self._context.catalog, deployed.id),
            ran_before=starts.recorded(*name),
            record_start=partial(starts.record, *name, epoch),
            check_wanted=partial(starts.check, *name, epoch, deployed.version),
            choice=deployed.choice,
            begins=deployed.begins,
            succession=deployed.succession,
            begun_anew=deployed.begun_anew,
            amnesia=deployed.record.amnesia and deployed.id not in self._handed_over,
        )
        return self._context.make_lane(settings, followed)

    # --- jobs of the workers --------------------------------------------------------------------

    def _plan(self, effect: MakePlan) -> None:
        version = effect.version
        try:
            plan = self._context.make_plan(version)
        except MedusaError as error:
            self._emit(PlanFailed(version, error))
        except Exception as error:  # noqa: BLE001 - without an event the version stays pending
            _log.exception("planning failed: %s", version)
            message = f"planning failed with {type(error).__name__}: {error}".splitlines()[0]
            self._emit(PlanFailed(version, BrokenInvariantError(message)))
        else:
            self._emit(PlanMade(version, plan))

    def _send_activity(self, effect: SendActivity) -> None:
        record = ActivityRecord(effect.topic_id, effect.writer, effect.epoch, effect.idle)
        self._context.signals.send(
            boundaries_topic(effect.topic),
            key=activity_key(effect.writer),
            value=codec.encode_activity(record),
            partition=0,
            timestamp_ms=self._context.clock.now_ms(),
        )

    def _find_expiring(self, effect: FindExpiring) -> None:
        """Send what retention removes; a new kind of it is logged. Without an answer, nothing."""
        context, lane = self._context, effect.lane
        now_ms = context.clock.now_ms()
        try:
            found = context.find_expiring(effect.needs, now_ms)
        except MedusaError as error:
            _log.debug("the retention of topics is not known: %s", error)
            return
        kinds = {(one.topic, one.use, one.cause): one for one in found}
        for kind in kinds.keys() - self._expiring.get(lane, frozenset()):
            _log.warning("%s", message(kinds[kind], now_ms), extra=_label(lane.fragment))
        self._expiring[lane] = frozenset(kinds)
        self._emit(ExpiringFound(lane, found))

    def _release(self, effect: ReleaseFragment) -> None:
        """Release a fragment; if the catalog does not answer, its next read asks for it again."""
        fragment, leaving, context = effect.fragment, effect.leaving, self._context
        owner, to = leaving.owner, leaving.to
        if context.catalog.owners.release(fragment, leaving):
            why = "for want of room" if to is None else f"for node {to}"
            _log.info("released %s, epoch %d", why, owner.epoch, extra=_label(fragment))
            context.log(released(fragment, owner, to, context.clock.now_ms()))

    def _report(self, effect: PublishStatus) -> None:
        """Report a status; until this node has read the lane's counts, the last ones remain."""
        catalog, status = self._context.catalog, effect.status
        if not effect.counted:
            status = _with_counts(status, catalog.statuses.get(status.network, status.fragment))
        catalog.statuses.report(status)


def _is_refused(error: MedusaError) -> bool:
    return isinstance(error, RefusedError) and not error.external


def _with_counts(status: FragmentStatus, before: FragmentStatus | None) -> FragmentStatus:
    if before is None:
        return status
    return replace(
        status,
        records_in=before.records_in,
        records_out=before.records_out,
        boundary_ms=before.boundary_ms,
        dead_letters=before.dead_letters,
        late_dropped=before.late_dropped,
        skipped=before.skipped,
    )


def _label(fragment: FragmentId) -> dict[str, str]:
    return {"fragment": str(fragment)}
