"""One run of an example: waits for the network, feeds it, observes it, waits for the last windows.

All dependencies are passed in, so that its tests need no server.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from brokers.kafka_interface import RecordReader, TopicAdmin
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.clock import Clock, Deadline
from pipeline.errors import EnvironmentProblem, MedusaError
from pipeline.examples.collect import Collected
from pipeline.examples.decoding import Decoding
from pipeline.examples.view import Observation, View, arrows, troubles
from pipeline.ids import Millis, Offset
from pipeline.network.model import Network
from pipeline.planner.plan import Plan
from pipeline.reference.inputs import InputRecord
from schemas.avro import parse

RUNNING_WITHIN_S = 120.0
FED_WITHIN_S = 60.0
"""Extra time for the feed beyond its seconds, deliveries included."""
SILENT_WITHIN_S = 180.0
SETTLED_WITHIN_S = 4 * SILENT_WITHIN_S
"""A slow machine may take a while for the last windows, as long as results still arrive, or
boundaries rise."""
OBSERVE_EVERY_S = 1.0
_POLL_S = 0.2


class Feed(Protocol):
    """The producer, a process of its own."""

    @property
    def running(self) -> bool:
        """Whether it is still running."""

    @property
    def exit_code(self) -> int | None:
        """0 when everything was delivered; None while it runs."""

    def failure(self, what: str) -> MedusaError:
        """The error of its failure, with its last output."""


class Screen(Protocol):
    """Display of progress."""

    def step(self, text: str) -> None:
        """A longer step begins."""

    def show(self, view: View) -> None:
        """Display the state of the network."""


class Beside(Protocol):
    """What else is read during a run."""

    def poll(self) -> None:
        """Read what is there."""

    def counts(self) -> str:
        """The numbers so far, in words."""


Then = tuple[float, Callable[[], None]]
"""A share of the feed's duration, and what is done after it."""


@dataclass(frozen=True, slots=True)
class World:
    """Dependencies of a run.

    Args:
        graph: the network as text.
        records: a reader of the network's output.
        inputs: a reader of the network's input.
        statuses: the last reported status of the network's fragments.
        check: raises if a required process has ended.
        measure: called periodically, to measure memory.
        beside: what else is read; None: nothing.
    """

    plan: Plan
    graph: str
    topics: TopicAdmin
    records: RecordReader
    inputs: RecordReader
    statuses: Callable[[], tuple[FragmentStatus, ...]]
    check: Callable[[], None]
    measure: Callable[[], None]
    screen: Screen
    clock: Clock
    beside: Beside | None = None


