"""Claims of fragments and their epochs."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.versioned_store import Operation
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import NodeRecord, OwnerRecord
from pipeline.errors import RefusedError, RetryError, UnavailableError
from pipeline.ids import NO_EPOCH, Epoch, FragmentId, NodeId, ParticipantId
from pipeline.names import Znodes
from tests.memory_store import MemoryStore, MemoryTree
from tests.profiles import examples
from tests.unit.catalog.support import (
    ME,
    MOVING,
    NODE1,
    NODE2,
    NOTHING_READ,
    NOW,
    SPEED,
    TOLLS,
    deployed,
    fragment,
    leaving,
    network,
    network_version,
    node,
    session,
)

RELEASED = FragmentId(TOLLS, MOVING)


class SlowStore(MemoryStore):
    """A session that delays its steps while `delayed` is set: others read the same state."""

    def __init__(self, tree: MemoryTree) -> None:
        super().__init__(tree)
        self.pending: list[tuple[Operation, ...]] = []
        self.delayed = False

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Delay the step, or apply it."""
        if self.delayed:
            self.pending.append(operations)
        else:
            super().apply(operations)


def test_the_first_claim_is_epoch_one_and_each_raises_it() -> None:
    """A node may claim its own fragment again, as after a restart; the epoch goes up by one."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    assert catalog.owners.get(TOLLS, MOVING) is None
    assert [catalog.owners.claim(TOLLS, MOVING, node(), NOW).epoch for _ in range(3)] == [1, 2, 3]
    assert catalog.owners.get(TOLLS, MOVING) == OwnerRecord(NODE1, ME, Epoch(3), NOW, life=NOW)


def test_an_epoch_is_above_that_of_the_last_marker() -> None:
    """The counter of a restored ZooKeeper continues above the epoch of the last marker.

    A counter that is above it continues normally.
    """
    _, catalog = session(MemoryTree())
    deployed(catalog)
    written = [Epoch(0), Epoch(9), Epoch(3), Epoch(11)]
    claimed = [
        catalog.owners.claim(TOLLS, MOVING, node(), NOW, written=last).epoch for last in written
    ]
    assert claimed == [1, 10, 11, 12]


def test_a_node_of_another_participant_cannot_claim() -> None:
    """The error contains the network's participant; nothing is changed."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    stranger = replace(node(), participant=ParticipantId("others"))
    with pytest.raises(RefusedError, match="belongs to participant local"):
        catalog.owners.claim(TOLLS, MOVING, stranger, NOW)
    assert catalog.owners.get(TOLLS, MOVING) is None


def test_a_fragment_that_does_not_exist_cannot_be_claimed() -> None:
    """The error names it and lists the existing ones."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    with pytest.raises(RefusedError, match="no fragment average_speed"):
        catalog.owners.claim(TOLLS, SPEED, node(), NOW)


def test_a_fragment_of_a_living_owner_cannot_be_claimed() -> None:
    """Another node cannot claim it while the owner is up, and can when it is down."""
    tree = MemoryTree()
    first_store, first = session(tree)
    _, second = session(tree)
    deployed(first)
    first.nodes.register(node(NODE1))
    first.owners.claim(TOLLS, MOVING, node(), NOW)
    with pytest.raises(RetryError, match="node1 owns it"):
        second.owners.claim(TOLLS, MOVING, node(NODE2), NOW)
    first_store.close()
    assert second.owners.claim(TOLLS, MOVING, node(NODE2), NOW).epoch == 2


def test_a_fragment_of_a_suspected_owner_can_be_claimed() -> None:
    """The owner may be alive: Kafka fences it. Only its present life is suspected."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.nodes.register(node(NODE1))
    catalog.owners.claim(TOLLS, MOVING, node(), NOW)
    asked: list[NodeRecord] = []

    def suspected(one: NodeRecord) -> bool:
        asked.append(one)
        return True

    claim = catalog.owners.claim(TOLLS, MOVING, node(NODE2), NOW, is_suspected=suspected)
    assert (claim.epoch, claim.on_suspicion) == (2, True)
    assert asked == [node(NODE1)]


