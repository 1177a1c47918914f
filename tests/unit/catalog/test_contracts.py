"""Keys, contracts and ledgers in the catalog."""

from dataclasses import replace

import pytest

from pipeline.catalog.backup import dumps, loads, read, restore
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.contracts import ContractKey
from pipeline.catalog.ledgers import INVOICES_MAX, StoredLedger
from pipeline.contracts.documents.signed import Signed, read_signed
from pipeline.contracts.ledger.book import Book
from pipeline.contracts.ledger.steps import invoice
from pipeline.contracts.negotiation.chain import Negotiation, read_chain
from pipeline.contracts.negotiation.steps import accept, cancel
from pipeline.contracts.terms import ContractId, PartyId
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import Millis, ParticipantId
from pipeline.names import Znodes
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.catalog.support import session
from tests.unit.contracts.ledger.entries_of import ledger, period, usage
from tests.unit.contracts.parties import (
    ALICE,
    BOB,
    EVE,
    LOAD,
    NOW,
    RING,
    active,
    key,
    keys,
    proposed,
    signer,
)

WITH_BOB, WITH_ALICE = ContractKey(BOB, LOAD), ContractKey(ALICE, LOAD)
CONTRACT = active()
ENTRIES, END = ledger(CONTRACT, 3)


@pytest.fixture
def catalog() -> Catalog:
    """Three participants, of which two have keys."""
    _, found = session(MemoryTree())
    found.format.ensure(*map(ParticipantId, (ALICE, BOB, EVE)))
    for party in (ALICE, BOB):
        found.keys.replace(None, keys(party))
    return found


def documents(texts: tuple[str, ...]) -> tuple[Signed, ...]:
    """Parsed documents."""
    return tuple(read_signed(text, "") for text in texts)


def propose_in(catalog: Catalog) -> Negotiation:
    """Store the proposal of alice."""
    found = proposed()
    catalog.contracts.add(catalog.contracts.read(ALICE, WITH_BOB), found.documents[0].text())
    return found


def test_keys_are_replaced_if_they_are_unchanged(catalog: Catalog) -> None:
    """Of two changes at the same time one is refused."""
    assert catalog.keys.of((ALICE, EVE, BOB)) == RING
    rotated = keys(ALICE).rotated(key(ALICE, 1), NOW, key(ALICE))
    catalog.keys.replace(keys(ALICE), rotated)
    assert catalog.keys.get(ALICE) == rotated
    for before in (None, keys(ALICE)):
        with pytest.raises(RefusedError, match="changed meanwhile"):
            catalog.keys.replace(before, rotated)


def test_the_documents_of_both_are_read_by_both(catalog: Catalog) -> None:
    """Each stores only what it has signed."""
    before = propose_in(catalog)
    assert catalog.contracts.keys_of(BOB) == (WITH_ALICE,)
    assert catalog.contracts.keys_of(EVE) == ()
    stored = catalog.contracts.read(BOB, WITH_ALICE)
    assert documents(stored.documents) == before.documents
    signed, after = accept(before, signer(BOB, NOW + 1))
    catalog.contracts.add(stored, signed.text())
    for party, contract in ((ALICE, WITH_BOB), (BOB, WITH_ALICE)):
        found = documents(catalog.contracts.read(party, contract).documents)
        assert read_chain(LOAD, found, RING, NOW) == after
    assert catalog.contracts.keys_of(ALICE) == (WITH_BOB,)


def test_of_an_acceptance_and_a_withdrawal_only_one_is_stored(catalog: Catalog) -> None:
    """Although they are below different paths."""
    before = propose_in(catalog)
    of_alice, of_bob = (
        catalog.contracts.read(ALICE, WITH_BOB),
        catalog.contracts.read(BOB, WITH_ALICE),
    )
    catalog.contracts.add(of_bob, accept(before, signer(BOB, NOW + 1))[0].text())
    withdrawal = cancel(before, signer(ALICE, NOW + 1), "")[0].text()
    with pytest.raises(RetryError, match="nothing was done"):
        catalog.contracts.add(of_alice, withdrawal)
    assert len(catalog.contracts.read(ALICE, WITH_BOB).documents) == 2


def test_nothing_is_signed_with_a_participant_without_keys(catalog: Catalog) -> None:
    """It could not answer."""
    with pytest.raises(RefusedError, match="participant eve has no key"):
        catalog.contracts.read(ALICE, ContractKey(EVE, LOAD))


def test_two_partners_may_use_one_name(catalog: Catalog) -> None:
    """They are different contracts."""
    catalog.keys.replace(None, keys(EVE))
    propose_in(catalog)
    with_eve = ContractKey(EVE, LOAD)
    catalog.contracts.add(catalog.contracts.read(ALICE, with_eve), "text")
    assert catalog.contracts.keys_of(ALICE) == (WITH_BOB, with_eve)
    assert catalog.contracts.keys_of(BOB) == (WITH_ALICE,)


def copy(catalog: Catalog, party: PartyId = BOB) -> StoredLedger:
    """A party's copy of the ledger."""
    return catalog.ledgers.read(party, ContractKey(ALICE if party == BOB else BOB, LOAD))


