"""Does what was decided: starts and stops lanes, sends advances, reports."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from pipeline.brain.events import (
    Effect,
    Event,
    NotePromises,
    PublishStatus,
    SayActivity,
    SendAdvance,
    StartLane,
    StopLane,
)
from pipeline.brain.plans import Assigned, Plans
from pipeline.brain.state import NodeState
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import FragmentStatus
from pipeline.clock import Clock, Deadline, rfc3339
from pipeline.errors import MedusaError, RetryError
from pipeline.ids import (
    NO_EPOCH,
    Epoch,
    Millis,
    NodeId,
    ParticipantId,
    TopicId,
    TopicName,
)
from pipeline.lanes import codec
from pipeline.lanes.events import FragmentId, LaneStopped, stopped_by
from pipeline.lanes.promises import Promises
from pipeline.lanes.signals import ActivityRecord, AdvanceRecord, activity_key
from pipeline.names import FragmentNames, boundaries_topic
from pipeline.planner.plan import Fragment
from pipeline.spark.lane_settings import LaneSettings

_log = logging.getLogger(__name__)


class Lane(Protocol):
    """What is asked of a lane; as in `pipeline/spark/lane.py`."""

    promises: Promises

    def run(self) -> None:
        """Start and stay; returns after `request_stop`, raises when it cannot go on."""

    def request_stop(self) -> None:
        """Let the current batch finish, then return from `run`."""


class Advances(Protocol):
    """Where advances are sent; as in `brokers/kafka/producer.py`."""

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: Millis | None = None,
        partition: int = -1,
    ) -> None:
        """Hand one record over; returns before it is delivered."""

    def close(self) -> None:
        """Drop the connection."""


MakeLane = Callable[[LaneSettings], Lane]
Admit = Callable[[FragmentNames], Epoch]
"""Epoch of a fragment's last commit marker; raises if this program cannot go on from it."""


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What performing needs of the node; nothing here changes while the node lives.

    `life`: when the node was started, as its record in the catalog says.
    """

    node: NodeId
    participant: ParticipantId
    life: Millis
    catalog: Catalog
    plans: Plans
    admit: Admit
    make_lane: MakeLane
    advances: Advances
    clock: Clock


@dataclass(slots=True)
class _Running:
    """A lane's thread, and the lane once it exists."""

    thread: threading.Thread
    stop: threading.Event
    lane: Lane | None = None


