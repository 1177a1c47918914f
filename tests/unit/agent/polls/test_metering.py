"""The poll that meters a node."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from brokers.records import Ends
from pipeline.agent.polls.metering import PAUSE_S, SAMPLE_READINGS, Counters, MeteringPoll
from pipeline.errors import BrokenInvariantError, UnavailableError
from pipeline.ids import FragmentId, FragmentName, Millis, Offset, TopicName
from pipeline.metering.load import CoreSpeed
from pipeline.metering.readings import Flow, LaneUse, ProcessTimes
from tests.unit.agent.polls.support import MOVING, NETWORK, World, node_record

FRAGMENT = FragmentId(NETWORK, MOVING)
OTHER = FragmentId(NETWORK, FragmentName("other"))
TOPIC = TopicName("in")
SECOND_NS = 1_000_000_000


@dataclass
class Node:
    """Counters that grow by the same with each reading, and a clock."""

    now_s: float = 0.0
    readings: int = 0
    tasks_ns: Mapping[str, int] = field(default_factory=lambda: {"run": 2 * SECOND_NS})
    java_ns: int = 4 * SECOND_NS
    uses: dict[FragmentId, LaneUse] = field(default_factory=dict)
    sized_by: list[Mapping[TopicName, float]] = field(default_factory=list)
    has_kafka: bool = True

    def read(self) -> ProcessTimes:
        """The node's process: a second; Java: four."""
        self.readings += 1
        return ProcessTimes(self.readings * SECOND_NS, 0, self.readings * self.java_ns, 0, 0)

    @property
    def groups(self) -> Mapping[str, FragmentId]:
        """One query."""
        return {"run": FRAGMENT}

    def tasks(self, spent_ns: Mapping[FragmentId, int]) -> Mapping[FragmentId, LaneUse]:
        """Add tasks, half a second of writing, and ten records."""
        for fragment, ns in spent_ns.items():
            use = self.uses.get(fragment, LaneUse())
            grown = Flow(10, 10, 1_000, 500)
            self.uses[fragment] = replace(
                use,
                tasks_ns=use.tasks_ns + ns,
                writing_ns=use.writing_ns + SECOND_NS // 2,
                flow=use.flow.plus(grown),
            )
        return dict(self.uses)

    def take_positions(self) -> Ends:
        """A position."""
        return {TOPIC: {0: Offset(9)}}

    def sized(self, sizes: Mapping[TopicName, float]) -> None:
        """Note the sizes."""
        self.sized_by.append(sizes)

    def sizes(self, before: Ends) -> Mapping[TopicName, float]:
        """A size, unless Kafka does not answer."""
        if not self.has_kafka:
            raise UnavailableError("Kafka does not answer")
        return dict.fromkeys(before, 100.0)

    def monotonic_s(self) -> float:
        """Steady time."""
        return self.now_s

    def now_ms(self) -> Millis:
        """Wall time."""
        return Millis(round(1_000 * self.now_s))

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds


class _Tasks:
    """Spark's tasks, as the node says."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def read(self) -> Mapping[str, int]:
        """The increase; a group of no lane counts for none."""
        return {**self._node.tasks_ns, "practice": SECOND_NS}


def metering(node: Node, world: World) -> MeteringPoll:
    """The poll of a node with cores of twice the reference's speed."""
    counters = Counters(node, _Tasks(node), node, node, remote_tasks=False)
    thread_ns = lambda: node.readings * SECOND_NS // 100  # noqa: E731
    record, loads = node_record("here"), world.catalog.loads
    return MeteringPoll(record, counters, CoreSpeed(2_000), 2, loads, node, thread_ns)


def read(poll: MeteringPoll, node: Node, times: int) -> None:
    """Read so often, ten seconds apart."""
    for _ in range(times):
        assert poll.read() == PAUSE_S
        node.sleep(PAUSE_S)


def test_the_load_of_the_last_minute_is_reported() -> None:
    """In load units in each second: CPU time times the speed of a core; nothing by one reading."""
    node, world = Node(), World()
    poll = metering(node, world)
    read(poll, node, 1)
    assert world.catalog.loads.all() == ()
    read(poll, node, 9)
    (found,) = world.catalog.loads.all()
    assert (found.span_ms, found.core_permille, found.cores) == (60_000, 2_000, 2)
    assert found.total == 2 * 50_000
    assert found.metering == 200
    (one,) = found.fragments
    assert one.id == FRAGMENT
    assert (one.tasks, one.writing, one.shared) == (40_000, 10_000, 40_000)
    assert one.total + found.overhead == found.total
    assert (one.records_in, one.bytes_in, one.bytes_out) == (1, 100, 50)
    assert one.charged == 9 * 900_000


def test_sizes_are_sampled_once_a_minute() -> None:
    """In the first reading, too; without an answer metering goes on."""
    node, world = Node(), World()
    poll = metering(node, world)
    read(poll, node, SAMPLE_READINGS)
    node.has_kafka = False
    read(poll, node, 2)
    assert node.sized_by == [{TOPIC: 100.0}]
    assert world.catalog.loads.all()[0].span_ms == 60_000


def test_a_fragment_that_has_done_nothing_for_a_minute_has_no_load() -> None:
    """Its account stays, for when it comes back."""
    node, world = Node(), World()
    poll = metering(node, world)
    read(poll, node, 3)
    node.tasks_ns = {}
    read(poll, node, 8)
    assert world.catalog.loads.all()[0].fragments == ()
    node.tasks_ns = {"run": SECOND_NS}
    read(poll, node, 1)
    assert world.catalog.loads.all()[0].fragments[0].charged > 2 * 900_000


def test_after_a_counter_that_decreased_metering_begins_anew() -> None:
    """The error is raised, for the log; nothing is charged for the interval."""
    node, world = Node(), World()
    poll = metering(node, world)
    read(poll, node, 2)
    node.java_ns = 0
    with pytest.raises(BrokenInvariantError, match="has decreased"):
        poll.read()
    read(poll, node, 2)
    (found,) = world.catalog.loads.all()
    assert found.span_ms == 10_000
