"""Two parties with keys, and a contract between them."""

from dataclasses import replace
from decimal import Decimal

from pipeline.contracts.agreement import Agreement, SettlementTerms
from pipeline.contracts.documents.keys import PrivateKey, key_from_seed
from pipeline.contracts.documents.parties import KeyRing, PartyKeys, first_keys
from pipeline.contracts.money import Currency
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.contracts.negotiation.steps import ANSWER_WITHIN_MS, Signer, accept, propose
from pipeline.contracts.terms import (
    Contract,
    ContractId,
    Kind,
    Limits,
    PartyId,
    Price,
    TaskSet,
)
from pipeline.ids import Millis

ALICE, BOB, EVE = PartyId("alice"), PartyId("bob"), PartyId("eve")
DAY_MS = 24 * 3_600_000
NOW = Millis(20_000 * DAY_MS)
"""Midnight of a day, UTC."""
PERIOD_MS = 60_000
EUR = Currency("EUR")
LOAD = ContractId("load-2027")


def key(party: PartyId, number: int = 0) -> PrivateKey:
    """A key of a party."""
    return key_from_seed(f"{party}-{number}".encode().ljust(32, b"."))


def keys(party: PartyId) -> PartyKeys:
    """The keys of a party that has one."""
    return first_keys(party, key(party), Millis(NOW - DAY_MS))


RING: KeyRing = {ALICE: keys(ALICE), BOB: keys(BOB)}


def terms(**changes: object) -> Agreement:
    """Alice buys load of bob; `changes` of the contract."""
    contract = Contract(
        id=LOAD,
        kind=Kind.LOAD,
        buyer=ALICE,
        seller=BOB,
        price=Price(EUR, Decimal("0.0040"), Decimal("0.0004")),
        tasks=TaskSet(frozenset({"filter", "aggregate"})),
        limits=Limits(50, 2_000_000, 1 << 30),
        from_ms=NOW,
        until_ms=Millis(NOW + 30 * DAY_MS),
        notice_ms=DAY_MS,
    )
    settlement = SettlementTerms(PERIOD_MS, Decimal("0.02"))
    return Agreement(replace(contract, **changes), settlement)  # type: ignore[arg-type] # of a test


def signer(party: PartyId, now_ms: int = NOW, ring: KeyRing = RING) -> Signer:
    """A party that signs at a time."""
    return Signer(party, key(party), ring, Millis(now_ms))


def proposed(agreement: Agreement | None = None) -> Negotiation:
    """A contract that alice has proposed."""
    found = agreement or terms()
    before = Negotiation(found.contract.id)
    return propose(before, found, signer(ALICE), ANSWER_WITHIN_MS)[1]


def active(agreement: Agreement | None = None) -> Negotiation:
    """A contract that bob has accepted."""
    return accept(proposed(agreement), signer(BOB, NOW + 1))[1]
