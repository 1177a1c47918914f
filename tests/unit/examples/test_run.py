import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter

import pytest

from brokers.kafka_interface import BEGINNING
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.clock import Deadline
from pipeline.errors import EnvironmentProblem, MedusaError, RetryError
from pipeline.examples.collect import Collected, Watched, watched
from pipeline.examples.run import SETTLED_WITHIN_S, SILENT_WITHIN_S, Run, World
from pipeline.examples.tolls import NOTIFICATIONS, TOLLS
from pipeline.examples.view import View
from pipeline.ids import (
    BoxName,
    Epoch,
    FragmentId,
    FragmentName,
    Millis,
    NetworkId,
    NetworkName,
    ParticipantId,
    StreamName,
    TopicId,
    TopicName,
    TransactionalId,
)
from pipeline.markers.codec import encode_boundary
from pipeline.markers.signals import BoundaryRecord
from pipeline.names import FragmentNames
from pipeline.network.boxes.filter import Filter
from pipeline.network.model import Expression
from pipeline.network.types import Scalar
from pipeline.planner.plan import DerivedStream, Fragment, Plan
from tests.unit.catalog.support import NOTHING_READ
from tests.unit.kafka import with_topics

SIGHTINGS = TopicName("car-sightings")


def derived(name: str, topic: str) -> DerivedStream:
    """A stream that a fragment writes."""
    return DerivedStream(StreamName(name), TopicName(topic), (), None, (), "{}", None, 2)


def fragment(name: str, topic: str) -> Fragment:
    """A fragment that reads the sightings; its boxes are irrelevant here."""
    where = Expression("true", "true", None, Scalar.BOOLEAN, nullable=False, columns=frozenset())
    names = FragmentNames(
        FragmentId(NetworkId(ParticipantId("local"), NetworkName("tolls")), FragmentName(name))
    )
    box = Filter(BoxName(name), StreamName("sightings"), where, columns=(), event_time_column=None)
    return Fragment(names, (derived("sightings", SIGHTINGS),), (box,), derived(name, topic))


PLAN = Plan(
    NetworkId(ParticipantId("local"), NetworkName("tolls")),
    (fragment("toll_notifications", "notes"), fragment("tow_dispatch", "tows")),
    (),
    auto_create=True,
    retention_ms=604_800_000,
)
NOTES, TOWS = TopicName("notes"), TopicName("tows")


class SteppedClock:
    """Time that passes only by sleeping, and actions at given times."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.scheduled: list[tuple[float, Callable[[], object]]] = []

    def now_ms(self) -> Millis:
        """Wall time."""
        return Millis(int(self.seconds * 1_000))

    def monotonic_s(self) -> float:
        """The same as seconds."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds
        due = sorted((one for one in self.scheduled if one[0] <= self.seconds), key=itemgetter(0))
        self.scheduled = [one for one in self.scheduled if one[0] > self.seconds]
        for _, happen in due:
            happen()


@dataclass
class Producer:
    """A feed that ends by itself."""

    clock: SteppedClock
    ends_at_s: float
    code: int = 0

    @property
    def running(self) -> bool:
        """Until its end time."""
        return self.clock.seconds < self.ends_at_s

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return None if self.running else self.code

    def failure(self, what: str) -> MedusaError:
        """An error with the message of the caller."""
        return EnvironmentProblem(what)


@dataclass
class Pages:
    """A screen that keeps its output."""

    steps: list[str] = field(default_factory=list)
    views: list[View] = field(default_factory=list)

    def step(self, text: str) -> None:
        """Keep the step."""
        self.steps.append(text)

    def show(self, view: View) -> None:
        """Keep the page."""
        self.views.append(view)


def status(name: str, state: LaneState, error: str = "") -> FragmentStatus:
    """A report of the node."""
    return replace(NOTHING_READ, fragment=FragmentName(name), state=state, last_error=error)


