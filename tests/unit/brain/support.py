"""An agent under test: feeds events to `decide`, keeps its state, its clocks and effects."""

from dataclasses import replace

from pipeline.boundaries.lane_time import writer_of
from pipeline.boundaries.profile import DerivedInput, ExternalInput, LaneProfile, Stateless
from pipeline.brain.decide import decide
from pipeline.brain.events import (
    BoundariesWatched,
    BoundaryRead,
    CatalogRead,
    Desired,
    Effect,
    EndsRead,
    Event,
    NotePromises,
    PublishStatus,
    SayActivity,
    Tick,
)
from pipeline.brain.now import Now
from pipeline.brain.state import Lane, NodeState
from pipeline.brain.status import status
from pipeline.catalog.records import FragmentStatus
from pipeline.ids import (
    Epoch,
    FragmentName,
    Incarnation,
    Millis,
    NetworkLife,
    NetworkName,
    NetworkVersion,
    NodeId,
    Offset,
    SteadyMillis,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.lanes.events import BatchFinished, FragmentId, LaneStarted, LaneStopped
from pipeline.lanes.markers import CommitMarker
from pipeline.lanes.positions import InputPartition
from pipeline.lanes.start import Wanted, first_marker
from pipeline.network.model import Silence

NETWORK = NetworkName("tolls")
LIFE = NetworkLife("one")
SPEED = FragmentId(NETWORK, FragmentName("speed"))
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


def wish(
    fragment: FragmentId = SPEED,
    *,
    life: NetworkLife = LIFE,
    version: int = 1,
    digest: str = "d1",
    running: bool = True,
) -> Desired:
    """What the catalog wants of a fragment here."""
    return Desired(fragment, life, NetworkVersion(version), digest, running)


def fresh_marker(*inputs: ExternalInput | DerivedInput, epoch: int = 1) -> CommitMarker:
    """The marker of a lane that has read nothing of two partitions of each input."""
    end = {at(i, p): Offset(0) for i in inputs for p in (0, 1)}
    wanted = Wanted(Epoch(epoch), "digest", stateful=True, on_change=None, place="here")
    return first_marker(wanted, Incarnation(f"life-{epoch}"), end, START_MS)


class Agent:
    """One node's agent."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.state = NodeState(NodeId("node1"))
        self.steady_ms = BEGAN_MS
        self.ahead_ms = 0
        """By how much its wall clock is ahead of the right time."""

    @property
    def now(self) -> Now:
        """What its clocks show."""
        passed_ms = self.steady_ms - BEGAN_MS
        return Now(Millis(START_MS + passed_ms + self.ahead_ms), self.steady_ms)

    def wait(self, milliseconds: int) -> None:
        """Let time pass without looking."""
        self.steady_ms = SteadyMillis(self.steady_ms + milliseconds)

    def hear(self, event: Event) -> tuple[Effect, ...]:
        """Tell the agent something; what it does, reports and what lanes are only told aside."""
        aside = PublishStatus | NotePromises | SayActivity
        return tuple(e for e in self.hear_all(event) if not isinstance(e, aside))

    def hear_all(self, event: Event) -> tuple[Effect, ...]:
        """Tell the agent something; everything it does."""
        self.state, effects = decide(self.state, event, self.now)
        return effects

    def tick(self, milliseconds: int = 0) -> tuple[Effect, ...]:
        """Let time pass, then look."""
        self.wait(milliseconds)
        return self.hear(Tick())

    def lane(self, fragment: FragmentId = SPEED) -> Lane:
        """The agent's view of a lane."""
        return self.state.lanes[fragment]

    def report(self, fragment: FragmentId = SPEED) -> FragmentStatus:
        """The lane's status now."""
        return status(self.state, fragment, self.now)

    def want(self, *wishes: Desired) -> tuple[Effect, ...]:
        """The catalog is read."""
        return self.hear(CatalogRead(wishes))

    def started(
        self,
        *inputs: ExternalInput | DerivedInput,
        epoch: int = 1,
        profile: LaneProfile | None = None,
    ) -> tuple[Effect, ...]:
        """The lane starts at the beginning of its inputs."""
        found = fresh_marker(*inputs, epoch=epoch)
        shape = profile or LaneProfile(inputs, Stateless())
        return self.hear(LaneStarted(SPEED, Epoch(epoch), found.incarnation, found, shape))

    def stopped(
        self,
        error: str | None = "boom",
        *,
        epoch: int = 1,
        retry: bool = True,
        fenced: bool = False,
        external: bool = False,
    ) -> tuple[Effect, ...]:
        """The lane ends."""
        return self.hear(LaneStopped(SPEED, Epoch(epoch), error, retry, fenced, external))

    def finished(
        self,
        end: dict[InputPartition, int],
        progress: dict[InputPartition, int] | None = None,
        *,
        epoch: int = 1,
        boundary_ms: int | None = None,
    ) -> tuple[Effect, ...]:
        """A batch of the running lane finishes."""
        last = self.lane().marker
        assert last is not None
        found = replace(
            last,
            end={**last.end, **{p: Offset(o) for p, o in end.items()}},
            progress={**last.progress, **{p: Millis(t) for p, t in (progress or {}).items()}},
            boundary_ms=None if boundary_ms is None else Millis(boundary_ms),
        )
        return self.hear(BatchFinished(SPEED, Epoch(epoch), found, 1, 40))

    def ends(
        self, ends: dict[InputPartition, int], *, opened: InputPartition | None = None
    ) -> tuple[Effect, ...]:
        """Topics tell their ends: see `answer`."""
        return self.hear(self.answer(ends, opened=opened))

    def answer(
        self, ends: dict[InputPartition, int], *, opened: InputPartition | None = None
    ) -> EndsRead:
        """What topics tell of their ends; one that is left out does not answer.

        `opened`: where an open transaction has written one record more.
        """
        found: dict[TopicName, dict[int, Offset]] = {}
        written: dict[TopicName, dict[int, Offset]] = {}
        for key, offset in ends.items():
            found.setdefault(key.topic, {})[key.partition] = Offset(offset)
            more = Offset(offset + (key == opened))
            written.setdefault(key.topic, {})[key.partition] = more
        return EndsRead(self.steady_ms, found, written)

    def watch_boundaries(self, *inputs: DerivedInput) -> None:
        """Boundaries of these inputs are read from now on."""
        self.hear(BoundariesWatched(frozenset(writer_of(one) for one in inputs)))

    def promise(self, of: DerivedInput, at_ms: int, *offsets: int) -> tuple[Effect, ...]:
        """A boundary of an input's writer is read, for partitions 0, 1, …."""
        positions = {p: Offset(offset) for p, offset in enumerate(offsets)}
        return self.hear(BoundaryRead(writer_of(of), Epoch(1), Millis(at_ms), positions))
