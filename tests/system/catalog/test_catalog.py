"""The catalog on real ZooKeeper, with concurrent sessions."""

import threading
import uuid
from collections.abc import Callable, Iterator

import pytest

from brokers.embedded.stack import EmbeddedStack
from brokers.zookeeper import ZooKeeperStore
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.contracts import ContractKey
from pipeline.contracts.ledger.book import Book
from pipeline.contracts.negotiation.steps import accept, cancel
from pipeline.errors import MedusaError, RetryError
from pipeline.ids import Epoch, NetworkVersion, NodeId, ParticipantId
from pipeline.names import Znodes
from tests.system.support import OWNER
from tests.unit.catalog.support import (
    MOVING,
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
)
from tests.unit.contracts.ledger.entries_of import ledger
from tests.unit.contracts.parties import ALICE, BOB, LOAD, active, keys, proposed, signer
from tests.unit.contracts.parties import NOW as NOW_OF_CONTRACTS

pytestmark = pytest.mark.system

TIMEOUT_S = 10.0
OpenCatalog = Callable[[], Catalog]


@pytest.fixture
def stores() -> Iterator[list[ZooKeeperStore]]:
    """The sessions of a test; they are closed after it."""
    opened: list[ZooKeeperStore] = []
    yield opened
    for store in opened:
        store.close()


@pytest.fixture
def open_catalog(embedded_stack: EmbeddedStack, stores: list[ZooKeeperStore]) -> OpenCatalog:
    """Opens sessions on a catalog of the test's own."""
    connect = f"{embedded_stack.settings.zookeeper_connect}/catalog/{uuid.uuid4().hex}"

    def open_one() -> Catalog:
        stores.append(ZooKeeperStore.connect(connect, TIMEOUT_S))
        return Catalog(stores[-1], Znodes(""))

    return open_one


def run_all(tasks: list[Callable[[], None]]) -> None:
    """Run tasks concurrently and wait for them."""
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_the_life_of_a_network(open_catalog: OpenCatalog) -> None:
    """Deployed, claimed, reported, changed and destroyed: every session reads the same."""
    one, two = open_catalog(), open_catalog()
    deployed(one, MOVING, SPEED)
    assert two.fragments.of(TOLLS) == (fragment(SPEED), fragment(MOVING))
    assert two.owners.claim(TOLLS, MOVING, node(), NOW).epoch == 1
    two.statuses.report(report(1, 7))
    assert one.statuses.of(TOLLS) == (report(1, 7),)
    plan = (fragment(SPEED),)
    one.networks.deploy(network(2), network_version(2), plan, NetworkVersion(1))
    assert two.fragments.of(TOLLS) == plan
    assert two.networks.revision(OWNER) == 2
    assert two.networks.remove(TOLLS) is True
    assert one.networks.of(OWNER) == ()


def test_fragments_of_an_ended_session_can_be_claimed(
    open_catalog: OpenCatalog, stores: list[ZooKeeperStore]
) -> None:
    """Another node can claim a fragment only after its owner's session has ended."""
    one, two = open_catalog(), open_catalog()
    deployed(one)
    one.nodes.register(node())
    one.owners.claim(TOLLS, MOVING, node(), NOW)
    with pytest.raises(RetryError, match="node1 owns it"):
        two.owners.claim(TOLLS, MOVING, node(NODE2), NOW)
    stores[0].close()
    assert two.nodes.all() == ()
    assert two.owners.claim(TOLLS, MOVING, node(NODE2), NOW).epoch == 2


def test_concurrent_claims_get_different_epochs(open_catalog: OpenCatalog) -> None:
    """Epochs are unique and consecutive."""
    deployed(open_catalog())
    won: list[Epoch] = []

    def claimer(number: int) -> Callable[[], None]:
        catalog = open_catalog()

        def run() -> None:
            for _ in range(20):
                try:
                    won.append(
                        catalog.owners.claim(TOLLS, MOVING, node(NodeId(f"n{number}")), NOW).epoch
                    )
                except RetryError:
                    continue

        return run

    run_all([claimer(number) for number in range(4)])
    assert sorted(won) == list(range(1, len(won) + 1))
    assert len(won) >= 20