@dataclass
class Scene:
    """A run over Kafka in memory; all fragments run from `running_from_s` on."""

    running_from_s: float = 1.0
    state_before: LaneState = LaneState.STARTING
    clock: SteppedClock = field(default_factory=SteppedClock)

    def __post_init__(self) -> None:
        followed = watched(PLAN, TOLLS.results)
        self.kafka = with_topics(followed.all, partitions=2, clock=self.clock)
        self.records = self.kafka.reader(1.0)
        self.records.assign({topic: {0: BEGINNING} for topic in followed.all})
        self.pages = Pages()
        world = World(
            plan=PLAN,
            graph="graph",
            topics=self.kafka,
            records=self.records,
            inputs=self.kafka.reader(1.0),
            statuses=self.statuses,
            check=lambda: None,
            measure=lambda: None,
            screen=self.pages,
            clock=self.clock,
        )
        self.run = Run(world, Collected(followed, lambda r: json.loads(r.value or b"")))

    def statuses(self) -> tuple[FragmentStatus, ...]:
        """Both fragments, the second a little later than the first."""
        late = self.clock.seconds >= self.running_from_s
        state = LaneState.RUNNING if late else self.state_before
        return (status("toll_notifications", LaneState.RUNNING), status("tow_dispatch", state, "x"))

    def at(self, seconds: float, topic: TopicName, value: bytes) -> None:
        """Append a record at a time."""
        happen = partial(self.kafka.append, topic, None, value, partition=0)
        self.clock.scheduled.append((seconds, happen))

    def promise(self, seconds: float, topic: TopicName, at_ms: int) -> None:
        """Publish a boundary of an output at a time."""
        boundary = BoundaryRecord(TopicId("an id"), "w", Epoch(1), Millis(at_ms), {})
        self.at(seconds, TopicName(f"{topic}.boundaries"), encode_boundary(boundary))


def note(car: str) -> bytes:
    """A notification."""
    return json.dumps({"car": car, "toll": 2.0, "segment": 1, "seen_at": 5}).encode()


def test_reading_begins_when_all_fragments_run() -> None:
    """Outputs, boundaries and dead letters are all read from their first offset."""
    scene = Scene(running_from_s=3.0)
    scene.records.assign({})
    scene.run.await_running()
    assert 3.0 <= scene.clock.seconds < 4.0
    dead = ("local.tolls.toll_notifications.dlq", "local.tolls.tow_dispatch.dlq")
    topics = ("notes", "tows", "notes.boundaries", "tows.boundaries", *dead)
    assert scene.records.positions == {topic: {0: 0, 1: 0} for topic in topics}


def test_waiting_for_a_network_times_out() -> None:
    """The fragments have a time limit to run."""
    with pytest.raises(RetryError, match="starting the network did not finish in time"):
        Scene(running_from_s=1e9).run.await_running()


def test_a_failed_fragment_ends_the_run_with_its_error() -> None:
    """Without waiting for it."""
    with pytest.raises(EnvironmentProblem, match="fragment tow_dispatch failed: x"):
        Scene(running_from_s=1e9, state_before=LaneState.FAILED).run.await_running()


def test_results_during_the_feed_are_collected_and_displayed() -> None:
    """Notifications appear on the screen while the feed still runs."""
    scene = Scene()
    scene.at(2.0, NOTES, note("car-7"))
    scene.run.watch(Producer(scene.clock, ends_at_s=10.0), 10.0)
    assert len(scene.run.collected.rows[NOTIFICATIONS]) == 1
    assert "car-7 pays 2.0" in scene.pages.views[-1].newest[-1]
    assert 8 <= len(scene.pages.views) <= 11
    assert scene.pages.views[-1].headline.endswith("1 toll notifications, 0 tow dispatches")


@dataclass
class Beside:
    """Another reader, which counts how often it is asked."""

    polls: int = 0

    def poll(self) -> None:
        """Count it."""
        self.polls += 1

    def counts(self) -> str:
        """In words."""
        return "some more"


