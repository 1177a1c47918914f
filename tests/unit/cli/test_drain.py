"""`medusa node drain` and `undrain`."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from brokers.versioned_store import Set
from pipeline.catalog.codec import encode
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import OwnerRecord, Transfer
from pipeline.clock import Deadline
from pipeline.deploy.pause import pause
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import FragmentId, FragmentName, Millis, NodeId
from pipeline.names import Znodes
from pipeline.operations.drain import Drain, Moved
from pipeline.priority import Priority
from tests.unit.catalog.support import NOTHING_READ, leaving
from tests.unit.cli.reports import CARS, NODE, Caller, deployed, report
from tests.unit.deploy.twins import NOW, World

OTHER = replace(NODE, node=NodeId("n2"))
MOVING, STOPPED = FragmentName("moving"), FragmentName("stopped")


class MovingClock:
    """A clock of which each pause lets other nodes do something."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.steps = list(steps)
        self.passed_s = 0.0

    def now_ms(self) -> Millis:
        """Wall time."""
        return NOW

    def monotonic_s(self) -> float:
        """Seconds since the start of the test."""
        return self.passed_s

    def sleep(self, seconds: float) -> None:
        """Let the next step happen."""
        self.passed_s += seconds
        if self.steps:
            self.steps.pop(0)()


def owner(world: World, name: FragmentName) -> OwnerRecord:
    """The owner of a fragment."""
    found = world.catalog.owners.get(CARS, name)
    assert found is not None
    return found


def released(world: World, name: FragmentName) -> None:
    """The node has released a fragment."""
    fragment, catalog = FragmentId(CARS, name), world.catalog
    catalog.owners.release(fragment, leaving(catalog, owner(world, name), fragment))


def taken(world: World, name: FragmentName, state: LaneState = LaneState.RUNNING) -> None:
    """The other node has claimed a fragment, and reports a state."""
    found = world.catalog.owners.get(CARS, name)
    if found is None:
        world.catalog.owners.claim(CARS, name, OTHER, NOW)
    epoch = owner(world, name).epoch
    status = replace(NOTHING_READ, network=CARS, fragment=name, node=OTHER.node, epoch=epoch)
    world.catalog.statuses.report(replace(status, state=state))


@pytest.fixture
def world(medusa: Caller) -> World:
    """Two nodes are up; the first one runs both fragments."""
    world = World.new()
    deployed(medusa, world)
    for name in (MOVING, STOPPED):
        report(world, name, LaneState.RUNNING)
    world.catalog.nodes.register(OTHER)
    return world


def draining(world: World, *steps: Callable[[], object]) -> Drain:
    """The drain of the first node, while other things happen."""
    return Drain(NODE.node, CARS.participant, world.catalog, MovingClock(*steps))


def test_a_fragment_has_moved_once_another_node_runs_it(world: World) -> None:
    """Neither when it is released, nor when it was claimed, nor by an older report."""
    drain = draining(
        world,
        lambda: released(world, MOVING),
        lambda: taken(world, MOVING, LaneState.STARTING),
        lambda: taken(world, MOVING),
        lambda: pause(CARS, STOPPED, world.catalog),
        lambda: released(world, STOPPED),
    )
    asked: list[Transfer] = []
    changed, fragments = replace(drain, asked=asked.append).begin(60)
    assert {(one.id, one.to) for one in asked} == {(one, OTHER.node) for one in fragments}
    assert changed
    assert fragments == (FragmentId(CARS, MOVING), FragmentId(CARS, STOPPED))
    reported: list[Moved] = []
    deadline = Deadline.after(drain.clock, 10, "draining")
    moved = drain.await_moved(fragments, deadline, reported.append)
    assert moved == (Moved(FragmentId(CARS, MOVING), OTHER.node, 600),)
    assert reported == list(moved)
    assert drain.clock.monotonic_s() == pytest.approx(1.0)


