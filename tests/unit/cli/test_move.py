"""`medusa move` and `transfers`."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from brokers.versioned_store import Set
from pipeline.catalog.codec import encode
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import FragmentRecord, OwnerRecord, Transfer
from pipeline.clock import Deadline
from pipeline.deploy.pause import pause
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import FragmentId, FragmentName, NodeId, Offset, ParticipantId, TopicName
from pipeline.markers import codec
from pipeline.names import FragmentNames, Znodes
from pipeline.operations.move import Moves, Step
from tests.unit.catalog.support import NOTHING_READ, leaving
from tests.unit.cli.reports import CARS, NODE, Caller, deployed, report
from tests.unit.cli.test_drain import MovingClock
from tests.unit.deploy.twins import NOW, World
from tests.unit.lanes.marked import marked
from tests.unit.lanes.start.test_decision import CARS as AT
from tests.unit.lanes.start.test_decision import marker

OTHER = replace(NODE, node=NodeId("n2"))
MOVING = FragmentName("moving")
ID = FragmentId(CARS, MOVING)


def owner(world: World) -> OwnerRecord:
    """The owner of the fragment."""
    found = world.catalog.owners.get(CARS, MOVING)
    assert found is not None
    return found


@pytest.fixture
def world(medusa: Caller) -> World:
    """Two nodes are up; the first one runs the fragment."""
    world = World.new()
    deployed(medusa, world)
    report(world, MOVING, LaneState.RUNNING)
    world.catalog.nodes.register(OTHER)
    return world


def moves(world: World, *steps: Callable[[], object]) -> Moves:
    """The moves, while other things happen."""
    clock = MovingClock(*steps)
    return Moves(CARS.participant, world.catalog, world.kafka, world.log, clock)


def asked(world: World) -> Transfer:
    """Ask for the move to the other node."""
    transfer = moves(world).planned(ID, OTHER.node, 60)
    world.catalog.transfers.ask(transfer)
    return transfer


def taken(world: World, state: LaneState = LaneState.RUNNING) -> None:
    """The target has claimed the fragment, and reports a state."""
    found = world.catalog.owners.get(CARS, MOVING)
    if found is None:
        world.catalog.owners.claim(CARS, MOVING, OTHER, NOW)
    status = replace(NOTHING_READ, network=CARS, fragment=MOVING, node=OTHER.node)
    world.catalog.statuses.report(replace(status, epoch=owner(world).epoch, state=state))


def test_a_move_is_done_when_the_target_runs_the_fragment(world: World) -> None:
    """Each step is reported once."""
    transfer = asked(world)
    found = moves(
        world,
        lambda: None,
        lambda: world.catalog.transfers.note_ready(transfer),
        lambda: world.catalog.owners.release(ID, leaving(world.catalog, owner(world), ID)),
        lambda: taken(world, LaneState.STARTING),
        lambda: taken(world),
    )
    steps: list[Step] = []
    done = found.await_done(transfer, Deadline.after(found.clock, 10, "moving"), steps.append)
    assert done.transfer == transfer
    assert steps == [Step.WANTED, Step.READY, Step.RELEASED]
    assert found.all() == ()


def test_a_move_that_is_not_done_in_time_is_cancelled(world: World) -> None:
    """With the reason that the target has given."""
    transfer = asked(world)
    found = moves(world, lambda: world.catalog.transfers.note_failed(transfer, "the disk is full"))
    deadline = Deadline.after(found.clock, 2, "moving")
    with pytest.raises(RetryError, match="and is cancelled: the disk is full"):
        found.await_done(transfer, deadline, lambda _: None)
    assert world.catalog.transfers.of(CARS.participant) == ()


def test_a_fragment_that_fails_on_the_target_ends_the_wait(world: World) -> None:
    """A longer time would not help: the target has claimed it."""
    transfer = asked(world)
    found = moves(
        world,
        lambda: world.catalog.transfers.note_ready(transfer),
        lambda: world.catalog.owners.release(ID, leaving(world.catalog, owner(world), ID)),
        lambda: taken(world, LaneState.FAILED),
    )
    deadline = Deadline.after(found.clock, 10, "moving")
    with pytest.raises(RetryError, match="node n2 has claimed it, and it has failed there"):
        found.await_done(transfer, deadline, lambda _: None)


def test_a_move_that_others_have_ended_is_an_error(world: World) -> None:
    """By a claim of the owner, for instance."""
    transfer = asked(world)
    found = moves(world, lambda: world.catalog.owners.claim(CARS, MOVING, NODE, NOW))
    deadline = Deadline.after(found.clock, 2, "moving")
    with pytest.raises(RetryError, match="the move was ended"):
        found.await_done(transfer, deadline, lambda _: None)


def put(world: World, record: FragmentRecord) -> None:
    """Store a fragment's record."""
    path = Znodes("").fragment(CARS, MOVING)
    stored = world.store.get(path)
    assert stored is not None
    world.store.apply((Set(path, encode(record), stored.version),))


