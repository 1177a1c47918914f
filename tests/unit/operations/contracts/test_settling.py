"""Settlement over the catalog, by two participants that act at any times."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokers.versioned_store import Delete
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.contracts import ContractKey
from pipeline.contracts.documents.signed import sign
from pipeline.contracts.ledger.usage import Count, Period
from pipeline.contracts.money import Money
from pipeline.contracts.negotiation.steps import accept
from pipeline.contracts.terms import PartyId, TaskId
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import Millis, ParticipantId
from pipeline.names import Znodes
from pipeline.operations.contracts.key_files import KeyFolder
from pipeline.operations.contracts.ledgers import Ledgers
from pipeline.operations.contracts.negotiating import Negotiating
from pipeline.operations.contracts.parties import Parties
from pipeline.operations.contracts.settling import Settling
from tests.memory_store import MemoryStore, MemoryTree
from tests.profiles import examples
from tests.unit.contracts.ledger.entries_of import COUNTED, period, usage
from tests.unit.contracts.parties import ALICE, BOB, EUR, LOAD, NOW, key, keys, proposed, signer
from tests.unit.deploy.twins import TwinClock

LAST = 20
TO_BOB, TO_ALICE = ContractKey(BOB, LOAD), ContractKey(ALICE, LOAD)


class At(TwinClock):
    """Clock some periods after the begin of the contract; each look takes a second."""

    def now_ms(self) -> Millis:
        """Wall time."""
        self.sleep(1)
        return Millis(period(LAST).until_ms + int(self.passed_s * 1_000))


@dataclass
class Two:
    """Both participants of a contract."""

    store: MemoryStore
    alice: Settling
    bob: Settling

    def settle(self, number: int) -> None:
        """All steps of a period."""
        self.bob.invoice(TO_ALICE, period(number), (usage(),))
        self.alice.answer(TO_BOB, counted)
        self.bob.countersign(TO_ALICE)

    def owed(self, party: PartyId) -> Decimal:
        """What a party thinks that alice owes."""
        settling, to = (self.alice, TO_BOB) if party == ALICE else (self.bob, TO_ALICE)
        found = settling.negotiating.parties.catalog.ledgers.read(party, to).end.owed
        return found.amount if found else Decimal(0)

    def problems(self) -> tuple[str, ...]:
        """What alice finds in the ledger."""
        return Ledgers(self.alice.negotiating).read(TO_BOB).problems


def counted(_period: Period, tasks: tuple[TaskId, ...]) -> Mapping[TaskId, Count]:
    """Alice counts the same."""
    return dict.fromkeys(tasks, COUNTED)


def agreed_in(folder: Path) -> Two:
    """A contract of two participants, in an own catalog."""
    store = MemoryStore(MemoryTree())
    catalog = Catalog(store, Znodes(""))
    catalog.format.ensure(ParticipantId(ALICE), ParticipantId(BOB))
    both = []
    for party, partner in ((ALICE, BOB), (BOB, ALICE)):
        catalog.keys.replace(None, keys(party))
        of_party = KeyFolder(folder / party)
        if of_party.current(party) is None:
            of_party.create(party, key(party))
            of_party.remember(partner, key(partner).public)
        parties = Parties(party, catalog, of_party, At())
        both.append(Settling(Negotiating(parties, lambda _: None)))
    before = proposed()
    catalog.contracts.add(catalog.contracts.read(ALICE, TO_BOB), before.documents[0].text())
    signed, _ = accept(before, signer(BOB, NOW + 1))
    catalog.contracts.add(catalog.contracts.read(BOB, TO_ALICE), signed.text())
    return Two(store, *both)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    """A contract of two participants."""
    return agreed_in(tmp_path)


def test_a_period_is_settled_in_three_steps(two: Two) -> None:
    """And copied by the buyer at its next step; steps without anything to do do nothing."""
    assert two.alice.answer(TO_BOB, counted) is None
    assert two.bob.countersign(TO_ALICE) is None
    two.settle(0)
    assert (two.owed(BOB), two.owed(ALICE)) == (Decimal("0.05"), Decimal(0))
    assert two.alice.answer(TO_BOB, counted) is None
    assert two.owed(ALICE) == Decimal("0.05")
    assert two.bob.countersign(TO_ALICE) is None
    assert two.problems() == ()


def test_a_period_is_invoiced_once_and_by_the_seller(two: Two) -> None:
    """Before and after it was settled."""
    two.bob.invoice(TO_ALICE, period(0), (usage(),))
    with pytest.raises(RefusedError, match="invoiced before"):
        two.bob.invoice(TO_ALICE, period(0), (usage("1"),))
    two.alice.answer(TO_BOB, counted)
    two.bob.countersign(TO_ALICE)
    with pytest.raises(RefusedError, match="invoiced before"):
        two.bob.invoice(TO_ALICE, period(0), (usage("1"),))
    with pytest.raises(RefusedError, match="only the seller"):
        two.alice.invoice(TO_BOB, period(1), (usage(),))


def test_a_payment_is_owed_less_once_both_have_signed_it(two: Two) -> None:
    """By the one that was paid."""
    two.settle(0)
    two.alice.pay(TO_BOB, Money(EUR, Decimal("0.05")), "transfer 1")
    assert two.owed(BOB) == Decimal("0.05")
    with pytest.raises(RetryError, match="waits for the signature of bob"):
        two.alice.pay(TO_BOB, Money(EUR, Decimal(1)), "transfer 2")
    assert two.bob.countersign(TO_ALICE) is not None
    assert two.owed(BOB) == 0


def test_of_two_entries_for_one_place_that_of_the_buyer_is_taken(two: Two) -> None:
    """The seller signs its own again."""
    two.bob.pay(TO_ALICE, Money(EUR, Decimal(2)), "back")
    two.alice.pay(TO_BOB, Money(EUR, Decimal(3)), "there")
    assert two.alice.countersign(TO_BOB) is None
    assert two.bob.countersign(TO_ALICE) is not None
    assert two.owed(BOB) == Decimal(-3)
    two.bob.pay(TO_ALICE, Money(EUR, Decimal(2)), "back")
    assert two.alice.countersign(TO_BOB) is not None
    two.bob.countersign(TO_ALICE)
    assert two.owed(BOB) == two.owed(ALICE) == Decimal(-1)


def test_a_buyer_that_does_not_sign_owes_nothing(two: Two) -> None:
    """Nor one whose partner does not."""
    two.bob.invoice(TO_ALICE, period(0), (usage(),))
    assert two.owed(ALICE) == two.owed(BOB) == 0
    two.alice.answer(TO_BOB, counted)
    assert two.owed(ALICE) == two.owed(BOB) == 0


def test_wrong_entries_of_the_partner_are_not_copied(two: Two) -> None:
    """Or entries that it has removed."""
    two.settle(0)
    two.store.apply((Delete(Znodes("").ledger_entry(ParticipantId(BOB), ALICE, LOAD, 1), None),))
    with pytest.raises(RefusedError, match="copy of bob: entry 1: it is missing"):
        two.alice.answer(TO_BOB, counted)
    catalog = two.bob.negotiating.parties.catalog
    catalog.ledgers.remove_up_to(BOB, TO_ALICE, catalog.ledgers.read(BOB, TO_ALICE).end)
    with pytest.raises(RefusedError, match="bob has removed entries"):
        two.alice.answer(TO_BOB, counted)


def revoke(settling: Settling, seed: bytes) -> None:
    """Change the key of a participant, whose old one is revoked."""
    parties = settling.negotiating.parties
    parties.rotate(lambda: seed * 32, revoke=True)


def trust(settling: Settling, partner: PartyId) -> None:
    """Confirm the new key of the partner."""
    settling.negotiating.parties.trust(partner, lambda _: None)


def test_what_waits_is_signed_again_after_its_key_was_revoked(two: Two) -> None:
    """Invoices and answers; nothing that a revoked key has signed is countersigned."""
    two.bob.invoice(TO_ALICE, period(0), (usage(),))
    revoke(two.bob, b"b")
    trust(two.alice, BOB)
    with pytest.raises(RefusedError, match="bob has revoked the key"):
        two.alice.answer(TO_BOB, counted)
    two.bob.invoice(TO_ALICE, period(0), (usage(),))
    assert two.alice.answer(TO_BOB, counted) is not None
    revoke(two.alice, b"a")
    trust(two.bob, ALICE)
    with pytest.raises(RefusedError, match="alice has revoked the key"):
        two.bob.countersign(TO_ALICE)
    assert two.alice.answer(TO_BOB, counted) is not None
    assert two.bob.countersign(TO_ALICE) is not None
    two.alice.countersign(TO_BOB)
    assert two.owed(ALICE) == two.owed(BOB) == Decimal("0.05")
    assert two.problems() == ()


def test_a_wrong_invoice_does_not_hold_up_the_next_one(two: Two) -> None:
    """It is named while there is no other one."""
    catalog = two.bob.negotiating.parties.catalog
    _, seller, _ = two.bob.negotiating.read(TO_ALICE)
    body = {"format": 1, "document": "invoice", "contract": LOAD, "lines": []}
    wrong = sign(body | {"from_ms": 0, "until_ms": 1}, BOB, seller.key, seller.now_ms)  # type: ignore[arg-type]
    catalog.ledgers.invoice(BOB, TO_ALICE, wrong.text())
    with pytest.raises(RefusedError, match="not in force"):
        two.alice.answer(TO_BOB, counted)
    two.bob.invoice(TO_ALICE, period(0), (usage(),))
    assert two.alice.answer(TO_BOB, counted) is not None


STEPS = st.lists(
    st.sampled_from(
        ["invoice", "answer", "seller signs", "buyer signs", "buyer pays", "seller pays"]
    ),
    max_size=25,
)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_any_order_of_steps_ends_in_one_ledger(tmp_path: Path, order: list[str]) -> None:
    """Both have the same entries, and no copy ever differs from the other."""
    two, invoiced = agreed_in(tmp_path), 0
    for step in order:
        with suppress(RetryError):  # an own entry waits
            match step:
                case "invoice" if invoiced < LAST:
                    two.bob.invoice(TO_ALICE, period(invoiced), (usage(),))
                    invoiced += 1
                case "answer":
                    two.alice.answer(TO_BOB, counted)
                case "seller signs":
                    two.bob.countersign(TO_ALICE)
                case "buyer signs":
                    two.alice.countersign(TO_BOB)
                case "buyer pays":
                    two.alice.pay(TO_BOB, Money(EUR, Decimal(1)), "")
                case "seller pays":
                    two.bob.pay(TO_ALICE, Money(EUR, Decimal(1)), "")
        assert two.problems() == ()
    for _ in range(3):
        two.bob.countersign(TO_ALICE)
        two.alice.countersign(TO_BOB)
    assert two.owed(ALICE) == two.owed(BOB)
