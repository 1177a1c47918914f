"""Moves of a fragment between two nodes, while records flow."""

import logging
from collections.abc import Iterator
from itertools import pairwise

import pytest

from brokers.embedded.processes import Child
from brokers.kafka.reader import TopicReader
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import Transfer
from pipeline.clock import Deadline
from pipeline.errors import RetryError
from pipeline.event_log.log import EventReader
from pipeline.event_log.places import Stay, stays
from pipeline.ids import FragmentId, NodeId
from pipeline.names import FragmentNames, events_topic
from pipeline.operations.drain import Drain
from pipeline.operations.move import Step
from pipeline.system_clock import SystemClock
from tests.faults.pauses import longest_pause, results_ms, too_long
from tests.system.nodes.feeds import (
    COUNTS,
    WITHIN_S,
    await_results,
    fed,
    moves,
    owner,
    running_nodes,
    started,
)
from tests.system.support import Installation, kill, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

A, B = "move_a", "move_b"
MOST_PAUSE_MS = 60_000
Nodes = dict[str, Child]

_log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def nodes(medusa: Installation) -> Iterator[Nodes]:
    """Two nodes."""
    with running_nodes(medusa, A, B) as processes:
        yield processes


def other(node: str) -> NodeId:
    """The other node."""
    return NodeId(B if node == A else A)


def asked(medusa: Installation, name: str, within_s: float = WITHIN_S) -> Transfer:
    """Ask for a move to the other node."""
    to = other(owner(medusa, name).node)
    transfer = moves(medusa, name).planned(FragmentId(network_id(name), COUNTS), to, within_s)
    medusa.catalog.transfers.ask(transfer)
    return transfer


@pytest.mark.usefixtures("nodes")
def test_a_fragment_moves_to_and_fro_while_records_flow(medusa: Installation) -> None:
    """Through every step; the new owner goes on in the query of its follower.

    On a slow machine a follower may be too far behind for that; but not each time.
    """
    name = "moves"
    with fed(medusa, name):
        await_results(medusa, name, 10)
        for epoch in (2, 3, 4):
            steps: list[Step] = []
            transfer = asked(medusa, name)
            deadline = Deadline.after(SystemClock(), WITHIN_S, "moving")
            moves(medusa, name).await_done(transfer, deadline, steps.append)
            assert steps[0] is Step.WANTED
            found = owner(medusa, name)
            assert (found.node, found.epoch) == (transfer.to, epoch)
            assert medusa.catalog.transfers.of(transfer.network.participant) == ()
            await_results(medusa, name, 6)
            marker = medusa.marker(name, COUNTS)
            assert marker.epoch == epoch
            assert marker.incarnation.startswith(f"{epoch}-")
            assert not marker.chosen
    medusa.wait_for(lambda: len(places(medusa, name)) > 3, "claims logged", within_s=WITHIN_S)
    first, *moved = places(medusa, name)
    assert (first.epoch, first.why) == ("1", "it had no owner")
    for before, stay in pairwise((first, *moved)):
        assert (stay.node, stay.why) == (other(before.node), f"moved from node {before.node}")
    log = "".join((medusa.folder / "logs" / f"node-{node}.log").read_text() for node in (A, B))
    assert log.count("level: its owner may release it") >= 3
    assert "goes on in the query of its follower" in log


def test_the_owner_is_killed_while_it_is_followed(medusa: Installation, nodes: Nodes) -> None:
    """Another claim ends the move; the results are exact, and the node may come back."""
    name = "bereft"
    with fed(medusa, name):
        await_results(medusa, name, 10)
        transfer = asked(medusa, name)
        kill(nodes[transfer.source])
        medusa.await_state(name, COUNTS, LaneState.RUNNING, epoch=transfer.epoch + 1)
        assert owner(medusa, name).node == transfer.to
        assert medusa.catalog.transfers.of(transfer.network.participant) == ()
        await_results(medusa, name, 6)
        restart(medusa, nodes, transfer.source)


