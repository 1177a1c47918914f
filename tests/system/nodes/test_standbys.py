"""Secondaries that follow a fragment, and go on when its node fails; of three nodes."""

import os
import signal
from collections.abc import Iterator

import pytest

from brokers.embedded.processes import Child
from pipeline.agent.takeover import PARTS
from pipeline.catalog.fragment_status import LaneState
from pipeline.clock import Deadline
from pipeline.event_log.codec import decode
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import FragmentId, FragmentName, NodeId
from pipeline.names import events_topic
from pipeline.operations.status.standbys import observed_standbys
from pipeline.system_clock import SystemClock
from tests.system.nodes.feeds import (
    COUNTS,
    SCHEMAS,
    WITHIN_S,
    Feed,
    await_results,
    fed,
    log_of,
    moves,
    owner,
    running_nodes,
    secondary,
    started,
)
from tests.system.support import WINDOWS, Installation, kill, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

NAMES = ("standby_a", "standby_b", "standby_c")
ACTIVE = "reliability: active_standby\n"

Nodes = dict[str, Child]


@pytest.fixture(scope="module")
def nodes(medusa: Installation) -> Iterator[Nodes]:
    """Three nodes."""
    with running_nodes(medusa, *NAMES) as processes:
        yield processes


def takeovers(medusa: Installation, name: str) -> list[LoggedEvent]:
    """The takeovers of a network in the event log."""
    topic = events_topic(network_id(name).participant)
    entries = [decode(one.value, topic) for one in medusa.records(topic)]
    return [one for one in entries if (one.network, one.kind) == (name, EventKind.TAKEN_OVER)]


def test_a_secondary_goes_on_when_the_owner_is_killed(medusa: Installation, nodes: Nodes) -> None:
    """Twice: another node becomes the secondary of the second owner, and of its incarnation.

    On a slow machine the follower may be too far behind to go on in its query; but not each time.
    """
    name, in_the_query = "killed", list[bool]()
    with fed(medusa, name, ACTIVE):
        await_results(medusa, name, 10)
        for epoch in (2, 3):
            before, standby = owner(medusa, name), secondary(medusa, name)
            kill(nodes[before.node])
            medusa.await_state(name, COUNTS, LaneState.RUNNING, epoch=epoch)
            after = owner(medusa, name)
            assert (after.node, after.epoch) == (standby, epoch)
            await_results(medusa, name, 6)
            marker = medusa.marker(name, COUNTS)
            assert marker.incarnation.startswith(f"{epoch}-")
            log = log_of(medusa, standby)
            in_the_query.append(f"[{name}.counts] goes on in the query of its follower" in log)
            assert f"node {before.node} is suspected: its process has ended" in log
            nodes[before.node] = started(medusa, before.node)
            medusa.await_node(before.node, nodes[before.node])
    assert any(in_the_query)
    medusa.wait_for(lambda: len(takeovers(medusa, name)) == 2, "both takeovers in the event log")
    for entry in takeovers(medusa, name):
        assert dict(entry.facts)["noticed_by"] == "ended"
        assert tuple(part for part, _ in entry.parts_ms) == PARTS


def test_an_owner_that_was_suspected_wrongly_gives_up(medusa: Installation, nodes: Nodes) -> None:
    """It hangs until another has taken over; then it is fenced, or reads who the owner is."""
    name = "hangs"
    with fed(medusa, name, ACTIVE):
        await_results(medusa, name, 10)
        before, standby = owner(medusa, name), secondary(medusa, name)
        os.killpg(nodes[before.node].pid, signal.SIGSTOP)
        try:
            medusa.await_state(name, COUNTS, LaneState.RUNNING, epoch=2)
            await_results(medusa, name, 6)
        finally:
            os.killpg(nodes[before.node].pid, signal.SIGCONT)
        assert owner(medusa, name).node == standby
        participant = network_id(name).participant
        medusa.wait_for(
            lambda: NodeId(before.node) in medusa.catalog.nodes.names(participant),
            "the owner before is back",
            within_s=WITHIN_S,
        )
        await_results(medusa, name, 6)
        assert owner(medusa, name).epoch == 2
        to = secondary(medusa, name)
        back(medusa, name, to)
        await_results(medusa, name, 6)


def back(medusa: Installation, name: str, to: NodeId) -> None:
    """Move the fragment to its secondary, whose follower serves the move at once."""
    found = moves(medusa, name)
    transfer = found.planned(FragmentId(network_id(name), COUNTS), to, WITHIN_S)
    found.ask(transfer)
    found.await_done(transfer, Deadline.after(SystemClock(), WITHIN_S, "moving"), lambda _: None)
    assert owner(medusa, name).node == to


def test_a_busy_secondary_rehearses_a_fragment_without_state(
    medusa: Installation, nodes: Nodes
) -> None:
    """Each node runs windows, so none is idle; a rehearsal beside them writes nothing."""
    for number in range(len(nodes)):
        name = f"busy_{number}"
        medusa.deploy(WINDOWS.format(name=name), SCHEMAS)
        medusa.await_state(name, COUNTS, LaneState.RUNNING)
    name, fragment = "passed", FragmentName("passed")
    document = WINDOWS.format(name=name).partition("boxes:")[0]
    document += "boxes:\n  passed: {filter: readings, where: value >= 0}\n"
    medusa.deploy(f"{document}outputs: {{passed: {{topic: {name}-out}}}}\n{ACTIVE}", SCHEMAS)
    medusa.await_state(name, fragment, LaneState.RUNNING)
    feed = Feed(medusa, name, is_late=False)
    feed.start()
    found = FragmentId(network_id(name), fragment)

    def is_rehearsed() -> bool:
        snapshot = medusa.catalog.snapshot(found.network.participant)
        (standby,) = observed_standbys(snapshot)[found]
        return standby.is_rehearsed

    medusa.wait_for(is_rehearsed, "a rehearsal beside lanes", within_s=WITHIN_S)
    feed.finish()
    medusa.wait_for(
        lambda: len(medusa.records(f"{name}-out")) == 2 * feed.seconds, "each record, once",
        within_s=WITHIN_S,
    )  # fmt: skip