def test_epochs_continue_after_an_undeploy() -> None:
    """A network deployed again under its name begins above all epochs of its former life."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.owners.claim(TOLLS, MOVING, node(), NOW)
    catalog.owners.claim(TOLLS, MOVING, node(), NOW)
    catalog.networks.remove(TOLLS)
    catalog.networks.deploy(network(), network_version(), (fragment(),), None)
    assert catalog.owners.get(TOLLS, MOVING) is None
    assert catalog.owners.claim(TOLLS, MOVING, node(), NOW).epoch == 3


def test_a_claim_of_a_fragment_that_was_concurrently_redeployed_fails() -> None:
    """The network is removed and deployed again between the read and the claim."""
    tree = MemoryTree()
    _, other = session(tree)
    deployed(other)
    slow_store = SlowStore(tree)
    slow = Catalog(slow_store, Znodes())
    slow_store.delayed = True
    slow.owners.claim(TOLLS, MOVING, node(), NOW)
    other.owners.claim(TOLLS, MOVING, node(NODE2), NOW)
    other.networks.remove(TOLLS)
    other.networks.deploy(network(), network_version(), (fragment(),), None)
    slow_store.delayed = False
    with pytest.raises(RetryError):
        slow_store.apply(slow_store.pending.pop())
    assert other.owners.get(TOLLS, MOVING) is None


@given(st.permutations(range(4)), st.integers(0, 2))
@settings(max_examples=examples(30))
def test_of_claims_that_read_the_same_state_exactly_one_succeeds(
    order: list[int], earlier: int
) -> None:
    """The first one owns the epoch; all others change nothing."""
    tree = MemoryTree()
    _, catalog = session(tree)
    deployed(catalog)
    for _ in range(earlier):
        catalog.owners.claim(TOLLS, MOVING, node(), NOW)
    stores = [SlowStore(tree) for _ in order]
    for number, store in enumerate(stores):
        store.delayed = True
        Catalog(store, Znodes()).owners.claim(TOLLS, MOVING, node(NodeId(f"n{number}")), NOW)
        store.delayed = False
    winners = []
    for number in order:
        try:
            stores[number].apply(stores[number].pending.pop())
        except RetryError:
            continue
        winners.append(number)
    assert winners == order[:1]
    owner = catalog.owners.get(TOLLS, MOVING)
    assert owner is not None
    assert (owner.node, owner.epoch) == (f"n{order[0]}", earlier + 1)


def test_threads_that_claim_at_once_get_different_epochs() -> None:
    """With concurrent threads no epoch is claimed twice, and none is left out."""
    tree = MemoryTree()
    _, catalog = session(tree)
    deployed(catalog)
    won: list[Epoch] = []

    def run(name: str) -> None:
        _, mine = session(tree)
        for _ in range(50):
            try:
                won.append(mine.owners.claim(TOLLS, MOVING, node(NodeId(name)), NOW).epoch)
            except RetryError:
                continue

    threads = [threading.Thread(target=run, args=(f"n{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(won) == list(range(1, len(won) + 1))
    assert len(won) >= 50


def test_a_release_leaves_the_fragment_to_others() -> None:
    """Its status shows that no node has it; the catalog is read again; the epoch continues."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.nodes.register(node())
    catalog.owners.claim(TOLLS, MOVING, node(), NOW)
    catalog.statuses.report(replace(NOTHING_READ, last_error="gone"))
    owner, revision = catalog.owners.get(TOLLS, MOVING), catalog.networks.revision(ME)
    assert owner is not None
    assert catalog.owners.release(RELEASED, leaving(catalog, owner))
    assert catalog.owners.get(TOLLS, MOVING) is None
    assert catalog.networks.revision(ME) == revision + 1
    status = catalog.statuses.get(TOLLS, MOVING)
    assert status is not None
    assert (status.state, status.last_error) == (LaneState.PENDING, "")
    catalog.statuses.report(replace(NOTHING_READ, epoch=NO_EPOCH, node=NODE2))
    assert catalog.owners.claim(TOLLS, MOVING, node(NODE2), NOW).epoch == 2


def test_only_the_present_owner_can_release() -> None:
    """Neither one that was fenced, nor twice; nor of a fragment that was removed."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.owners.claim(TOLLS, MOVING, node(), NOW)
    first = catalog.owners.get(TOLLS, MOVING)
    catalog.owners.claim(TOLLS, MOVING, node(NODE2), NOW)
    second = catalog.owners.get(TOLLS, MOVING)
    assert first is not None
    assert second is not None
    assert not catalog.owners.release(RELEASED, leaving(catalog, first))
    assert catalog.owners.get(TOLLS, MOVING) == second
    last = leaving(catalog, second)
    assert catalog.owners.release(RELEASED, last)
    assert not catalog.owners.release(RELEASED, last)
    catalog.networks.remove(TOLLS, None)
    assert not catalog.owners.release(RELEASED, last)


class LateReader(MemoryStore):
    """A session that lets another one act between its read and its step, once."""

    def __init__(self, tree: MemoryTree) -> None:
        super().__init__(tree)
        self.between: Callable[[], object] | None = None

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Let the other one act, then try."""
        between, self.between = self.between, None
        if between is not None:
            between()
        super().apply(operations)