def test_the_wait_ends_at_its_deadline(world: World) -> None:
    """Naming what has not moved; the node stays drained."""
    drain = draining(world, lambda: released(world, MOVING), lambda: taken(world, MOVING))
    _, fragments = drain.begin(60)
    with pytest.raises(RetryError, match=r"not moved yet: cars\.stopped"):
        drain.await_moved(fragments, Deadline.after(drain.clock, 2, "draining"), lambda _: None)
    assert NODE.node in world.catalog.drains.of(CARS.participant)


def test_a_removed_fragment_has_left(world: World) -> None:
    """As when its network is destroyed meanwhile."""
    drain = draining(world, lambda: world.catalog.networks.remove(CARS, None))
    _, fragments = drain.begin(60)
    deadline = Deadline.after(drain.clock, 2, "draining")
    assert drain.await_moved(fragments, deadline, lambda _: None) == ()


def test_the_last_node_that_may_run_a_fragment_is_not_drained(world: World) -> None:
    """Other nodes are drained, lack the labels, or are down; nothing is changed."""
    catalog = world.catalog
    catalog.drains.drain(CARS.participant, OTHER.node, NOW)
    with pytest.raises(RefusedError, match=r"may run cars\.moving, cars\.stopped") as caught:
        draining(world).begin(60)
    assert "`medusa node undrain` one" in caught.value.hint
    assert NODE.node not in catalog.drains.of(CARS.participant)
    catalog.drains.undrain(CARS.participant, OTHER.node)
    assert draining(world).begin(60)[0]
    assert not draining(world).begin(60)[0]


def test_node_drain_and_undrain(medusa: Caller) -> None:
    """What is printed, and the list of nodes."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING)
    refused = medusa("node", "drain", "n1", opener=connect)
    assert refused.code == 65
    assert "no other node that is up may run cars.moving" in refused.err
    unknown = medusa("node", "drain", "n7", opener=connect)
    assert unknown.code == 65
    assert "there is no node n7" in unknown.err
    assert "these are up: n1" in unknown.err
    world.catalog.nodes.register(OTHER)
    called = medusa("node", "drain", "n1", "--no-wait", opener=connect)
    assert called.out == "node n1 is drained; 1 fragment will move\n"
    again = medusa("node", "drain", "n1", "--no-wait", "-o", "json", opener=connect)
    assert (again.data["changed"], again.data["fragments"]) == (False, ["cars.moving"])
    listed = medusa("node", "list", "-o", "json", opener=connect).data["nodes"]
    assert [one["drained_since"] is None for one in listed] == [False, True]
    assert "(drained)" in medusa("node", "list", opener=connect).out
    for text in ("node n1 may run fragments again", "node n1 was not drained"):
        assert medusa("node", "undrain", "n1", opener=connect).out == f"{text}\n"


def test_a_drain_without_room_elsewhere_is_refused(medusa: Caller) -> None:
    """The fragments stay; if they have a higher priority than what runs there, they displace it."""
    world = World.new()
    deployed(medusa, world)
    report(world, MOVING, LaneState.RUNNING)
    full = replace(OTHER, most_fragments=1)
    world.catalog.nodes.register(full)
    world.catalog.owners.claim(CARS, STOPPED, full, NOW)
    drain = Drain(NODE.node, CARS.participant, world.catalog, world.clock)
    with pytest.raises(RefusedError, match="no other node has room for") as refused:
        drain.begin(1.0)
    assert "most_fragments" in refused.value.hint
    assert world.catalog.drains.of(CARS.participant) == {}
    pause(CARS, STOPPED, world.catalog)
    assert drain.begin(1.0) == (True, (FragmentId(CARS, MOVING),))


def test_a_drain_asks_for_moves_by_priority(world: World) -> None:
    """The target builds few states at the same time."""
    record = world.catalog.fragments.get(CARS, STOPPED)
    assert record is not None
    path = Znodes("").fragment(CARS, STOPPED)
    stored = world.store.get(path)
    assert stored is not None
    first = encode(replace(record, priority=Priority.HIGH))
    world.store.apply((Set(path, first, stored.version),))
    asked: list[Transfer] = []
    replace(draining(world), asked=asked.append).begin(60)
    assert [one.fragment for one in asked] == [STOPPED, MOVING]