def test_one_of_concurrent_deploys_succeeds(open_catalog: OpenCatalog) -> None:
    """All are planned against one version: one succeeds, the others fail with a conflict."""
    deployed(open_catalog())
    errors: list[MedusaError] = []

    def deployer(number: int) -> Callable[[], None]:
        catalog = open_catalog()
        mine = fragment(digest=f"of{number}", version=2)

        def run() -> None:
            try:
                catalog.networks.deploy(network(2), network_version(2), (mine,), NetworkVersion(1))
            except RetryError as error:
                errors.append(error)

        return run

    run_all([deployer(number) for number in range(4)])
    assert len(errors) == 3
    assert all("is at version 2" in error.message for error in errors)
    assert open_catalog().networks.revision(OWNER) == 2


def test_reports_do_not_stop_an_undeploy(open_catalog: OpenCatalog) -> None:
    """A network is removed while its owner writes status reports; no znode remains."""
    catalog, other = open_catalog(), open_catalog()
    deployed(catalog)
    removed = threading.Event()

    def keep_reporting() -> None:
        count = 0
        while not removed.is_set() and count < 5_000:
            count += 1
            other.statuses.report(report(1, count))

    def remove() -> None:
        assert catalog.networks.remove(TOLLS)
        removed.set()

    run_all([keep_reporting, remove])
    assert removed.is_set()
    assert catalog.networks.of(OWNER) == ()
    assert catalog.fragments.of(TOLLS) == ()


def test_of_an_acceptance_and_a_withdrawal_only_one_is_stored(open_catalog: OpenCatalog) -> None:
    """Two participants sign at the same time, each below its own path."""
    catalog = open_catalog()
    catalog.format.ensure(ParticipantId(ALICE), ParticipantId(BOB))
    for party in (ALICE, BOB):
        catalog.keys.replace(None, keys(party))
    before = proposed()
    with_bob, with_alice = ContractKey(BOB, LOAD), ContractKey(ALICE, LOAD)
    of_alice = catalog.contracts.read(ALICE, with_bob)
    catalog.contracts.add(of_alice, before.documents[0].text())
    acts = (
        (ALICE, with_bob, cancel(before, signer(ALICE, NOW_OF_CONTRACTS + 1), "")[0]),
        (BOB, with_alice, accept(before, signer(BOB, NOW_OF_CONTRACTS + 1))[0]),
    )
    stored = [(open_catalog(), catalog.contracts.read(party, key)) for party, key, _ in acts]
    lost: list[MedusaError] = []

    def signing(number: int) -> Callable[[], None]:
        def run() -> None:
            session, contract = stored[number]
            try:
                session.contracts.add(contract, acts[number][2].text())
            except RetryError as error:
                lost.append(error)

        return run

    run_all([signing(number) for number in range(2)])
    assert len(lost) == 1
    assert len(catalog.contracts.read(ALICE, with_bob).documents) == 2


def test_a_ledger_is_kept_in_the_catalog(open_catalog: OpenCatalog) -> None:
    """Entries are added once and in order, read by another session, and removed."""
    catalog, other = open_catalog(), open_catalog()
    catalog.format.ensure(ParticipantId(ALICE), ParticipantId(BOB))
    catalog.keys.replace(None, keys(BOB))
    key, books = ContractKey(ALICE, LOAD), [Book(LOAD)]
    entries, _ = ledger(active(), 3)
    for one in entries:
        books.append(books[-1].after(one.entry, ALICE))
        assert catalog.ledgers.append(BOB, key, one.text(), books[-1])
    assert not other.ledgers.append(BOB, key, entries[-1].text(), books[-1])
    assert other.ledgers.remove_up_to(BOB, key, books[2]) == 2
    found = other.ledgers.read(BOB, key)
    assert (found.start, found.end) == (books[2], books[-1])
    assert other.ledgers.entries(BOB, key, found) == tuple(one.text() for one in entries[2:])