def test_the_target_is_killed_while_it_follows(medusa: Installation, nodes: Nodes) -> None:
    """The owner goes on as if nothing had been asked; then the target comes back, and it moves."""
    name = "alone"
    with fed(medusa, name):
        await_results(medusa, name, 10)
        transfer = asked(medusa, name)
        kill(nodes[transfer.to])
        await_results(medusa, name, 6)
        assert owner(medusa, name).epoch == transfer.epoch
        restart(medusa, nodes, transfer.to)
        await_results(medusa, name, 6)
        assert owner(medusa, name).epoch == transfer.epoch
        moves(medusa, name).cancel(transfer.id)
        again = asked(medusa, name)
        deadline = Deadline.after(SystemClock(), WITHIN_S, "moving")
        moves(medusa, name).await_done(again, deadline, lambda _: None)
        await_results(medusa, name, 6)


@pytest.mark.usefixtures("nodes")
def test_a_cancelled_move_leaves_everything_as_it_was(medusa: Installation) -> None:
    """The owner does not even stop for a moment."""
    name = "stays"
    with fed(medusa, name):
        await_results(medusa, name, 10)
        transfer = asked(medusa, name)
        moves(medusa, name).cancel(transfer.id)
        deadline = Deadline.after(SystemClock(), WITHIN_S, "moving")
        with pytest.raises(RetryError, match="was ended"):
            moves(medusa, name).await_done(transfer, deadline, lambda _: None)
        await_results(medusa, name, 6)
        assert owner(medusa, name).epoch == transfer.epoch


def test_nodes_are_upgraded_one_after_the_other(medusa: Installation, nodes: Nodes) -> None:
    """As the page about upgrades says: drained, stopped, started, and not drained any more.

    The pause is logged. How long it may be depends on the machine: `benchmarks/moves.py` measures
    it, and this test finds one that is no change of the owner, but a wait for a node.
    """
    name = "rolling"
    markers = FragmentNames(FragmentId(network_id(name), COUNTS)).markers
    with fed(medusa, name):
        await_results(medusa, name, 10)
        begin_ms = medusa.records(markers)[-1].timestamp_ms
        for _ in nodes:
            node = NodeId(owner(medusa, name).node)
            fragments = drained(medusa, node)
            assert FragmentId(network_id(name), COUNTS) in fragments
            nodes[node].stop()
            restart(medusa, nodes, node)
            participant = network_id(name).participant
            assert medusa.catalog.drains.undrain(participant, node)
            await_results(medusa, name, 6)
        written = medusa.records(markers)
    pause = longest_pause(results_ms(written), begin_ms, written[-1].timestamp_ms)
    _log.info("two upgrades, %s", pause)
    assert list(too_long(pause, MOST_PAUSE_MS)) == []
    medusa.wait_for(lambda: len(places(medusa, name)) > 2, "claims logged", within_s=WITHIN_S)
    assert [one.why.partition(" ")[0] for one in places(medusa, name)] == ["it", "moved", "moved"]


def drained(medusa: Installation, node: NodeId) -> tuple[FragmentId, ...]:
    """Drain a node, and wait until others run its fragments."""
    drain = Drain(node, network_id("any").participant, medusa.catalog, SystemClock())
    changed, fragments = drain.begin(WITHIN_S)
    assert changed
    deadline = Deadline.after(SystemClock(), 2 * WITHIN_S, "draining")
    drain.await_moved(fragments, deadline, lambda _: None)
    return fragments


def places(medusa: Installation, name: str) -> tuple[Stay, ...]:
    """The nodes that have run the fragment, by the event log."""
    topic = events_topic(network_id(name).participant)
    with TopicReader(medusa.stack.kafka_bootstrap_servers, WITHIN_S) as reader:
        return stays(EventReader(reader, topic).written(), name, COUNTS)


def restart(medusa: Installation, nodes: Nodes, name: str) -> None:
    """Start a node again that was killed."""
    participant = network_id("any").participant
    medusa.wait_for(
        lambda: NodeId(name) not in medusa.catalog.nodes.names(participant),
        f"{name} is down",
        within_s=WITHIN_S,
    )
    nodes[name] = started(medusa, name)
    medusa.await_node(name, nodes[name])
