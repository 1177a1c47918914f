"""Test driver of an agent: feeds events to `decide`, keeps its state, its clocks and effects.

It plays the running lane, too: with each answer about ends, each batch and each tick the lane
observes its event time and reports it.
"""

from dataclasses import replace
from typing import NamedTuple

from pipeline.agent.decide import decide
from pipeline.agent.effects import Effect, MakePlan, StartLane, StopLane
from pipeline.agent.events import CatalogRead, EndsRead, Event, PlanMade, Tick
from pipeline.agent.now import Now
from pipeline.agent.state import Lane, NodeState, Running, Shared
from pipeline.agent.status import status
from pipeline.boundaries import lane_time
from pipeline.boundaries.ends import Answer, Ends, Place, ends_of
from pipeline.boundaries.lane_time import LaneTime
from pipeline.boundaries.profile import DerivedInput, ExternalInput, LaneProfile
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.catalog.records import DesiredState, FragmentRecord, NetworkRecord, NodeRecord
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.ids import (
    Epoch,
    FragmentId,
    FragmentName,
    Incarnation,
    Millis,
    NetworkId,
    NetworkLife,
    NetworkName,
    NetworkVersion,
    NodeId,
    Offset,
    ParticipantId,
    RunNumber,
    SteadyMillis,
    StreamName,
    TopicId,
    TopicName,
    stable_lane,
)
from pipeline.lanes.events import BatchFinished, LaneStarted, LaneStopped, LaneTimed
from pipeline.lanes.start.facts import StartRequest, StateChoice
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition
from pipeline.network.boxes.shape import Stateless
from pipeline.network.model import Silence
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, external, filtered, network

HERE = NodeId("node1")
NETWORK = NetworkId(ParticipantId("local"), NetworkName("tolls"))
LIFE = NetworkLife("one")
SPEED = FragmentId(NETWORK, FragmentName("speed"))
LANE = stable_lane(SPEED)
_SIGHTINGS = external("sightings")
PLAN = plan(
    network(
        (_SIGHTINGS,),
        (filtered("speed", _SIGHTINGS, "`at` > 0"), filtered("volume", _SIGHTINGS, "`at` > 1")),
    ),
    OWNER,
)
"""Of every version of the network."""
CARS = ExternalInput(
    stream=StreamName("cars"),
    topic=TopicName("car-sightings"),
    partitions=2,
    lateness_ms=5_000,
    idle_after_ms=10_000,
    silence=Silence.IDLE,
)
LEFT = DerivedInput(
    StreamName("left"), TopicName("tolls.left"), 2, "local.tolls.left", TopicId("left-1")
)
RIGHT = DerivedInput(
    StreamName("right"), TopicName("tolls.right"), 2, "local.tolls.right", TopicId("right-1")
)
START_MS = Millis(1_700_000_000_000)
"""A wall time at which tests begin, and the steady time by then."""
BEGAN_MS = SteadyMillis(70_000_000)


def at(lane_input: ExternalInput | DerivedInput, partition: int) -> InputPartition:
    """A partition of an input's own topic."""
    return InputPartition(lane_input.stream, lane_input.topic, partition)


class Start(NamedTuple):
    """A start of a lane."""

    fragment: FragmentId
    life: NetworkLife
    version: NetworkVersion


class Stop(NamedTuple):
    """A stop of a lane."""

    fragment: FragmentId


LaneEffect = Start | Stop


def lane_effects(effects: tuple[Effect, ...]) -> tuple[LaneEffect, ...]:
    """The effects on lanes, without plans, reports and other messages."""
    found: list[LaneEffect] = []
    for effect in effects:
        match effect:
            case StartLane(lane, _, deployed):
                life, version = deployed.network.life, deployed.record.version
                found.append(Start(lane.fragment, life, version))
            case StopLane(lane):
                found.append(Stop(lane.fragment))
            case _:
                pass
    return tuple(found)