def test_what_is_read_beside_is_displayed_too() -> None:
    """As often as the outputs."""
    scene, beside = Scene(), Beside()
    scene.run.world = replace(scene.run.world, beside=beside)
    scene.run.watch(Producer(scene.clock, ends_at_s=5.0), 5.0)
    assert beside.polls >= 20
    assert scene.pages.views[-1].headline.endswith("0 tow dispatches; some more")


def test_a_failed_feed_is_an_error() -> None:
    """An exit code other than zero is not ignored."""
    scene = Scene()
    with pytest.raises(EnvironmentProblem, match="could not deliver everything"):
        scene.run.watch(Producer(scene.clock, ends_at_s=3.0, code=1), 3.0)


def test_a_feed_that_does_not_end_times_out() -> None:
    """Feeding has a limit beyond its seconds."""
    scene = Scene()
    with pytest.raises(RetryError, match="feeding did not finish in time"):
        scene.run.watch(Producer(scene.clock, ends_at_s=1e9), 10.0)


def test_settling_reads_to_the_end_behind_the_boundary() -> None:
    """Once both boundaries cover the last event, all records of the topics are read."""
    scene = Scene()
    scene.promise(1.0, NOTES, 100)
    scene.promise(2.0, TOWS, 100)
    for n in range(20):
        scene.at(2.0, NOTES, note(f"car-{n}"))
    assert scene.run.settle(Millis(100))
    assert scene.clock.seconds < 5.0
    assert len(scene.run.collected.rows[NOTIFICATIONS]) == 20


def test_settling_awaits_the_end_of_the_last_transaction() -> None:
    """A boundary may be read before the end of its transaction is in each partition."""
    scene = Scene()
    writer = scene.kafka.transactions(TransactionalId("w"))
    deadline = Deadline.after(scene.clock, 60.0, "writing")
    writer.start(deadline)
    writer.begin()
    writer.send(NOTES, None, note("car-1"), timestamp_ms=5, partition=0)
    scene.promise(1.0, NOTES, 100)
    scene.promise(1.0, TOWS, 100)
    scene.clock.scheduled.append((2.0, partial(writer.commit, deadline)))
    assert scene.run.settle(Millis(100))
    assert len(scene.run.collected.rows[NOTIFICATIONS]) == 1


def test_settling_without_the_boundary_reads_what_exists_and_reports_it() -> None:
    """When a boundary stays behind, the run ends all the same, and is not complete."""
    scene = Scene()
    scene.promise(1.0, NOTES, 100)
    scene.promise(1.0, TOWS, 99)
    scene.at(2.0, NOTES, note("car-1"))
    assert not scene.run.settle(Millis(100))
    assert len(scene.run.collected.rows[NOTIFICATIONS]) == 1
    assert SILENT_WITHIN_S <= scene.clock.seconds < SILENT_WITHIN_S + 5


def test_settling_continues_while_boundaries_rise_with_a_limit() -> None:
    """Each boundary that rises extends the time, up to a total limit."""
    scene = Scene()
    scene.promise(1.0, NOTES, 100)
    for second in range(0, 1_000, 50):
        scene.promise(float(second), TOWS, second // 50)
    assert not scene.run.settle(Millis(100))
    assert SETTLED_WITHIN_S <= scene.clock.seconds < SETTLED_WITHIN_S + 1


def test_the_outputs_of_the_plan_are_watched() -> None:
    """Topic names come from the plan, dead letters of every fragment included."""
    assert watched(PLAN, TOLLS.results) == Watched(
        dict(zip((NOTES, TOWS), TOLLS.results, strict=True)),
        {
            TopicName("local.tolls.toll_notifications.dlq"): FragmentName("toll_notifications"),
            TopicName("local.tolls.tow_dispatch.dlq"): FragmentName("tow_dispatch"),
        },
    )
