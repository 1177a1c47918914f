"""Negotiations: what both parties may do, and what a reader refuses."""

import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.documents.keys import Signature
from pipeline.contracts.documents.parties import SKEW_MAX_MS
from pipeline.contracts.documents.signed import Signed, read_signed, sign
from pipeline.contracts.money import Currency
from pipeline.contracts.negotiation.acts import Acceptance, Cancellation, Proposal, encode_act
from pipeline.contracts.negotiation.chain import Negotiation, follow, read_chain
from pipeline.contracts.negotiation.states import State
from pipeline.contracts.negotiation.steps import (
    ANSWER_WITHIN_MS,
    Signer,
    accept,
    cancel,
    counter,
    propose,
    renew,
)
from pipeline.contracts.terms import PartyId, Price
from pipeline.errors import InputError, RefusedError
from pipeline.ids import Millis
from tests.unit.contracts.parties import (
    ALICE,
    BOB,
    DAY_MS,
    EUR,
    EVE,
    LOAD,
    NOW,
    RING,
    active,
    key,
    keys,
    proposed,
    signer,
    terms,
)

CHEAPER = terms(price=Price(EUR, Decimal("0.003")))
LATER = Millis(NOW + DAY_MS)
IN_DOLLARS = terms(price=Price(Currency("USD"), Decimal(1)))
LONGER = terms(from_ms=LATER, until_ms=Millis(NOW + 60 * DAY_MS))


def countered() -> Negotiation:
    """Bob has answered with other terms."""
    return counter(proposed(), CHEAPER, signer(BOB, NOW + 1), ANSWER_WITHIN_MS)[1]


def renewing() -> Negotiation:
    """Bob has proposed a longer duration."""
    return renew(active(), LONGER, signer(BOB, NOW + 2), ANSWER_WITHIN_MS)[1]


def test_terms_are_agreed_once_both_have_signed_them() -> None:
    """After a counter-proposal, those of the counter-proposal."""
    before = countered()
    assert before.state is State.PROPOSED
    assert before.in_force(NOW) is None
    _, after = accept(before, signer(ALICE, NOW + 2))
    assert (after.state, after.agreed) == (State.ACTIVE, (CHEAPER,))
    assert after.in_force(NOW) == CHEAPER
    assert after.in_force(CHEAPER.contract.until_ms) is None


def test_a_renewal_holds_from_its_begin() -> None:
    """Until then, and if it lapses, the terms before it hold."""
    open_one = renewing()
    _, after = accept(open_one, signer(ALICE, NOW + 3))
    assert after.in_force(Millis(LATER - 1)) == terms()
    assert after.in_force(LATER) == LONGER
    assert after.until_ms == LONGER.contract.until_ms
    lapsed = open_one.at(Millis(NOW + 3 + ANSWER_WITHIN_MS))
    assert (lapsed.state, lapsed.open, lapsed.agreed) == (State.ACTIVE, None, (terms(),))


def test_a_renewal_may_end_earlier() -> None:
    """The terms before it do not come back."""
    shorter = terms(from_ms=LATER, until_ms=Millis(LATER + DAY_MS))
    before = renew(active(), shorter, signer(BOB, NOW + 2), ANSWER_WITHIN_MS)[1]
    after = accept(before, signer(ALICE, NOW + 3))[1]
    assert after.in_force(LATER) == shorter
    assert after.in_force(Millis(LATER + DAY_MS)) is None
    assert after.at(Millis(LATER + DAY_MS)).state is State.ENDED


def test_a_cancelled_contract_goes_on_until_its_notice_is_over() -> None:
    """Or until its end, if that comes first."""
    _, found = cancel(active(), signer(BOB, NOW + 5), "too hot")
    end = Millis(NOW + 5 + DAY_MS)
    assert (found.state, found.until_ms) == (State.CANCELLED, end)
    assert found.in_force(Millis(end - 1)) == terms()
    assert found.in_force(end) is None
    assert found.at(end).state is State.ENDED
    until_ms = terms().contract.until_ms
    _, late = cancel(active(), signer(ALICE, until_ms - 10), "")
    assert late.until_ms == until_ms


def test_a_proposal_is_withdrawn_or_rejected_without_notice() -> None:
    """By either of them."""
    for party in (ALICE, BOB):
        _, found = cancel(proposed(), signer(party, NOW + 1), "")
        assert found.state is State.WITHDRAWN