def deployed(
    fragment: FragmentId = SPEED,
    *,
    life: NetworkLife = LIFE,
    version: int = 1,
    digest: str = "d1",
    running: bool = True,
    choice: StateChoice | None = None,
) -> Deployed:
    """The desired state of a fragment in the catalog."""
    number = NetworkVersion(version)
    desired = DesiredState.RUNNING if running else DesiredState.STOPPED
    chosen = None if choice is None else (choice.on_change, choice.incarnation)
    record = FragmentRecord(
        fragment.network, fragment.fragment, number, desired, digest, (), chosen, (), None
    )
    return Deployed(NetworkRecord(fragment.network, number, life, (), ()), record)


def fresh_marker(*inputs: ExternalInput | DerivedInput, epoch: int = 1) -> CommitMarker:
    """The marker of a lane that has read nothing of two partitions of each input."""
    end = {at(i, p): Offset(0) for i in inputs for p in (0, 1)}
    request = StartRequest(Epoch(epoch), "digest", stateful=True, on_change=None, place="here")
    return first_marker(request, Incarnation(f"life-{epoch}"), end, START_MS)


class Agent:
    """The agent of one node."""

    def __init__(self) -> None:
        """The initial state."""
        self.state = NodeState(Shared(HERE, OWNER, START_MS))
        self.steady_ms = BEGAN_MS
        self.ahead_ms = 0
        """Error of the wall clock: its time minus the correct one."""

    @property
    def now(self) -> Now:
        """The times of its clocks."""
        passed_ms = self.steady_ms - BEGAN_MS
        return Now(Millis(START_MS + passed_ms + self.ahead_ms), self.steady_ms)

    def wait(self, milliseconds: int) -> None:
        """Let time pass without a tick."""
        self.steady_ms = SteadyMillis(self.steady_ms + milliseconds)

    def receive(self, event: Event) -> tuple[LaneEffect, ...]:
        """Feed an event; the effects on lanes."""
        return lane_effects(self.receive_all(event))

    def receive_all(self, event: Event) -> tuple[Effect, ...]:
        """Feed an event, the plans that it requests, and what the lane reports; all effects."""
        before = self.state.shared.ends
        effects = self._receive(event)
        running = LANE in self.state.lanes and self.lane().running
        if running and isinstance(event, EndsRead):
            time = lane_time.ends_read(running.time, before, event.ends)
            return (*effects, *self._observed(time))
        if running and isinstance(event, Tick | BatchFinished):
            return (*effects, *self._observed(running.time))
        return effects

    def _observed(self, time: LaneTime) -> tuple[Effect, ...]:
        time, _ = lane_time.observe(time, self.state.shared.ends, self.steady_ms)
        return self._receive(LaneTimed(LANE, self.lane().run, time))

    def _receive(self, event: Event) -> tuple[Effect, ...]:
        self.state, effects = decide(self.state, event, self.now)
        for effect in effects:
            if isinstance(effect, MakePlan):
                effects = (*effects, *self.receive_all(PlanMade(effect.version, PLAN)))
        return effects

    def tick(self, milliseconds: int = 0) -> tuple[LaneEffect, ...]:
        """Let time pass, then feed a tick."""
        self.wait(milliseconds)
        return self.receive(Tick())

    def lane(self, fragment: FragmentId = SPEED) -> Lane:
        """The agent's state of a lane."""
        return self.state.lanes[stable_lane(fragment)]

    def running(self, fragment: FragmentId = SPEED) -> Running:
        """The state of the lane's running query."""
        found = self.lane(fragment).running
        assert found is not None
        return found

    def report(self, fragment: FragmentId = SPEED) -> FragmentStatus:
        """The present status of the lane."""
        return status(self.lane(fragment), self.state.shared, self.now)

    def read_catalog(self, *records: Deployed) -> tuple[LaneEffect, ...]:
        """Feed a read of the catalog."""
        return self.receive(read(*records))

    def started(
        self,
        *inputs: ExternalInput | DerivedInput,
        epoch: int = 1,
        profile: LaneProfile | None = None,
    ) -> tuple[LaneEffect, ...]:
        """The lane starts at the beginning of its inputs."""
        found = fresh_marker(*inputs, epoch=epoch)
        time = self.begin(found, profile or LaneProfile(inputs, Stateless()))
        return self.receive(
            LaneStarted(LANE, self._run(), Epoch(epoch), found, time, self.steady_ms)
        )

    def begin(self, marker: CommitMarker, profile: LaneProfile) -> LaneTime:
        """The event time with which a lane begins at a marker."""
        return lane_time.begin(profile, marker, {}, self.steady_ms)

    def stopped(
        self,
        error: str | None = "boom",
        *,
        epoch: int = 1,
        retry: bool = True,
        fenced: bool = False,
        external: bool = False,
        run: int | None = None,
    ) -> tuple[LaneEffect, ...]:
        """The lane ends; `run`: None: the present run."""
        stopped = LaneStopped(LANE, self._run(run), Epoch(epoch), error, retry, fenced, external)
        return self.receive(stopped)

    def finished(
        self,
        end: dict[InputPartition, int],
        progress: dict[InputPartition, int] | None = None,
        *,
        run: int | None = None,
        boundary_ms: int | None = None,
        read: int = 0,
        late: int = 0,
    ) -> tuple[LaneEffect, ...]:
        """A batch of the running lane finishes."""
        last = self.lane().marker
        assert last is not None
        totals = last.totals
        found = replace(
            last,
            totals=replace(
                totals,
                records_in=totals.records_in + read,
                late_dropped=totals.late_dropped + late,
            ),
            end={**last.end, **{p: Offset(o) for p, o in end.items()}},
            progress={**last.progress, **{p: Millis(t) for p, t in (progress or {}).items()}},
            boundary_ms=None if boundary_ms is None else Millis(boundary_ms),
        )
        return self.receive(BatchFinished(LANE, self._run(run), found, 1, 40))

    def ends(
        self,
        ends: dict[InputPartition, int],
        *,
        opened: InputPartition | None = None,
        missing: InputPartition | None = None,
    ) -> tuple[LaneEffect, ...]:
        """Feed the ends of topics: see `answer`."""
        return self.receive(self.answer(ends, opened=opened, missing=missing))

    def answer(
        self,
        ends: dict[InputPartition, int],
        *,
        opened: InputPartition | None = None,
        missing: InputPartition | None = None,
    ) -> EndsRead:
        """What topics tell of their ends; one that is left out does not answer.

        `opened`: where an open transaction has written one record more. `missing`: a partition
        whose leader does not answer.
        """
        found: dict[TopicName, dict[int, Offset]] = {}
        written: dict[TopicName, dict[int, Offset]] = {}
        for key, offset in ends.items():
            found.setdefault(key.topic, {})[key.partition] = Offset(offset)
            more = Offset(offset + (key == opened))
            written.setdefault(key.topic, {})[key.partition] = more
        places = () if missing is None else ((missing.topic, missing.partition),)
        return EndsRead(self.ends_of(found, written, places))

    def ends_of(
        self,
        stable: dict[TopicName, dict[int, Offset]],
        written: dict[TopicName, dict[int, Offset]],
        missing: tuple[Place, ...] = (),
    ) -> Ends:
        """Ends that are read now, after those that the agent has got."""
        answer = Answer(stable, written, missing=frozenset(missing))
        return ends_of(self.state.shared.ends, self.steady_ms, answer)

    def _run(self, run: int | None = None) -> RunNumber:
        lane = self.state.lanes.get(LANE)
        return RunNumber(1 if lane is None else lane.run) if run is None else RunNumber(run)


def read(*records: Deployed) -> CatalogRead:
    """Feed a read of the catalog with these desired states."""
    return CatalogRead(CatalogSnapshot((node_record(HERE),), records))


def node_record(name: NodeId) -> NodeRecord:
    """The record of a node that is up."""
    return NodeRecord(name, OWNER, "host", 1, START_MS, "0", reads=1)
