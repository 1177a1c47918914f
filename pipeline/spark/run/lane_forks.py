"""The forks of one stable lane: begun when its results are due, ended when it goes on.

A thread looks at the lane's event time some times within the availability bound, and does what
`pipeline/lanes/fork_phases.py` decides. Nothing here holds the stable lane up, and no error of a
fork ends it.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from brokers.records import Ends
from pipeline.availability import Availability
from pipeline.boundaries.deadline import Held, Watch, held, look
from pipeline.boundaries.lane_time import LaneTime, Steered
from pipeline.clock import steady_ms
from pipeline.errors import MedusaError, RetryError
from pipeline.ids import BatchId, Millis, SteadyMillis, TopicId
from pipeline.lanes.events import LaneTentative
from pipeline.lanes.fork_phases import (
    RETRY_MOST_MS,
    TRANSITIONS,
    ForkEvent,
    ForkPhase,
    Measured,
    after,
    begun,
    next_event,
    reads_early,
    rest_ms,
    steered,
)
from pipeline.lanes.tentative_state import TentativeState, is_due, missing_text
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.run.fork import Fork, StableState
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.running_fork import RunningFork, unexpected
from pipeline.spark.run.tentative_topic import Places, TentativeTopic
from pipeline.spark.run.upstreams import Upstreams
from pipeline.spark.write.tentative_sink import ForkBatch
from pipeline.tentative.progress import NOTHING_MS, Progress, held_boundaries
from pipeline.tentative.publishing import Publishing

LOOKS: Final = 30
"""How often a lane is looked at within its bound."""
LOOK_LEAST_S, LOOK_MOST_S = 0.02, 0.2
SETTLE_S: Final = 0.5
"""How often tentative results are settled."""
ANNOUNCE_S: Final = 0.2
"""How often the readers of the output are told what is held back, while a fork is being begun."""
MARKERS_KEPT: Final = 64
END_S: Final = 30.0
AWAITED_S: Final = 10.0
"""How long the lane waits for the end of its fork, which publishes nothing any more."""

_log = logging.getLogger(__name__)


def new_forks(settings: LaneSettings, host: LaneHost, planner: LanePlanner) -> "LaneForks | None":
    """The forks of a lane; None: its fragment has no tentative results.

    Args:
        settings: of the lane.
        host: of its node.
        planner: of the lane.
    """
    fragment = settings.fragment
    availability, tentative = fragment.availability, fragment.tentative_topic
    if availability is None or tentative is None:
        return None
    output = fragment.output.topic
    places = Places(output, TopicId(settings.topic_ids.get(output, "")), tentative)
    topic = TentativeTopic(places, host.kafka, host.resolver.admin)
    return LaneForks(settings, host, planner, availability, topic)


class LaneForks:
    """Begins and ends the forks of one lane, and settles what they have published.

    Args:
        settings: of the lane.
        host: of its node.
        planner: of the lane.
        availability: of its fragment.
        topic: of its tentative results.
    """

    def __init__(
        self,
        settings: LaneSettings,
        host: LaneHost,
        planner: LanePlanner,
        availability: Availability,
        topic: TentativeTopic,
    ) -> None:
        self._settings = settings
        self._host = host
        self._planner = planner
        self._inputs = LaneInputs(host)
        self._upstreams = Upstreams(settings, host)
        self._availability = availability
        self._topic = topic
        fragment = settings.fragment
        self._by_time = fragment.traits.in_order
        self._counted = None if fragment.shape.waits else fragment.read_early
        """The inputs that make results tentative; None: all."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._settler: threading.Thread | None = None
        self._markers: OrderedDict[BatchId, CommitMarker] = OrderedDict()
        self._folder = Path()
        self._phase, self._phase_ms = ForkPhase.ABSENT, self._now_ms
        self._measured = Measured()
        self._held: Held | None = None
        self._running: RunningFork | None = None
        self._failures, self._rests_until_ms, self._problem = 0, 0, ""
        self._settles_at_s, self._unsettled, self._unsettled_problem = 0.0, 0, ""
        self._watched: Watch | None = None
        self._said: TentativeState | None = None
        self._said_ms = self._now_ms

    @property
    def state(self) -> TentativeState:
        """What there is to say."""
        topic, running = self._topic, self._running
        return TentativeState(
            phase=self._phase,
            since_ms=self._phase_ms,
            held=self._held,
            generation=None if running is None else str(running.generation),
            counts=topic.counts,
            is_settled=topic.is_settled,
            problem=self._problem,
            unsettled=self._unsettled_problem,
        )

    def begin(self, folder: Path, first: CommitMarker, inputs: LaneInputs) -> None:
        """Look at the lane from now on; it runs in this checkpoint, and has these inputs."""
        self._folder, self._inputs = folder, inputs
        self._keep(first)
        name = f"forks of {self._settings.lane.fragment}"
        self._settler = threading.Thread(target=self._settle, name=f"{name}, settling", daemon=True)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._settler.start()
        self._thread.start()
        self._upstreams.begin()

    def finished(self, marker: CommitMarker, elapsed_ms: int) -> None:
        """Take in a committed marker of the lane, and how long its batch took."""
        if marker.batch not in self._markers:  # else event time was passed on without a batch
            self._measured = self._measured.with_latency(elapsed_ms)
        self._keep(marker)

    def request_stop(self) -> None:
        """Publish nothing more, and let the fork end; does not wait. Thread-safe."""
        self._stop.set()
        running = self._running
        if running is not None:
            running.fork.request_stop()

    def end(self) -> None:
        """End the fork, and wait for it; one that takes too long ends later."""
        self.request_stop()
        if self._thread is not None:
            self._thread.join(AWAITED_S)
            if self._thread.is_alive():
                self._say("its fork does not end")

    def _keep(self, marker: CommitMarker) -> None:
        markers = OrderedDict(self._markers)
        markers[marker.batch] = marker
        while len(markers) > MARKERS_KEPT:
            markers.popitem(last=False)
        self._markers = markers  # replaced at once: another thread reads it

    # --- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        bound_ms = self._availability.bound_ms
        look_s = min(LOOK_MOST_S, max(LOOK_LEAST_S, bound_ms / 1000 / LOOKS))
        watch = Watch(bound_ms)
        try:
            while not self._stop.wait(look_s):
                watch = self._looked(watch)
                self._report()
        finally:
            running = self._running
            if running is not None:
                running.fork.request_stop()
                running.has_ended.wait(END_S)
            self._upstreams.end()
            if self._settler is not None:
                self._settler.join(END_S)
            self._topic.close()

    def _looked(self, watch: Watch) -> Watch:
        """Look, and take in an error."""
        try:
            return self._look(watch)
        except MedusaError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - it must not end what settles
            self._failed(unexpected(error))
        return watch

    def _look(self, watch: Watch) -> Watch:
        observed, now_ms = self._planner.observed, self._now_ms
        if observed is None:
            return watch
        watch = look(watch, *observed, now_ms, self._upstreams.awaited)
        self._held, self._watched = held(watch, self._counted), watch
        event = self._ended() or self._offered(observed[0])
        if event is None:
            event = next_event(self._phase, watch, self._held, self._availability, self._measured)
        if self._phase is ForkPhase.RESTING and now_ms >= self._rests_until_ms:
            event = ForkEvent.RESTED
        if event is not None:
            self._act(event, watch)
        running = self._running
        if running is not None and self._phase in (ForkPhase.READY, ForkPhase.PUBLISHING):
            self._steer(running, watch)
        return watch

    def _act(self, event: ForkEvent, watch: Watch) -> None:
        """Do what follows from an event."""
        running = self._running
        if event is ForkEvent.DUE and running is not None:
            return  # the last one still ends
        self._move(event)
        match event:
            case ForkEvent.DUE:
                self._begin_fork()
            case ForkEvent.EXPIRED if running is not None:
                found = begun(watch, self._availability, self._measured)
                running.steered = replace(found, tentative=running.steered.tentative)
                running.fork.steer(running.steered)
                self._say(f"publishes tentative results: {self._causes()}")
            case ForkEvent.OVER if running is not None:
                running.fork.request_stop()
                self._failures, self._problem = 0, ""
                self._say("nothing is held back any more: the fork ends")
            case ForkEvent.OUTDATED if running is not None:
                running.fork.request_stop()
                self._say("tentative results of an input have an end: the fork ends")
            case ForkEvent.PREPARED if running is not None:
                taken_ms = self._now_ms - running.begun_ms
                self._measured = replace(self._measured, ready_ms=taken_ms)

    def _move(self, event: ForkEvent) -> None:
        self._phase = after(self._phase, event, self._settings.place)
        self._phase_ms = self._now_ms

    def _steer(self, running: RunningFork, stable: Watch) -> None:
        """Let what is missing meanwhile step aside, too, and time go on."""
        observed = running.fork.observed
        if observed is None:
            return
        running.watch = look(running.watch, *observed, self._now_ms)
        if self._phase is not ForkPhase.PUBLISHING:
            return
        own, before = running.watch, running.steered
        found = steered(stable, own, before, self._availability, self._measured)
        found = replace(found, tentative=before.tentative)
        if found != running.steered:
            running.steered = found
            running.fork.steer(found)

    def _offered(self, stable: LaneTime) -> ForkEvent | None:
        """Offer the fork tentative records of its inputs; one that has read outdated ones ends."""
        running = self._running
        observed = None if running is None else running.fork.observed
        if running is None or observed is None:
            return None
        if not reads_early(self._phase, by_time=self._by_time):
            return None
        offers = self._upstreams.offers(stable, observed[0])
        if offers is None:
            return ForkEvent.OUTDATED
        if offers != running.steered.tentative:
            running.steered = replace(running.steered, tentative=offers)
            running.fork.steer(running.steered)
        return None

    def _begin_fork(self) -> None:
        """Begin a fork, whose event time waits until the deadline."""
        topic, observed = self._opened(), self._planner.observed
        if observed is None:
            return
        in_force_ms = observed[0].release.in_force_ms
        waiting = Steered(most_ms=Millis(0) if in_force_ms is None else in_force_ms)
        generation = topic.begin(self._settings.epoch, self._output_ends)
        topics = self._upstreams.topics
        stable = StableState(self._folder, lambda: self._markers, self._inputs, topics)
        made = list[RunningFork]()

        def publish(batch: ForkBatch) -> None:
            self._publish(topic, made[0], batch)

        fork = Fork(self._settings, self._host, stable, waiting, publish)
        watch = Watch(self._availability.bound_ms)
        publishing = Publishing(waits=self._settings.fragment.shape.waits)
        running = RunningFork(generation, fork, self._now_ms, watch, waiting, publishing)
        made.append(running)
        self._running = running
        self._say(f"fork {generation} begins: {self._causes()}")
        run = threading.Thread(target=running.run, name=f"fork {generation}", daemon=True)
        run.start()

    def _publish(self, topic: TentativeTopic, running: RunningFork, batch: ForkBatch) -> None:
        """Publish the results of a batch; before the deadline the stable lane has them as well.

        When the lane ends, its next owner takes over what is there: nothing may come after that.
        """
        running.is_prepared = True
        boundary_ms = batch.marker.boundary_ms
        is_due = self._phase is ForkPhase.PUBLISHING and not self._stop.is_set()
        if not is_due:
            running.publishing.early(boundary_ms)
        else:
            made = topic.made(running.generation, batch.results)
            due = running.publishing.due(made, self._limit_ms(running, boundary_ms), running.cut_ms)
            topic.publish(running.generation, due)
            self._tell_readers(topic, running, boundary_ms)
        if batch.elapsed_ms is not None:
            self._measured = self._measured.with_latency(batch.elapsed_ms)

    def _limit_ms(self, running: RunningFork, boundary_ms: Millis | None) -> Millis | None:
        """The event time up to which results are published; None: all are.

        Event time has released those that wait for it. Others are held for the forks that read
        them in its order, or, with `delay`, as long as event time would hold them.
        """
        fragment = self._settings.fragment
        if fragment.shape.waits:
            return None
        if fragment.output.tentative:
            return NOTHING_MS if boundary_ms is None else boundary_ms
        return running.steered.most_ms

    def _ended(self) -> ForkEvent | None:
        """What a fork has come to by itself."""
        running = self._running
        if running is None:
            return None
        if running.has_ended.is_set():
            self._running = None
            self._opened().end(running.generation)
            if (self._phase, ForkEvent.FAILED) in TRANSITIONS:  # it was not asked to end
                raise running.error or RetryError("the query of a fork has ended")
            return None
        if self._phase is ForkPhase.PREPARING and running.is_prepared:
            return ForkEvent.PREPARED
        return None

    def _failed(self, error: MedusaError) -> None:
        """Let the fork rest after an error; without a fork, what failed is tried again."""
        _log.warning("tentative results: %s", error, extra=self._label)
        running = self._running
        if running is not None:
            running.fork.request_stop()
        if (self._phase, ForkEvent.FAILED) in TRANSITIONS:
            if (
                self._phase is ForkPhase.PUBLISHING
                and self._now_ms - self._phase_ms > RETRY_MOST_MS
            ):
                self._failures = 0  # it is another problem than that of those before
            self._move(ForkEvent.FAILED)
            self._failures += 1
            self._problem = str(error)
            self._rests_until_ms = self._now_ms + rest_ms(self._failures)

    def _tell_readers(
        self, topic: TentativeTopic, running: RunningFork, complete_ms: Millis | None
    ) -> None:
        """Write how far the fork is, for the forks of those that read the output.

        Args:
            topic: of the results.
            running: the fork.
            complete_ms: its boundary; None: it has published nothing.
        """
        watch = self._watched
        if watch is None or not self._settings.fragment.output.tentative:
            return
        found = Progress(
            running.generation,
            0,
            held=held_boundaries(watch, self._settings.fragment.shape, self._now_ms),
        )
        begins_ms = running.publishing.begins_ms
        if complete_ms is not None and begins_ms is not None:
            found = replace(found, begins_ms=begins_ms, complete_ms=complete_ms)
        topic.report(found)

    def _announce(self) -> None:
        """Let the readers of the output begin their forks meanwhile: the waits overlap."""
        running = self._running
        if running is None or self._phase not in (ForkPhase.PREPARING, ForkPhase.READY):
            return
        try:
            self._tell_readers(self._topic, running, None)
        except MedusaError as error:
            _log.warning("readers do not see what is held back: %s", error, extra=self._label)

    def _settle(self) -> None:
        """Settle again and again, on a thread of its own: it may wait for what is missing."""
        looks = 0
        while not self._stop.wait(ANNOUNCE_S):
            looks += 1
            self._announce()
            if looks * ANNOUNCE_S >= SETTLE_S:
                looks = 0
                self._settle_if_due()

    def _settle_if_due(self) -> None:
        now_s, promised_ms = self._host.clock.monotonic_s(), self._last.boundary_ms
        if now_s < self._settles_at_s:
            return
        try:
            topic = self._opened()
            if promised_ms is not None:
                topic.settle(promised_ms)
        except Exception as error:  # noqa: BLE001 - it must not end what settles
            self._unsettled += 1
            self._unsettled_problem = str(error)
            self._settles_at_s = now_s + rest_ms(self._unsettled) / 1000
            _log.warning("tentative results are not settled: %s", error, extra=self._label)
        else:
            self._unsettled, self._unsettled_problem = 0, ""

    def _opened(self) -> TentativeTopic:
        """The topic, after what an earlier process has left in it was read."""
        self._topic.resume(self._output_ends)
        return self._topic

    @property
    def _output_ends(self) -> Ends:
        """All results of later batches are behind these ends of the output."""
        return {self._settings.fragment.output.topic: self._last.output_ends}

    @property
    def _last(self) -> CommitMarker:
        return next(reversed(self._markers.values()))

    def _causes(self) -> str:
        found = self._held
        if found is None:
            return "nothing is missing any more"
        return f"missing is {', '.join(map(missing_text, sorted(found.causes)))}"

    @property
    def _now_ms(self) -> SteadyMillis:
        return steady_ms(self._host.clock)

    @property
    def _label(self) -> Mapping[str, str]:
        return {"fragment": str(self._settings.lane.fragment)}

    def _report(self) -> None:
        """Report to the agent what there is to say, if that is due."""
        state, now_ms = self.state, self._now_ms
        if is_due(state, self._said, self._said_ms, now_ms):
            self._said, self._said_ms = state, now_ms
            self._host.report(LaneTentative(self._settings.lane, self._settings.run, state))

    def _say(self, text: str) -> None:
        _log.info("%s", text, extra=self._label)