def test_a_claim_during_a_release_wins() -> None:
    """The release reads again, and finds another owner."""
    tree = MemoryTree()
    _, catalog = session(tree)
    deployed(catalog)
    catalog.owners.claim(TOLLS, MOVING, node(), NOW)
    owner = catalog.owners.get(TOLLS, MOVING)
    store = LateReader(tree)
    mine = Catalog(store, Znodes())
    store.between = lambda: catalog.owners.claim(TOLLS, MOVING, node(NODE2), NOW)
    assert owner is not None
    assert not mine.owners.release(RELEASED, leaving(catalog, owner))
    found = catalog.owners.get(TOLLS, MOVING)
    assert found is not None
    assert (found.node, found.epoch) == (NODE2, 2)


class LostAnswers(MemoryStore):
    """A session whose next step has no answer; it is executed or not."""

    executes = True

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """No answer comes in time."""
        if self.executes:
            super().apply(operations)
        raise UnavailableError("no answer")


def test_a_claim_whose_answer_is_lost_is_read_back() -> None:
    """The node owns the fragment if the claim was executed; else the error says that it failed."""
    tree = MemoryTree()
    _, catalog = session(tree)
    deployed(catalog)
    catalog.owners.claim(TOLLS, MOVING, node(NODE2), NOW)
    store = LostAnswers(tree)
    mine = Catalog(store, Znodes())
    claim = mine.owners.claim(TOLLS, MOVING, node(), NOW)
    assert claim.before is not None
    assert (claim.epoch, claim.before.node) == (2, NODE2)
    store.executes = False
    with pytest.raises(UnavailableError):
        mine.owners.claim(TOLLS, MOVING, node(), NOW)
    found = catalog.owners.get(TOLLS, MOVING)
    assert found is not None
    assert (found.node, found.epoch) == (NODE1, 2)


def test_a_drained_node_claims_only_what_it_owns_or_no_other_may_run() -> None:
    """Others are those that are up, not drained, not suspected, and have the labels."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    for one in (node(), node(NODE2)):
        catalog.nodes.register(one)
    catalog.drains.drain(ME, NODE1, NOW)
    for _ in range(2):
        with pytest.raises(RetryError, match="node node1 is drained") as caught:
            catalog.owners.claim(TOLLS, MOVING, node(), NOW)
        assert caught.value.hint == "these may run it: node2."
    suspected = catalog.owners.claim(
        TOLLS, MOVING, node(), NOW, is_suspected=lambda one: one.node == NODE2
    )
    assert suspected.epoch == 1
    assert catalog.owners.claim(TOLLS, MOVING, node(), NOW).epoch == 2


def test_the_last_node_claims_although_it_is_drained() -> None:
    """No other one has the labels, or all are drained, or none is up."""
    _, catalog = session(MemoryTree())
    catalog.format.ensure(ME)
    record = replace(fragment(MOVING), nodes="zone=a")
    catalog.networks.deploy(network(), network_version(), (record,), None)
    here = replace(node(), labels=(("zone", "a"),))
    catalog.drains.drain(ME, NODE1, NOW)

    def release() -> None:
        owner = catalog.owners.get(TOLLS, MOVING)
        assert owner is not None
        assert catalog.owners.release(RELEASED, leaving(catalog, owner))

    assert catalog.owners.claim(TOLLS, MOVING, here, NOW).epoch == 1
    release()
    catalog.nodes.register(node(NODE2))
    assert catalog.owners.claim(TOLLS, MOVING, here, NOW).epoch == 2
    release()
    other = replace(node(NodeId("node3")), labels=here.labels)
    catalog.nodes.register(other)
    with pytest.raises(RetryError, match="node node1 is drained"):
        catalog.owners.claim(TOLLS, MOVING, here, NOW)
    catalog.drains.drain(ME, other.node, NOW)
    assert catalog.owners.claim(TOLLS, MOVING, here, NOW).epoch == 3
