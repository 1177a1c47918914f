"""Steps of lanes that take too long, in the status of fragments."""

from dataclasses import replace
from typing import cast

import pytest

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import NodeRecord
from pipeline.errors import UnavailableError
from pipeline.heartbeats.codec import encode
from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.heartbeats.steps import StepAge
from pipeline.ids import FragmentName, NetworkId, NetworkName, NodeId, ParticipantId, SteadyMillis
from pipeline.names import heartbeats_topic
from pipeline.operations.connections import Connections
from pipeline.operations.status.fragments import fragments_status
from pipeline.operations.status.observed import ObservedFragment
from pipeline.operations.status.steps import AGAIN_S, StepSearch
from tests.unit.catalog.support import NOTHING_READ
from tests.unit.deploy.twins import NOW, World
from tests.unit.kafka import create
from tests.unit.operations.twins import TwinConnections, TwinRecomputer

US = ParticipantId("local")
CARS = NetworkId(US, NetworkName("cars"))
NODE = NodeRecord(NodeId("n1"), US, "host", 1, NOW, "0", reads=1)
LONG = StepAge("cars.moving", "batch", 90_000)


class Flaky(TwinConnections):
    """Counts the connections to Kafka; they fail when asked for."""

    opened = 0
    fails = False

    def lookups(self, within_s: float) -> tuple[TopicAdmin, LogReader]:
        """Count one connection."""
        self.opened += 1
        if self.fails:
            raise UnavailableError("no answer")
        return super().lookups(within_s)


@pytest.fixture
def flaky(world: World) -> Flaky:
    """The fragment `moving` runs, and its batch takes long."""
    create(world.kafka, heartbeats_topic(US))
    beat = Heartbeat(NODE.node, NODE.started_at_ms, 1, SteadyMillis(0), 0, False, (LONG,))
    world.kafka.append(heartbeats_topic(US), None, encode(beat))
    return Flaky(world, TwinRecomputer())


def run(world: World, state: LaneState = LaneState.RUNNING) -> None:
    """Register the node, which reports its fragment."""
    world.catalog.nodes.register(NODE)
    name = FragmentName("moving")
    epoch = world.catalog.owners.claim(CARS, name, NODE, NOW).epoch
    report = replace(NOTHING_READ, network=CARS, fragment=name, node=NODE.node, epoch=epoch)
    world.catalog.statuses.report(replace(report, state=state))


def seen(flaky: Flaky) -> tuple[ObservedFragment, ...]:
    """The fragments."""
    return fragments_status(None, cast("Connections", flaky))


def overdue(found: tuple[ObservedFragment, ...]) -> dict[str, StepAge | None]:
    """The overdue steps by fragment."""
    return {one.id.fragment: one.overdue for one in found}


def test_a_fragment_has_the_overdue_step_of_its_node(flaky: Flaky, world: World) -> None:
    """The other fragment runs nowhere. Kafka is connected to once, however often it is asked."""
    run(world)
    search = StepSearch(cast("Connections", flaky), world.clock)
    for _ in range(2):
        assert overdue(search.of(seen(flaky))) == {"moving": LONG, "stopped": None}
    assert flaky.opened == 1


@pytest.mark.parametrize("state", list(LaneState))
def test_kafka_is_asked_only_if_a_lane_has_a_thread(
    state: LaneState, flaky: Flaky, world: World
) -> None:
    """One that has failed, is paused, or waits for its next try makes no steps."""
    run(world, state)
    search = StepSearch(cast("Connections", flaky), world.clock)
    has_thread = state in {LaneState.STARTING, LaneState.RUNNING, LaneState.REBUILDING}
    assert overdue(search.of(seen(flaky)))["moving"] == (LONG if has_thread else None)
    assert flaky.opened == has_thread


def test_kafka_is_not_asked_if_nothing_runs(flaky: Flaky, world: World) -> None:
    """No node is up."""
    search = StepSearch(cast("Connections", flaky), world.clock)
    assert overdue(search.of(seen(flaky))) == {"moving": None, "stopped": None}
    assert (flaky.opened, search.problem) == (0, None)


def test_a_kafka_that_does_not_answer_is_left_alone(flaky: Flaky, world: World) -> None:
    """For a minute: `--watch` asks each second."""
    run(world)
    flaky.fails = True
    search = StepSearch(cast("Connections", flaky), world.clock)
    for _ in range(2):
        assert overdue(search.of(seen(flaky)))["moving"] is None
    assert (flaky.opened, str(search.problem)) == (1, "no answer")
    flaky.fails = False
    world.clock.sleep(AGAIN_S)
    assert overdue(search.of(seen(flaky)))["moving"] == LONG
    assert search.problem is None