def refused(world: World, to: str = "n2") -> str:
    """The error of a move."""
    with pytest.raises(RefusedError) as caught:
        moves(world).planned(ID, NodeId(to), 60)
    return f"{caught.value.message}; {caught.value.hint}"


def test_a_target_that_is_down_is_refused(world: World) -> None:
    """The hint names those that are up; suspected ones are no targets either."""
    assert "no node n7 of this participant is up; these are up: n1, n2" in refused(world, "n7")


def test_a_target_of_another_participant_is_refused(world: World) -> None:
    """It is up, and has a name of its own."""
    theirs = ParticipantId("theirs")
    world.catalog.format.ensure(theirs)
    world.catalog.nodes.register(replace(OTHER, node=NodeId("n9"), participant=theirs))
    assert "no node n9 of this participant is up" in refused(world, "n9")


def test_the_node_that_runs_it_is_no_target(world: World) -> None:
    """Nothing would change."""
    assert "node n1 runs it already" in refused(world, "n1")


def test_a_target_of_an_earlier_version_is_refused(world: World) -> None:
    """With both versions and what to do; one of a later version is none of these."""
    for name, version in (("n3", "0.1.0"), ("n4", "99.0")):
        world.catalog.nodes.register(replace(OTHER, node=NodeId(name), version=version))
    world.catalog.nodes.register(replace(NODE, version="0.2.0"), replaces=NODE)
    text = refused(world, "n3")
    assert "node n3 runs Medusa 0.1.0, its owner n1 0.2.0: an earlier version may not" in text
    assert "`medusa node drain n1`" in text
    assert moves(world).planned(ID, NodeId("n4"), 60).to == "n4"


def test_a_target_without_the_labels_is_refused(world: World) -> None:
    """Also if no node has them."""
    record = world.catalog.fragments.get(CARS, MOVING)
    assert record is not None
    put(world, replace(record, nodes="zone=a"))
    assert "its placement does not allow node n2: it needs zone=a" in refused(world)


def test_a_drained_target_is_refused(world: World) -> None:
    """Until that is undone."""
    drains, participant = world.catalog.drains, CARS.participant
    drains.drain(participant, OTHER.node, NOW)
    assert "node n2 is drained; `medusa node undrain n2` ends that." in refused(world)
    drains.undrain(participant, OTHER.node)
    assert moves(world).planned(ID, OTHER.node, 60).to == OTHER.node


def test_a_fragment_that_is_not_there_is_refused(world: World) -> None:
    """The hint names those that are."""
    with pytest.raises(RefusedError, match=r"there is no fragment cars\.nothing") as caught:
        moves(world).planned(FragmentId(CARS, FragmentName("nothing")), OTHER.node, 60)
    assert "cars.moving" in caught.value.hint


def test_a_failed_fragment_is_refused(world: World) -> None:
    """It would fail on the target, too; a failure under an earlier owner says nothing."""
    report(world, MOVING, LaneState.FAILED)
    assert "its lane has failed on node n1" in refused(world)
    world.catalog.owners.claim(CARS, MOVING, NODE, NOW)
    assert moves(world).planned(ID, OTHER.node, 60).to == OTHER.node


def test_a_paused_fragment_is_refused(world: World) -> None:
    """Only one that runs has a lane to follow."""
    pause(CARS, MOVING, world.catalog)
    assert "it is paused" in refused(world)


