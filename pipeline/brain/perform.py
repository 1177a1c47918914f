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
    PublishStatus,
    SendAdvance,
    StartLane,
    StopLane,
)
from pipeline.brain.plans import Plans
from pipeline.brain.state import NO_EPOCH, NodeState
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import FragmentStatus
from pipeline.clock import Clock, Deadline, rfc3339
from pipeline.errors import BrokenInvariantError, FencedError, InputError, MedusaError
from pipeline.ids import Epoch, Millis, NetworkVersion, NodeId, ParticipantId, TopicName
from pipeline.lanes import codec
from pipeline.lanes.events import FragmentId, LaneStopped
from pipeline.lanes.signals import AdvanceRecord
from pipeline.names import FragmentNames
from pipeline.spark.lane_settings import LaneSettings

_log = logging.getLogger(__name__)


class Lane(Protocol):
    """What is asked of a lane; as in `pipeline/spark/lane.py`."""

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
Admit = Callable[[FragmentNames], None]
"""Raises if this program cannot go on with what is written of a fragment; touches nothing."""


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
            case StartLane(fragment, version):
                self._start(fragment, version)
            case StopLane(fragment):
                self._stop(fragment)
            case SendAdvance():
                self._send_advance(effect)
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

    def _start(self, fragment: FragmentId, version: NetworkVersion) -> None:
        running = _Running(
            threading.Thread(
                target=self._live,
                args=(fragment, version),
                name=f"lane {fragment.network}.{fragment.fragment}",
                daemon=True,
            ),
            threading.Event(),
        )
        self._lanes[fragment] = running
        running.thread.start()

    def _stop(self, fragment: FragmentId) -> None:
        running = self._lanes.get(fragment)
        if running is not None:
            running.stop.set()
            if running.lane is not None:
                running.lane.request_stop()

    def _send_advance(self, effect: SendAdvance) -> None:
        names = self._context.plans.names(effect.fragment)
        record = AdvanceRecord(effect.incarnation, effect.advance_ms)
        self._context.advances.send(
            names.advances,
            key=None,
            value=codec.encode_advance(record),
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
            )
        if published.epoch == NO_EPOCH:
            owner = catalog.owner(published.network, published.fragment)
            if owner is not None and owner.node == self._context.node:
                published = replace(published, epoch=owner.epoch)
        catalog.report(replace(published, life=self._context.life))

    def _live(self, fragment: FragmentId, version: NetworkVersion) -> None:
        """A lane's thread: whatever ends it, the agent is told once."""
        running = self._lanes[fragment]
        epoch, error, retry, fenced = NO_EPOCH, None, True, False
        try:
            self._context.admit(self._context.plans.names(fragment))
            epoch = self._claim(fragment)
            running.lane = self._lane(fragment, version, epoch)
            if running.stop.is_set():
                running.lane.request_stop()
            running.lane.run()
        except FencedError as found:
            error, fenced = str(found), True
            _log.warning("%s", self._whose(fragment, epoch), extra=_label(fragment))
        except (InputError, BrokenInvariantError) as found:
            error, retry = str(found), False
        except MedusaError as found:
            error = str(found)
        except Exception as found:  # noqa: BLE001 - the thread's top: the agent must hear of it
            _log.exception("the lane failed", extra=_label(fragment))
            error = f"{type(found).__name__}: {found}".splitlines()[0]
        if error is not None:
            _log.warning("stopped: %s", error, extra=_label(fragment))
        self._tell(LaneStopped(fragment, epoch, error, retry, fenced))

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

    def _claim(self, fragment: FragmentId) -> Epoch:
        context = self._context
        return context.catalog.claim(
            fragment.network,
            fragment.fragment,
            context.node,
            context.participant,
            context.clock.now_ms(),
        )

    def _lane(self, fragment: FragmentId, version: NetworkVersion, epoch: Epoch) -> Lane:
        context = self._context
        _log.info("starting version %d as epoch %d", version, epoch, extra=_label(fragment))
        name = fragment.network, fragment.fragment
        settings = LaneSettings(
            fragment=context.plans.fragment(fragment, version),
            version=version,
            epoch=epoch,
            topic_ids=context.plans.topic_ids(fragment),
            letters_kept_ms=partial(context.plans.retention_ms, fragment),
            ran_before=context.catalog.starts.recorded(*name),
            record_start=partial(context.catalog.starts.record, *name, epoch),
            choice=context.plans.choice(fragment),
            begins=context.plans.begins(fragment),
        )
        return context.make_lane(settings)


def _label(fragment: FragmentId) -> dict[str, str]:
    return {"fragment": f"{fragment.network}.{fragment.fragment}"}