def filled(catalog: Catalog) -> list[Book]:
    """Add all entries to bob's copy; returns the states before and after each."""
    books = [Book(LOAD)]
    for one in ENTRIES:
        books.append(books[-1].after(one.entry, ALICE))
        assert catalog.ledgers.append(BOB, WITH_ALICE, one.text(), books[-1])
    return books


def test_entries_are_added_in_their_order_and_once(catalog: Catalog) -> None:
    """The state of the copy is that after the last one."""
    assert copy(catalog) == StoredLedger(Book(LOAD), Book(LOAD))
    books = filled(catalog)
    found = copy(catalog)
    assert found.end == END == books[-1]
    assert catalog.ledgers.entries(BOB, WITH_ALICE, found) == tuple(e.text() for e in ENTRIES)
    assert not catalog.ledgers.append(BOB, WITH_ALICE, ENTRIES[-1].text(), END)
    with pytest.raises(RefusedError, match="entry 2 cannot follow entry 4"):
        catalog.ledgers.append(BOB, WITH_ALICE, ENTRIES[1].text(), books[2])
    assert copy(catalog, ALICE).end == Book(LOAD)


def test_an_entry_ends_the_invoices_up_to_its_period(catalog: Catalog) -> None:
    """And the entry that only one has signed; a payment ends no invoice."""
    now_ms = period(2).until_ms
    invoices = [
        invoice(CONTRACT, period(n), (usage(),), signer(BOB, now_ms)).text() for n in range(3)
    ]
    for one in invoices:
        catalog.ledgers.invoice(BOB, WITH_ALICE, one)
    assert catalog.ledgers.sign(BOB, WITH_ALICE, "half", Book(LOAD))
    assert not catalog.ledgers.sign(BOB, WITH_ALICE, "other", Book(LOAD))
    assert not catalog.ledgers.sign(ALICE, WITH_BOB, "half", END)
    assert copy(catalog).half == "half"
    book = Book(LOAD)
    for entry, left in zip(ENTRIES, (2, 1, 1, 0), strict=True):
        book = book.after(entry.entry, ALICE)
        catalog.ledgers.append(BOB, WITH_ALICE, entry.text(), book)
        assert (copy(catalog).half, len(copy(catalog).invoices)) == ("", left)


def test_invoices_are_bounded(catalog: Catalog) -> None:
    """A partner that does not answer fills nothing."""
    for number in range(INVOICES_MAX):
        catalog.ledgers.invoice(BOB, WITH_ALICE, f"{number}")
    with pytest.raises(RefusedError, match="alice has not answered"):
        catalog.ledgers.invoice(BOB, WITH_ALICE, "more")


def test_a_full_copy_takes_no_entry(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until exported ones are removed; the rest is verified from their end."""
    books = filled(catalog)
    monkeypatch.setattr("pipeline.catalog.ledgers.ENTRIES_MAX", 4)
    more = replace(END, count=END.count + 1)
    with pytest.raises(RefusedError, match="4 entries in the catalog") as caught:
        catalog.ledgers.append(BOB, WITH_ALICE, "text", more)
    assert "export load-2027 FILE --remove" in caught.value.hint
    assert catalog.ledgers.remove_up_to(BOB, WITH_ALICE, books[2]) == 2
    found = copy(catalog)
    assert (found.start, found.end) == (books[2], END)
    assert catalog.ledgers.entries(BOB, WITH_ALICE, found) == tuple(e.text() for e in ENTRIES[2:])
    assert catalog.ledgers.append(BOB, WITH_ALICE, "text", more)


def test_a_backup_contains_keys_contracts_and_ledgers() -> None:
    """They are restored as they were."""
    stores = [MemoryStore(MemoryTree()) for _ in range(2)]
    before, after = (Catalog(store, Znodes("")) for store in stores)
    before.format.ensure(*map(ParticipantId, (ALICE, BOB)))
    for party in (ALICE, BOB):
        before.keys.replace(None, keys(party))
    propose_in(before)
    filled(before)
    restore(stores[1], loads(dumps(read(stores[0], NOW)), ""), {})
    assert after.keys.of((ALICE, BOB)) == RING
    signed = [one.contracts.read(BOB, WITH_ALICE).documents for one in (before, after)]
    assert signed[0] == signed[1] != ()
    assert copy(after).end == END
    texts = tuple(entry.text() for entry in ENTRIES)
    assert after.ledgers.entries(BOB, WITH_ALICE, copy(after)) == texts


def test_a_catalog_without_contracts_is_read_as_before(catalog: Catalog) -> None:
    """Of participants that have never signed anything."""
    assert catalog.keys.get(EVE) is None
    assert catalog.contracts.keys_of(ALICE) == ()
    assert catalog.contracts.read(ALICE, ContractKey(BOB, ContractId("x"))).documents == ()
    assert catalog.ledgers.entries(EVE, WITH_BOB, copy(catalog, ALICE)) == ()
    assert Millis(0) == copy(catalog).end.settled_until_ms
