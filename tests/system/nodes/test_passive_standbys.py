"""Secondaries that have copies of a checkpoint, and go on from one when the node fails."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.embedded.processes import Child
from pipeline.catalog.fragment_status import LaneState
from pipeline.checkpoint_store.folder_objects import FolderObjects
from pipeline.checkpoint_store.manifest import CheckpointCopy
from pipeline.checkpoint_store.store import CheckpointStore
from pipeline.clock import Deadline
from pipeline.ids import Epoch, FragmentId, NodeId
from pipeline.names import FragmentNames
from pipeline.operations.status.standbys import observed_standbys
from pipeline.system_clock import SystemClock
from tests.system.nodes.feeds import (
    COUNTS,
    WITHIN_S,
    await_results,
    fed,
    log_of,
    moves,
    owner,
    secondary,
)
from tests.system.support import Installation, kill, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

PASSIVE = "reliability: {mode: passive_standby, checkpoint_every: 1s}\n"
NAMES = ("copy_a", "copy_b", "copy_c")
Nodes = dict[str, Child]


@pytest.fixture(scope="module")
def store(medusa: Installation) -> Path:
    """The folder of the checkpoint store."""
    folder = medusa.folder / "store"
    folder.mkdir()
    return folder


def started(medusa: Installation, name: str, store: Path) -> Child:
    """Start a node with checkpoints of its own, and the store of all."""
    own = str(medusa.folder / f"checkpoints-{name}")
    return medusa.start_node(name, {"checkpoints": own, "store.url": str(store)})


@pytest.fixture(scope="module")
def nodes(medusa: Installation, store: Path) -> Iterator[Nodes]:
    """Three nodes."""
    processes = {name: started(medusa, name, store) for name in NAMES}
    try:
        for name, process in processes.items():
            medusa.await_node(name, process)
        yield processes
    finally:
        for process in processes.values():
            kill(process)


def test_a_secondary_goes_on_from_its_copy(medusa: Installation, nodes: Nodes, store: Path) -> None:
    """The owner is killed; nobody else has its checkpoint."""
    name = "copied"
    fragment = FragmentId(network_id(name), COUNTS)
    names, copies = FragmentNames(fragment).stable, CheckpointStore(FolderObjects(store))
    with fed(medusa, name, PASSIVE):
        await_results(medusa, name, 10)
        before, standby = owner(medusa, name), secondary(medusa, name)
        (seen,) = observed_standbys(medusa.catalog.snapshot(network_id(name).participant))[fragment]
        assert seen.state_bytes > 0
        last = copies.newest(names, before.epoch)
        assert last is not None
        assert last.plan
        kill(nodes[before.node])
        medusa.await_state(name, COUNTS, LaneState.RUNNING, epoch=2)
        assert owner(medusa, name).node == standby
        copied = f"[{name}.counts] this node has followed or copied the state"
        assert copied in log_of(medusa, standby)
        await_results(medusa, name, 6)

        def first() -> CheckpointCopy | None:
            found = copies.newest(names, Epoch(2))
            return found if found is not None and found.epoch == 2 else None

        medusa.wait_for(lambda: first() is not None, "a copy of the new owner", within_s=WITHIN_S)
        copy = first()
        assert copy is not None
        assert copy.objects & last.objects  # these were linked, and not sent
        nodes[before.node] = started(medusa, before.node, store)
        medusa.await_node(before.node, nodes[before.node])


def test_any_node_goes_on_from_the_store(medusa: Installation, nodes: Nodes, store: Path) -> None:
    """The owner and its secondary are killed together; the third node has no copy of its own."""
    name = "fetched"
    with fed(medusa, name, PASSIVE):
        await_results(medusa, name, 10)
        before, standby = owner(medusa, name).node, secondary(medusa, name)
        (third,) = set(nodes) - {before, standby}
        kill(nodes[before])
        kill(nodes[standby])
        medusa.await_state(name, COUNTS, LaneState.RUNNING, epoch=2)
        assert owner(medusa, name).node == third
        assert f"[{name}.counts] goes on from a copy of its checkpoint" in log_of(medusa, third)
        await_results(medusa, name, 6)
        for one in (before, standby):
            nodes[one] = started(medusa, one, store)
            medusa.await_node(one, nodes[one])


def test_a_follower_begins_from_the_store(medusa: Installation, nodes: Nodes) -> None:
    """A move to a node that has nothing reads what came since the last copy."""
    name = "moved_copy"
    with fed(medusa, name, PASSIVE):
        await_results(medusa, name, 10)
        before, standby = owner(medusa, name).node, secondary(medusa, name)
        (third,) = set(nodes) - {before, standby}
        found = moves(medusa, name)
        transfer = found.planned(FragmentId(network_id(name), COUNTS), NodeId(third), WITHIN_S)
        found.ask(transfer)
        deadline = Deadline.after(SystemClock(), WITHIN_S, "moving")
        found.await_done(transfer, deadline, lambda _: None)
        assert owner(medusa, name).node == third
        lines = log_of(medusa, third).splitlines()
        begun = [line for line in lines if f"[{name}.counts] this node has followed" in line]
        assert begun
        await_results(medusa, name, 6)


@pytest.mark.second_tier("unit tests of copies and of standbys, with stores that fail and hang")
def test_without_the_store_the_lane_runs_on_and_the_log_is_read(
    medusa: Installation, nodes: Nodes, store: Path
) -> None:
    """The folder is gone: `status` shows that the secondary has no copy, and nothing is lost."""
    name, hidden = "unmounted", store.with_name("hidden")
    store.rename(hidden)
    try:
        with fed(medusa, name, PASSIVE):
            await_results(medusa, name, 10)
            before = owner(medusa, name).node
            warned = f"[{name}.counts] its checkpoint is not copied"
            medusa.wait_for(lambda: warned in log_of(medusa, before), "a warning", within_s=30)
            kill(nodes[before])
            medusa.await_state(name, COUNTS, LaneState.RUNNING, epoch=2)
            await_results(medusa, name, 6)
    finally:
        hidden.rename(store)
    nodes[before] = started(medusa, before, store)
    medusa.await_node(before, nodes[before])


@pytest.mark.second_tier("test_an_owner_that_was_suspected_wrongly_gives_up, tests of the store")
def test_an_owner_that_wakes_up_damages_no_copy(
    medusa: Installation, nodes: Nodes, store: Path
) -> None:
    """It was suspended until another node had taken over; the copies of that one stay."""
    name = "woken"
    with fed(medusa, name, PASSIVE):
        await_results(medusa, name, 10)
        before, _ = owner(medusa, name).node, secondary(medusa, name)
        os.killpg(nodes[before].pid, signal.SIGSTOP)
        try:
            medusa.await_state(name, COUNTS, LaneState.RUNNING, epoch=2)
            await_results(medusa, name, 6)
        finally:
            os.killpg(nodes[before].pid, signal.SIGCONT)
        copies = CheckpointStore(FolderObjects(store))
        names = FragmentNames(FragmentId(network_id(name), COUNTS)).stable

        def is_of_the_owner() -> bool:
            copy, marker = copies.newest(names, Epoch(2)), medusa.marker(name, COUNTS)
            return copy is not None and copy.incarnation == marker.incarnation

        medusa.wait_for(is_of_the_owner, "a copy of the new owner", within_s=30)
        await_results(medusa, name, 6)
        assert owner(medusa, name).epoch == 2