def test_a_fragment_without_an_owner_that_is_up_is_refused(world: World) -> None:
    """Its placement decides where it runs next."""
    world.catalog.drains.drain(CARS.participant, NODE.node, NOW)
    world.catalog.owners.release(ID, leaving(world.catalog, owner(world), ID))
    assert "no node has claimed it" in refused(world)
    gone = replace(NODE, node=NodeId("n5"))
    world.catalog.owners.claim(CARS, MOVING, gone, NOW)
    assert "its node n5 is down" in refused(world)


def test_a_second_move_of_a_fragment_is_refused(world: World) -> None:
    """While the first one is under way, whatever its target."""
    world.catalog.nodes.register(replace(OTHER, node=NodeId("n3")))
    asked(world)
    again = moves(world).planned(ID, NodeId("n3"), 60)
    with pytest.raises(RefusedError, match="it is being moved to node n2 already"):
        moves(world).ask(again)


def test_a_log_that_begins_too_late_is_found_before_the_move(world: World) -> None:
    """The target would have to build the state from it."""
    topic = TopicName("needed-in")
    world.kafka.add(topic, 1, records=20)
    at = replace(AT, topic=topic)
    last = replace(marker(1), start={at: Offset(10)}, end={at: Offset(20)}, needed={at: Offset(5)})
    last = replace(last, sources=marked(last.end))
    markers = FragmentNames(ID).markers
    world.write(markers, codec.encode_marker(last))
    assert moves(world).planned(ID, OTHER.node, 60).to == OTHER.node
    world.kafka.delete_records(topic, {0: Offset(6)})
    assert "needs the records from offset 5 on, the topic begins at 6" in refused(world)
    nothing = replace(last, needed=last.end)
    world.write(markers, codec.encode_marker(nothing))
    assert moves(world).planned(ID, OTHER.node, 60).to == OTHER.node


def test_move_and_transfers(medusa: Caller) -> None:
    """What is printed."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, MOVING, LaneState.RUNNING)
    world.catalog.nodes.register(OTHER)
    dry = medusa("move", "cars.moving", "--to", "n2", "--dry-run", opener=connect)
    assert dry.out == "cars.moving can move from n1 to n2\n"
    assert "no fragment moves" in medusa("transfers", opener=connect).err
    called = medusa("move", "cars.moving", "--to", "n2", "--no-wait", opener=connect)
    assert called.out == "cars.moving moves from n1 to n2\n"
    again = medusa("move", "cars.moving", "--to", "n2", "--no-wait", opener=connect)
    assert again.code == 65
    assert "it is being moved to node n2 already" in again.err
    (listed,) = medusa("transfers", "-o", "json", opener=connect).data["transfers"]
    shown = {key: listed[key] for key in ("fragment", "from", "to", "step", "problem")}
    assert shown == {
        "fragment": "cars.moving",
        "from": "n1",
        "to": "n2",
        "step": "wanted",
        "problem": "",
    }
    cancelled = medusa("move", "cars.moving", "--cancel", opener=connect)
    assert cancelled.out == "the move of cars.moving to n2 is cancelled\n"
    twice = medusa("move", "cars.moving", "--cancel", opener=connect)
    assert twice.code == 65
    assert "it is not being moved" in twice.err
    for wrong in (
        ("cars.moving",),
        ("cars.moving", "--to", "n2", "--cancel"),
        ("cars", "--cancel"),
    ):
        assert medusa("move", *wrong, opener=connect).code == 64


def test_a_move_to_a_node_without_room_is_refused(world: World) -> None:
    """Unless what runs there has a lower priority, or is paused."""
    name, full = FragmentName("stopped"), replace(OTHER, most_fragments=1)
    world.catalog.nodes.register(full, replaces=OTHER)
    world.catalog.owners.claim(CARS, name, full, NOW)
    found = moves(world)
    with pytest.raises(RefusedError, match="node n2 has no room for it: 1 fragment may") as refused:
        found.planned(ID, full.node, 1.0)
    assert "has a lower priority than normal" in refused.value.message
    pause(CARS, name, world.catalog)
    assert found.planned(ID, full.node, 1.0).to == full.node
