"""Claims of fragments by nodes: the winner, its epoch, and the idle nodes."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.pause import pause, resume
from pipeline.ids import FragmentId, FragmentName, ParticipantId
from pipeline.markers.codec import decode_marker
from pipeline.names import FragmentNames
from tests.system.support import (
    READING,
    WINDOWS,
    Installation,
    kill,
    network_id,
    readings,
)

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

COUNTS = FragmentName("counts")
PAIR = ("pair_one", "pair_two")
SCHEMAS = {"reading.avsc": READING}
WITHIN_S = 120.0
REHEARSED_WITHIN_S = 400.0
"""Practice precedes it, and takes minutes on a busy machine."""
WRITTEN = 40
"""An epoch above the catalog's counter."""


@pytest.fixture(scope="module")
def pair(medusa: Installation) -> Iterator[None]:
    """Two idle nodes."""
    processes = {name: medusa.start_node(name) for name in PAIR}
    try:
        for name, process in processes.items():
            medusa.await_node(name, process)
        yield
    finally:
        for process in processes.values():
            kill(process)


def send(medusa: Installation, name: str) -> None:
    """Send some readings with current event times."""
    for reading in readings(20):
        medusa.send(f"{name}-in", medusa.encoded(f"{name}-in-value", READING, reading))
    medusa.producer.flush(10)


def owner_of(medusa: Installation, name: str) -> str | None:
    """The node that owns the network's only fragment."""
    owner = medusa.catalog.owners.get(network_id(name), COUNTS)
    return None if owner is None else owner.node


def epochs(medusa: Installation, name: str) -> list[int]:
    """The epochs of the commit markers, in log order."""
    topic = FragmentNames(FragmentId(network_id(name), COUNTS)).markers
    return [decode_marker(record.value or b"", "marker").epoch for record in medusa.records(topic)]


def has_read(medusa: Installation, name: str, records: int) -> bool:
    """Whether so many records are processed."""
    status = medusa.status(name, COUNTS)
    return status is not None and status.records_in >= records


def log_of(medusa: Installation, node: str) -> Path:
    """The log of a node."""
    return medusa.folder / "logs" / f"node-{node}.log"


def test_a_node_claims_only_networks_of_its_participant(medusa: Installation) -> None:
    """Networks of other participants wait for a node of their own.

    The first test here: the two nodes of the other tests would claim what this node must not.
    """
    others = ParticipantId("others")
    with medusa.node("theirs", {"participant": others}):
        medusa.deploy(WINDOWS.format(name="ours"), SCHEMAS)
        medusa.deploy(WINDOWS.format(name="theirs"), SCHEMAS, owner=others)
        medusa.await_state("theirs", COUNTS, LaneState.RUNNING, owner=others)
        found = medusa.catalog.owners.get(network_id("theirs", others), COUNTS)
        assert found is not None
        assert found.node == "theirs"
        assert owner_of(medusa, "ours") is None
        assert medusa.status("ours", COUNTS) is None


@pytest.mark.usefixtures("pair")
def test_of_two_idle_nodes_one_claims_and_the_other_rehearses(medusa: Installation) -> None:
    """Both try to claim the fragment; the node that loses the claim stays idle."""
    name = "one_of_two"
    medusa.deploy(WINDOWS.format(name=name), SCHEMAS)
    medusa.await_state(name, COUNTS, LaneState.RUNNING)
    owner = owner_of(medusa, name)
    (other,) = set(PAIR) - {owner}

    def rehearsed() -> bool:
        send(medusa, name)
        return f"{name}.{COUNTS} was rehearsed" in log_of(medusa, other).read_text()

    medusa.wait_for(rehearsed, f"{other} rehearses", within_s=REHEARSED_WITHIN_S)
    assert owner_of(medusa, name) == owner
    assert set(epochs(medusa, name)) == {1}


@pytest.mark.usefixtures("pair")
def test_a_claim_gets_an_epoch_above_those_of_the_markers(medusa: Installation) -> None:
    """After a restore of ZooKeeper from a backup its counter is below the written epochs."""
    name = "restored"
    network = network_id(name)
    medusa.deploy(WINDOWS.format(name=name), SCHEMAS)
    medusa.await_state(name, COUNTS, LaneState.RUNNING)
    send(medusa, name)
    medusa.wait_for(partial(has_read, medusa, name, 20), "20 read", within_s=WITHIN_S)
    pause(network, None, medusa.catalog)
    medusa.await_state(name, COUNTS, LaneState.STOPPED)
    markers = FragmentNames(FragmentId(network, COUNTS)).markers
    last = json.loads(medusa.records(markers)[-1].value or b"")
    later = json.dumps({**last, "epoch": WRITTEN}).encode()
    medusa.send(markers, later, key=b"marker", partition=0)
    medusa.producer.flush(10)
    resume(network, None, medusa.catalog)
    send(medusa, name)
    medusa.wait_for(partial(has_read, medusa, name, 40), "40 read", within_s=WITHIN_S)
    status = medusa.await_state(name, COUNTS, LaneState.RUNNING)
    assert (status.epoch, status.restarts) == (WRITTEN + 1, 0)
    assert epochs(medusa, name)[-1] == WRITTEN + 1
