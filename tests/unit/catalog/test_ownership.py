"""Claims, epochs, statuses and nodes."""

import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.memory_store import MemoryStore, MemoryTree
from brokers.versioned_store import Operation
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import OwnerRecord, ParticipantRecord
from pipeline.errors import FencedError, RefusedError, RetryError
from pipeline.ids import Epoch, Millis, NodeId, ParticipantId, SchemaGuid, SchemaId
from pipeline.names import Znodes
from tests.profiles import examples
from tests.unit.catalog.support import (
    ME,
    MOVING,
    NODE1,
    NODE2,
    NOW,
    SPEED,
    TOLLS,
    deployed,
    fragment,
    network,
    network_version,
    node,
    report,
    session,
)

GUID = SchemaGuid("095d71cf-1255-6b9d-5e33-0ad575b3df5d")


class SlowStore(MemoryStore):
    """A session whose steps wait until `go` is set: others read the same state meanwhile."""

    def __init__(self, tree: MemoryTree) -> None:
        super().__init__(tree)
        self.pending: list[tuple[Operation, ...]] = []
        self.hold = False

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Keep the step for later, or do it."""
        if self.hold:
            self.pending.append(operations)
        else:
            super().apply(operations)


def test_the_first_claim_is_epoch_one_and_each_raises_it() -> None:
    """A node may claim its own fragment again, as after a restart; the epoch goes up by one."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    assert catalog.owner(TOLLS, MOVING) is None
    assert [catalog.claim(TOLLS, MOVING, node(), NOW) for _ in range(3)] == [1, 2, 3]
    assert catalog.owner(TOLLS, MOVING) == OwnerRecord(NODE1, ME, Epoch(3), NOW, life=NOW)


def test_an_epoch_is_above_that_of_the_last_marker() -> None:
    """After ZooKeeper was restored from an older state the counter goes on above what was written.

    A counter that is above it already stays so.
    """
    _, catalog = session(MemoryTree())
    deployed(catalog)
    written = [Epoch(0), Epoch(9), Epoch(3), Epoch(11)]
    claimed = [catalog.claim(TOLLS, MOVING, node(), NOW, written=last) for last in written]
    assert claimed == [1, 10, 11, 12]


def test_a_node_of_another_participant_cannot_claim() -> None:
    """The error says whose the network is; nothing is changed."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    with pytest.raises(RefusedError, match="belongs to participant local"):
        catalog.claim(TOLLS, MOVING, replace(node(), participant=ParticipantId("others")), NOW)
    assert catalog.owner(TOLLS, MOVING) is None


def test_a_fragment_that_is_not_there_cannot_be_claimed() -> None:
    """The error names it and lists what there is."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    with pytest.raises(RefusedError, match="no fragment average_speed"):
        catalog.claim(TOLLS, SPEED, node(), NOW)


def test_a_living_owner_is_not_robbed() -> None:
    """Another node cannot claim while the owner is up, and can once it is gone."""
    tree = MemoryTree()
    first_store, first = session(tree)
    _, second = session(tree)
    deployed(first)
    first.register_node(node(NODE1))
    first.claim(TOLLS, MOVING, node(), NOW)
    with pytest.raises(RetryError, match="node1 owns it"):
        second.claim(TOLLS, MOVING, node(NODE2), NOW)
    first_store.close()
    assert second.claim(TOLLS, MOVING, node(NODE2), NOW) == 2


def test_epochs_go_on_after_an_undeploy() -> None:
    """A network deployed again under its name begins above all epochs of its former life."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.claim(TOLLS, MOVING, node(), NOW)
    catalog.claim(TOLLS, MOVING, node(), NOW)
    catalog.remove_network(TOLLS)
    catalog.deploy(network(), network_version(), (fragment(),), None)
    assert catalog.owner(TOLLS, MOVING) is None
    assert catalog.claim(TOLLS, MOVING, node(), NOW) == 3


def test_a_claim_of_a_fragment_that_was_redeployed_meanwhile_fails() -> None:
    """Between reading and claiming, a full life of the fragment passes: the old claim is lost."""
    tree = MemoryTree()
    _, other = session(tree)
    deployed(other)
    slow_store = SlowStore(tree)
    slow = Catalog(slow_store, Znodes())
    slow_store.hold = True
    slow.claim(TOLLS, MOVING, node(), NOW)
    other.claim(TOLLS, MOVING, node(NODE2), NOW)
    other.remove_network(TOLLS)
    other.deploy(network(), network_version(), (fragment(),), None)
    slow_store.hold = False
    with pytest.raises(RetryError):
        slow_store.apply(slow_store.pending.pop())
    assert other.owner(TOLLS, MOVING) is None


@given(st.permutations(range(4)), st.integers(0, 2))
@settings(max_examples=examples(30))
def test_of_claims_that_saw_the_same_exactly_one_wins(order: list[int], earlier: int) -> None:
    """Of those who read the same state the first owns the epoch; all others change nothing."""
    tree = MemoryTree()
    _, catalog = session(tree)
    deployed(catalog)
    for _ in range(earlier):
        catalog.claim(TOLLS, MOVING, node(), NOW)
    stores = [SlowStore(tree) for _ in order]
    for number, store in enumerate(stores):
        store.hold = True
        Catalog(store, Znodes()).claim(TOLLS, MOVING, node(NodeId(f"n{number}")), NOW)
        store.hold = False
    winners = []
    for number in order:
        try:
            stores[number].apply(stores[number].pending.pop())
        except RetryError:
            continue
        winners.append(number)
    assert winners == order[:1]
    owner = catalog.owner(TOLLS, MOVING)
    assert owner is not None
    assert (owner.node, owner.epoch) == (f"n{order[0]}", earlier + 1)


def test_threads_that_claim_at_once_get_different_epochs() -> None:
    """Under real concurrency no epoch is given twice and none is left out."""
    tree = MemoryTree()
    _, catalog = session(tree)
    deployed(catalog)
    won: list[Epoch] = []

    def run(name: str) -> None:
        _, mine = session(tree)
        for _ in range(50):
            try:
                won.append(mine.claim(TOLLS, MOVING, node(NodeId(name)), NOW))
            except RetryError:
                continue

    threads = [threading.Thread(target=run, args=(f"n{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(won) == list(range(1, len(won) + 1))
    assert len(won) >= 50


def test_the_last_report_is_kept() -> None:
    """A status replaces the one before it; statuses are listed by fragment."""
    _, catalog = session(MemoryTree())
    deployed(catalog, MOVING, SPEED)
    catalog.report(report(1, 5))
    catalog.report(report(1, 9))
    assert catalog.status(TOLLS, MOVING) == report(1, 9)
    assert catalog.statuses(TOLLS) == (report(1, 9),)
    assert catalog.revision() == 1


def test_a_fenced_owner_cannot_report() -> None:
    """Once a newer epoch has reported, an older one is told that it is fenced."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.report(report(2, 1))
    with pytest.raises(FencedError, match="epoch 2"):
        catalog.report(report(1, 100))
    assert catalog.status(TOLLS, MOVING) == report(2, 1)