def test_a_proposal_lapses_and_a_contract_ends() -> None:
    """By time alone."""
    until_ms = Millis(NOW + ANSWER_WITHIN_MS)
    assert proposed().at(until_ms).state is State.PROPOSED
    assert proposed().at(Millis(until_ms + 1)).state is State.LAPSED
    assert active().at(terms().contract.until_ms).state is State.ENDED
    assert renewing().at(terms().contract.until_ms).state is State.ENDED


def act_at(state: Negotiation, party: PartyId, now_ms: int = NOW + 5) -> tuple[Negotiation, Signer]:
    """A state, and a party that acts in it."""
    return state, signer(party, now_ms)


END = terms().contract.until_ms
LAPSED = NOW + ANSWER_WITHIN_MS + 1


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: accept(*act_at(proposed(), ALICE)), "alice has proposed this itself"),
        (lambda: counter(proposed(), CHEAPER, signer(ALICE), 1_000), "proposed this itself"),
        (lambda: counter(proposed(), terms(), signer(BOB), 1_000), "these are the proposed terms"),
        (lambda: accept(*act_at(active(), BOB)), "active cannot be accepted"),
        (lambda: accept(*act_at(proposed(), BOB, LAPSED)), "lapsed cannot be accepted"),
        (lambda: cancel(*act_at(active(), BOB, END), ""), "ended cannot be cancelled"),
        (lambda: propose(active(), terms(), signer(ALICE), 1_000), "contract of this name"),
        (lambda: propose(active().at(END), terms(), signer(ALICE, END), 9), "it is ended"),
        (lambda: propose(Negotiation(LOAD), terms(), signer(BOB, END), 9), "ended already"),
        (lambda: propose(Negotiation(LOAD), terms(id="x"), signer(BOB), 9), "of contract x"),
        (lambda: propose(Negotiation(LOAD), terms(buyer=EVE), signer(ALICE), 9), "other partic"),
        (lambda: propose(Negotiation(LOAD), terms(), signer(ALICE), 0), "the time to answer"),
        (
            lambda: renew(active(), terms(buyer=BOB, seller=ALICE), signer(BOB), 99),
            "a renewal keeps",
        ),
        (lambda: renew(active(), terms(), signer(BOB, NOW + DAY_MS), 99), "begins in the past"),
        (lambda: renew(active(), IN_DOLLARS, signer(BOB), 99), "buyer, seller and currency"),
        (lambda: renew(proposed(), LONGER, signer(BOB), 99), "proposed cannot be renewal"),
        (lambda: cancel(*act_at(active(), BOB), "two\nlines"), "one line"),
        (lambda: accept(*act_at(proposed(), BOB, NOW - SKEW_MAX_MS - 1)), "in the future"),
        (lambda: accept(*act_at(proposed(), EVE)), "no key of eve"),
        (
            lambda: accept(proposed(), Signer(BOB, key(EVE), RING, NOW)),
            "is no key of bob",
        ),
    ],
)
def test_impossible_steps_are_refused(act: Callable[[], object], message: str) -> None:
    """Before anything is signed or stored."""
    with pytest.raises(RefusedError, match=message):
        act()


def test_a_proposal_that_was_signed_with_a_revoked_key_is_not_accepted() -> None:
    """Somebody else may have made it, at whatever time it says."""
    gone = keys(ALICE).rotated(key(ALICE, 1), Millis(NOW + 1), None)
    with pytest.raises(RefusedError, match="alice has revoked the key"):
        accept(proposed(), signer(BOB, NOW + 2, {**RING, ALICE: gone}))


CHAIN = accept(renewing(), signer(ALICE, NOW + 3))[1].documents


def read(documents: list[Signed], now_ms: int = NOW + 10) -> Negotiation:
    """Verify documents."""
    return read_chain(LOAD, documents, RING, Millis(now_ms))


@given(st.randoms(use_true_random=False))
def test_documents_of_both_are_one_chain_in_whatever_order(chance: random.Random) -> None:
    """Each says which one it follows."""
    documents = [read_signed(one.text(), "") for one in CHAIN]
    chance.shuffle(documents)
    found = read(documents)
    assert found.documents == CHAIN
    assert found.agreed == (terms(), LONGER)