class Performer:
    """Performs effects; used by the agent's loop alone. Lanes run on threads of their own."""

    def __init__(self, context: NodeContext, tell: Callable[[Event], None]) -> None:
        self._context = context
        self._tell = tell
        self._lanes: dict[FragmentId, _Running] = {}

    def perform(self, effect: Effect, state: NodeState) -> None:
        """Do one thing; what comes of it is told through events.

        Raises:
            MedusaError: a server did not answer; nothing is half done.
        """
        match effect:
            case StartLane():
                self._start(effect)
            case StopLane(fragment):
                self._stop(fragment)
            case SendAdvance():
                self._send_advance(effect)
            case SayActivity():
                self._say_activity(effect)
            case NotePromises(fragment, promised):
                running = self._lanes.get(fragment)
                if running is not None and running.lane is not None:
                    running.lane.promises.note(promised)
            case PublishStatus(fragment):
                published = state.lanes[fragment].published
                if published is not None:
                    self._report(published, known=state.lanes[fragment].marker is not None)

    def stop_all(self, deadline: Deadline) -> None:
        """Stop every lane at a batch boundary, as far as the time allows."""
        for fragment in self._lanes:
            self._stop(fragment)
        for running in self._lanes.values():
            running.thread.join(deadline.remaining_s())
        self._context.advances.close()

    def _start(self, effect: StartLane) -> None:
        fragment = effect.fragment
        running = _Running(
            threading.Thread(
                target=self._live,
                args=(effect,),
                name=f"lane {fragment.network}.{fragment.fragment}",
                daemon=True,
            ),
            threading.Event(),
        )
        self._lanes = {f: lane for f, lane in self._lanes.items() if lane.thread.is_alive()}
        self._lanes[fragment] = running
        running.thread.start()

    def _stop(self, fragment: FragmentId) -> None:
        running = self._lanes.get(fragment)
        if running is not None:
            running.stop.set()
            if running.lane is not None:
                running.lane.request_stop()

    def _send_advance(self, effect: SendAdvance) -> None:
        names = self._context.plans.assigned(effect.fragment).names
        record = AdvanceRecord(effect.incarnation, effect.advance_ms)
        self._context.advances.send(
            names.advances,
            key=None,
            value=codec.encode_advance(record),
            partition=0,
            timestamp_ms=self._context.clock.now_ms(),
        )

    def _say_activity(self, effect: SayActivity) -> None:
        try:
            assigned = self._context.plans.assigned(effect.fragment)
        except RetryError:  # it was taken away meanwhile: its next owner says what it is
            return
        topic, writer = self._context.plans.fragment(assigned).output.topic, assigned.names.writer
        topic_id = TopicId(assigned.topic_ids[topic])
        record = ActivityRecord(topic_id, writer, effect.epoch, effect.idle)
        self._context.advances.send(
            boundaries_topic(topic),
            key=activity_key(writer),
            value=codec.encode_activity(record),
            partition=0,
            timestamp_ms=self._context.clock.now_ms(),
        )

    def _report(self, published: FragmentStatus, *, known: bool) -> None:
        """Report; a lane that has not claimed an epoch yet speaks under this node's last one.

        As long as this node does not know the lane's counts, those that were reported last stay.
        """
        catalog = self._context.catalog
        before = None if known else catalog.status(published.network, published.fragment)
        if before is not None:
            published = replace(
                published,
                records_in=before.records_in,
                records_out=before.records_out,
                boundary_ms=before.boundary_ms,
                dead_letters=before.dead_letters,
                late_dropped=before.late_dropped,
                skipped=before.skipped,
            )
        if published.epoch == NO_EPOCH:
            owner = catalog.owner(published.network, published.fragment)
            if owner is not None and owner.node == self._context.node:
                published = replace(published, epoch=owner.epoch)
        catalog.report(replace(published, life=self._context.life))

    def _live(self, effect: StartLane) -> None:
        """A lane's thread: whatever ends it, the agent is told once."""
        fragment = effect.fragment
        running = self._lanes[fragment]
        epoch = NO_EPOCH
        try:
            assigned = self._assigned(effect)
            plan = self._context.plans.fragment(assigned)
            written = self._context.admit(assigned.names)
            epoch = self._claim(fragment, written)
            running.lane = self._lane(assigned, plan, epoch)
            if running.stop.is_set():
                running.lane.request_stop()
            running.lane.run()
            stopped = LaneStopped(fragment, epoch, None, retry=True, fenced=False)
        except MedusaError as found:
            stopped = stopped_by(fragment, epoch, found)
            if stopped.fenced:
                _log.warning("%s", self._whose(fragment, epoch), extra=_label(fragment))
        except Exception as found:  # noqa: BLE001 - the thread's top: the agent must hear of it
            _log.exception("the lane failed", extra=_label(fragment))
            error = f"{type(found).__name__}: {found}".splitlines()[0]
            stopped = LaneStopped(fragment, epoch, error, retry=True, fenced=False)
        if stopped.error is not None:
            _log.warning("stopped: %s", stopped.error, extra=_label(fragment))
        self._tell(stopped)

    def _whose(self, fragment: FragmentId, epoch: Epoch) -> str:
        """Who owns a fragment that this node was fenced off, and what this node does about it."""
        context = self._context
        try:
            owner = context.catalog.owner(fragment.network, fragment.fragment)
        except MedusaError as error:
            return (
                f"fenced with epoch {epoch}, and the catalog cannot tell whose it is now "
                f"({error.message}): not started again before it can"
            )
        if owner is None:
            return f"fenced with epoch {epoch}; nobody owns it now: started again if it is wanted"
        if owner.node == context.node:
            return (
                f"fenced with epoch {epoch}; the catalog says that this node owns it with epoch "
                f"{owner.epoch}: started again after a while"
            )
        return (
            f"fenced with epoch {epoch}; node {owner.node} owns it with epoch {owner.epoch} since "
            f"{rfc3339(owner.claimed_at_ms)}: left to it as long as it is up"
        )

    def _assigned(self, effect: StartLane) -> Assigned:
        """What is to start, as it was when that was decided."""
        found = self._context.plans.assigned(effect.fragment)
        if (found.network.life, found.record.version) != (effect.life, effect.version):
            raise RetryError("it was deployed again before it started", place=found.place)
        return found

    def _claim(self, fragment: FragmentId, written: Epoch) -> Epoch:
        context = self._context
        return context.catalog.claim(
            fragment.network,
            fragment.fragment,
            context.node,
            context.participant,
            context.clock.now_ms(),
            written=written,
        )

    def _lane(self, assigned: Assigned, plan: Fragment, epoch: Epoch) -> Lane:
        version, label = assigned.record.version, _label(assigned.fragment)
        _log.info("starting version %d as epoch %d", version, epoch, extra=label)
        starts, plans = self._context.catalog.starts, self._context.plans
        name = assigned.fragment.network, assigned.fragment.fragment
        settings = LaneSettings(
            fragment=plan,
            life=assigned.network.life,
            version=version,
            epoch=epoch,
            topic_ids=assigned.topic_ids,
            letters_kept_ms=partial(plans.retention_ms, assigned.fragment),
            ran_before=starts.recorded(*name),
            record_start=partial(starts.record, *name, epoch),
            check_wanted=partial(starts.check, *name, epoch, version),
            choice=assigned.choice,
            begins=assigned.begins,
            succession=assigned.succession,
        )
        return self._context.make_lane(settings)


def _label(fragment: FragmentId) -> dict[str, str]:
    return {"fragment": f"{fragment.network}.{fragment.fragment}"}