def test_a_report_of_a_removed_fragment_is_dropped() -> None:
    """A node that has not yet heard of an undeploy does no harm."""
    store, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.report(report(1))
    catalog.remove_network(TOLLS)
    catalog.report(report(1))
    assert store.children(Znodes().networks()) == ()


def test_a_node_is_up_as_long_as_its_session() -> None:
    """The record of a node goes with the session of its process."""
    tree = MemoryTree()
    store, catalog = session(tree)
    _, other = session(tree)
    catalog.ensure_format()
    catalog.register_node(node())
    assert other.nodes() == (node(),)
    store.close()
    assert other.nodes() == ()


def test_a_second_node_of_the_same_name_is_refused() -> None:
    """The error says which process has the name."""
    tree = MemoryTree()
    _, first = session(tree)
    _, second = session(tree)
    first.ensure_format()
    first.register_node(node(pid=7))
    with pytest.raises(RefusedError, match="process 7 on host"):
        second.register_node(node(pid=8))
    assert second.node(NODE1) == node(pid=7)


def test_a_node_registers_again_in_a_new_session() -> None:
    """After its session was lost the same process takes its name again at once."""
    tree = MemoryTree()
    store, catalog = session(tree)
    catalog.ensure_format()
    catalog.register_node(node())
    before = catalog.session
    store.expire()
    assert catalog.session != before
    assert catalog.nodes() == ()
    catalog.register_node(node())
    catalog.register_node(node())
    assert catalog.nodes() == (node(),)


def test_registering_again_moves_the_record_to_the_new_session() -> None:
    """A record that an older session of the process left does not end with that session."""
    tree = MemoryTree()
    old_store, old = session(tree)
    _, new = session(tree)
    old.ensure_format()
    old.register_node(node())
    new.register_node(node())
    old_store.close()
    assert new.nodes() == (node(),)


def test_a_dead_life_of_a_node_can_be_replaced() -> None:
    """Who knows that the process is dead need not wait for its session to end."""
    tree = MemoryTree()
    _, first = session(tree)
    _, second = session(tree)
    first.ensure_format()
    first.register_node(node(pid=7))
    second.register_node(node(pid=8), replaces=node(pid=7))
    assert second.nodes() == (node(pid=8),)
    with pytest.raises(RefusedError):
        first.register_node(node(pid=9), replaces=node(pid=7))


def test_participants_are_added_once() -> None:
    """A participant keeps the record that it was first added with."""
    _, catalog = session(MemoryTree())
    catalog.ensure_format()
    first = ParticipantRecord(ME, NOW)
    catalog.add_participant(first)
    catalog.add_participant(replace(first, created_at_ms=Millis(NOW + 1)))
    assert catalog.participants() == (first,)
    assert catalog.participant(ParticipantId("other")) is None


def test_missing_schemas_are_remembered() -> None:
    """An id or GUID that the registry does not know is kept once, however often it is found."""
    _, catalog = session(MemoryTree())
    catalog.ensure_format()
    assert catalog.missing.all() == frozenset()
    for schema in (SchemaId(7), SchemaId(2_000_000_000), GUID, SchemaId(7), GUID):
        catalog.missing.record(schema)
    assert catalog.missing.all() == {7, 2_000_000_000, GUID}


def test_a_schema_that_is_there_by_now_is_forgotten() -> None:
    """Forgetting it twice is harmless; the others stay."""
    _, catalog = session(MemoryTree())
    catalog.ensure_format()
    for schema in (SchemaId(3), SchemaId(4), GUID):
        catalog.missing.record(schema)
    for _ in range(2):
        catalog.missing.forget(SchemaId(3))
        catalog.missing.forget(GUID)
    assert catalog.missing.all() == {4}