@pytest.mark.parametrize("number", range(len(CHAIN)))
def test_a_missing_document_is_found(number: int) -> None:
    """Except the last ones: a negotiation may end with any."""
    documents = [*CHAIN[:number], *CHAIN[number + 1 :]]
    if number == len(CHAIN) - 1:
        assert read(documents).state is State.RENEWING
        return
    with pytest.raises(RefusedError, match="follow one that is missing") as caught:
        read(documents)
    assert f"after document {number}" in caught.value.place


def test_a_repeated_document_is_found() -> None:
    """And two different ones in one place."""
    with pytest.raises(RefusedError, match="is there twice"):
        read([*CHAIN, CHAIN[1]])
    _, other = cancel(proposed(), signer(BOB, NOW + 1), "")
    with pytest.raises(RefusedError, match="two successors"):
        read([*CHAIN, other.documents[1]])


@given(st.data())
def test_any_changed_byte_of_a_document_is_found(data: st.DataObject) -> None:
    """In the body or in the signature."""
    number = data.draw(st.integers(0, len(CHAIN) - 1))
    raw = bytearray(CHAIN[number].text().encode())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255).filter(lambda new: new != raw[at]))
    with pytest.raises(InputError):
        _read_with(number, raw.decode("latin-1"))


def _read_with(number: int, text: str) -> Negotiation:
    return read([*CHAIN[:number], read_signed(text, ""), *CHAIN[number + 1 :]])


def test_terms_that_were_changed_after_the_signature_are_refused() -> None:
    """By whichever party: the other one has signed their digest."""
    body = {**CHAIN[0].body, "terms": {**CHAIN[0].body["terms"], "kind": "content"}}  # type: ignore[dict-item]
    with pytest.raises(RefusedError, match="signature of alice does not fit"):
        read([replace(CHAIN[0], body=body)])
    own = {name: value for name, value in body.items() if name not in {"by", "key", "at_ms"}}
    again = sign(own, ALICE, key(ALICE), NOW)
    with pytest.raises(RefusedError, match="follow one that is missing"):
        read([again, *CHAIN[1:]])


def test_a_document_of_another_contract_is_refused() -> None:
    """A replay under another name."""
    with pytest.raises(RefusedError, match="of contract load-2027"):
        read_chain(terms(id="x").contract.id, CHAIN[:1], RING, NOW)


def signed_by_bob(act: Proposal | Acceptance | Cancellation, before: Negotiation) -> Signed:
    """A document that no step would sign."""
    return sign(encode_act(act, before.contract, before.head), BOB, key(BOB), Millis(NOW + 9))


@pytest.mark.parametrize(
    ("signed", "message"),
    [
        (signed_by_bob(Cancellation(Millis(NOW + 10), ""), active()), "does not keep the notice"),
        (signed_by_bob(Acceptance(), proposed()), "does not follow the last document"),
        (signed_by_bob(Proposal(LONGER, Millis(NOW + 9)), active()), "time to answer"),
        (sign(encode_act(Acceptance(), LOAD, active().head), EVE, key(EVE), NOW), "no party"),
        (sign({**encode_act(Acceptance(), LOAD, active().head), "format": 9}, BOB, key(BOB), NOW),
         "a newer Medusa"),
        (sign({**encode_act(Acceptance(), LOAD, active().head), "more": 1}, BOB, key(BOB), NOW),
         "acceptance with more"),
        (sign(encode_act(Acceptance(), LOAD, active().head), BOB, key(BOB), Millis(NOW - DAY_MS)),
         "before the document that it follows"),
    ],
)  # fmt: skip
def test_a_reader_refuses_what_no_step_would_sign(signed: Signed, message: str) -> None:
    """A partner's program may have other rules."""
    with pytest.raises(RefusedError, match=message):
        follow(active(), signed)


def test_a_document_from_the_future_is_refused() -> None:
    """Within the difference that clocks may have, it is not."""
    assert read(list(CHAIN), NOW + 3 - SKEW_MAX_MS).state is State.ACTIVE
    with pytest.raises(RefusedError, match="in the future") as caught:
        read(list(CHAIN), NOW - SKEW_MAX_MS - 1)
    assert "clocks" in caught.value.hint


def test_an_empty_signature_is_none() -> None:
    """As a document that only one party has written."""
    with pytest.raises(RefusedError, match="signature of alice does not fit"):
        read([replace(CHAIN[0], signature=Signature(""))])