@dataclass(slots=True)
class Run:
    """One run over a deployed network."""

    world: World
    collected: Collected
    _observations: list[Observation] = field(default_factory=list)
    _observed_at_s: float = float("-inf")

    def await_running(self) -> None:
        """Wait until every fragment runs, then begin to read all of its output.

        Raises:
            EnvironmentProblem: a fragment failed.
            RetryError: it took too long.
        """
        world = self.world
        world.screen.step("waiting for the boxes to run")
        deadline = Deadline.after(world.clock, RUNNING_WITHIN_S, "starting the network")
        while not self._all_run():
            world.check()
            deadline.check("medusa logs shows what the node does.")
            world.clock.sleep(_POLL_S)
        topics = self.collected.watched.all
        found = world.topics.describe(topics)
        world.records.assign(
            {t: dict.fromkeys(range(found[t].partitions), Offset(0)) for t in topics if t in found}
        )

    def watch(self, feed: Feed, seconds: float, then: Sequence[Then] = ()) -> None:
        """Collect and display while the feed runs; `then`: what is done meanwhile, in its order.

        Raises:
            MedusaError: the feed, a server or a fragment failed.
            RetryError: the feed does not end.
        """
        clock = self.world.clock
        began_s, waiting = clock.monotonic_s(), list(then)
        deadline = Deadline.after(clock, seconds + FED_WITHIN_S, "feeding")
        while feed.running:
            fed_s = min(seconds, clock.monotonic_s() - began_s)
            if waiting and fed_s >= seconds * waiting[0][0]:
                waiting.pop(0)[1]()
            self._turn(f"fed for {fed_s:.0f} of {seconds:g} s")
            deadline.check()
        if feed.exit_code != 0:
            raise feed.failure("the producer could not deliver everything")

    def inputs(self, network: Network, decoding: Decoding) -> dict[str, tuple[InputRecord, ...]]:
        """All records of the input topics, by stream, in the order of each log."""
        world = self.world
        found = {}
        for stream in network.streams:
            ends = world.topics.end_offsets([stream.topic])
            starts = {topic: dict.fromkeys(offsets, Offset(0)) for topic, offsets in ends.items()}
            world.inputs.assign(starts)
            reader = parse(stream.schema_json)
            records = (decoding.given(record, reader) for record in world.inputs.read_to(ends))
            found[str(stream.name)] = tuple(sorted(records, key=lambda given: given.place))
        return found

    def settle(self, last_ms: Millis) -> bool:
        """Wait until all output up to an event time is complete; returns whether it is.

        An output is complete up to its boundary. After the boundary has been read, the topic is
        read to its end. A boundary may be there before the end of its transaction is in each
        partition of the output, so that end is awaited.
        """
        world, collected = self.world, self.collected
        world.screen.step("the feed has ended; waiting for the last windows")
        whole = Deadline.after(world.clock, SETTLED_WITHIN_S, "the last windows")
        silence = Deadline.after(world.clock, SILENT_WITHIN_S, "the last windows")
        complete, seen = False, (collected.taken, collected.complete_until())
        while not (complete or whole.passed or silence.passed):
            self._turn("the feed has ended")
            until = collected.complete_until()
            if (collected.taken, until) != seen:
                seen = collected.taken, until
                silence = Deadline.after(world.clock, SILENT_WITHIN_S, "the last windows")
            complete = until is not None and until >= last_ms
        written = (*collected.watched.outputs, *collected.watched.dead_letters)
        for topic in written:
            world.topics.await_decided(topic)
        ends = world.topics.end_offsets(written)
        for record in world.records.read_to(ends):
            collected.take(record)
        return complete

    def _turn(self, doing: str) -> None:
        """Read new records; periodically observe and display the network."""
        world = self.world
        world.check()
        for record in world.records.poll(_POLL_S):
            self.collected.take(record)
        if world.beside is not None:
            world.beside.poll()
        now_s = world.clock.monotonic_s()
        if now_s - self._observed_at_s < OBSERVE_EVERY_S:
            return
        self._observed_at_s = now_s
        before = self._observations[-1] if self._observations else None
        now = self._observe()
        self._observations = [now]
        world.measure()
        counts = [self.collected.counts()]
        if world.beside is not None:
            counts.append(world.beside.counts())
        world.screen.show(
            View(
                headline=f"{world.plan.network}: {doing}; {'; '.join(counts)}",
                graph=world.graph,
                arrows=arrows(world.plan, before, now),
                newest=tuple(self.collected.newest),
                troubles=troubles(now),
            )
        )

    def _observe(self) -> Observation:
        world = self.world
        statuses = {status.fragment: status for status in world.statuses()}
        self._refuse_failed(statuses.values())
        written = {fragment.output.topic for fragment in world.plan.fragments}
        read = {source.topic for f in world.plan.fragments for source in f.inputs}
        ends = world.topics.end_offsets(sorted(read - written))
        fed = {topic: sum(partitions.values()) for topic, partitions in ends.items()}
        return Observation(world.clock.now_ms(), fed, statuses)

    def _all_run(self) -> bool:
        statuses = {status.fragment: status for status in self.world.statuses()}
        self._refuse_failed(statuses.values())
        return all(
            fragment.name in statuses and statuses[fragment.name].state is LaneState.RUNNING
            for fragment in self.world.plan.fragments
        )

    def _refuse_failed(self, statuses: Iterable[FragmentStatus]) -> None:
        for status in statuses:
            if status.state is LaneState.FAILED:
                raise EnvironmentProblem(
                    f"fragment {status.fragment} failed: {status.last_error}",
                    place=f"network {status.network}",
                    hint="see the node's log, named below.",
                )
