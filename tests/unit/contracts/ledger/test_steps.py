"""Invoice, answer and countersignature: what either side refuses, and that nothing is owed then."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from pipeline.contracts.documents.canonical import Digest
from pipeline.contracts.documents.signed import Signed, sign
from pipeline.contracts.ledger.book import Book
from pipeline.contracts.ledger.entries import Settlement
from pipeline.contracts.ledger.signed_entry import SignedEntry
from pipeline.contracts.ledger.steps import answer, countersign, invoice, pay, read_invoice
from pipeline.contracts.ledger.usage import Count, Period, Settled
from pipeline.contracts.money import Currency, LoadUnits, Money
from pipeline.contracts.terms import ContractId, TaskId
from pipeline.errors import InputError, RefusedError
from pipeline.ids import Millis
from tests.unit.contracts.ledger.entries_of import COUNTED, TASK, ledger, period, settled, usage
from tests.unit.contracts.parties import (
    ALICE,
    BOB,
    DAY_MS,
    EUR,
    EVE,
    LOAD,
    NOW,
    PERIOD_MS,
    RING,
    active,
    key,
    keys,
    signer,
)

CONTRACT = active()
BOOK = Book(LOAD)
END = period(0).until_ms
INVOICE = invoice(CONTRACT, period(0), (usage(),), signer(BOB, END))
INVOICED = read_invoice(INVOICE, CONTRACT, signer(ALICE, END))
HALF = answer(BOOK, CONTRACT, INVOICED, {TASK: COUNTED}, signer(ALICE, END))


def test_an_entry_is_owed_once_both_have_signed() -> None:
    """The three steps."""
    whole = countersign(BOOK, CONTRACT, HALF, INVOICED, signer(BOB, END))
    assert HALF.signers == {ALICE}
    assert whole.signers == {ALICE, BOB}
    whole.check_signatures(RING, CONTRACT.parties, "")
    assert BOOK.after(whole.entry, ALICE).owed == Money(EUR, Decimal("0.05"))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: invoice(CONTRACT, period(0), (), signer(BOB, END)), "needs 1 to 500 tasks"),
        (
            lambda: invoice(CONTRACT, period(0), (usage(),) * 2, signer(BOB, END)),
            "each of them once",
        ),
        (lambda: invoice(CONTRACT, period(0), (usage(),), signer(BOB, END - 1)), "is not over"),
        (lambda: invoice(CONTRACT, period(-1), (usage(),), signer(BOB, END)), "not in force"),
        (
            lambda: invoice(
                CONTRACT, Period(NOW, Millis(NOW + 2 * PERIOD_MS)), (usage(),), signer(BOB, END)
            ),
            "none of the contract",
        ),
        (
            lambda: invoice(CONTRACT, period(0), (usage(price="0.0041"),), signer(BOB, END)),
            "outside of 0.0036 to 0.004$",
        ),
        (
            lambda: invoice(CONTRACT, period(0), (usage(price="0.0035"),), signer(BOB, END)),
            "outside of",
        ),
        (
            lambda: invoice(CONTRACT, period(0), (usage(units="3000.1"),), signer(BOB, END)),
            "more than the limit: 3000",
        ),
    ],
    ids=str,
)
def test_a_invoice_outside_of_the_contract_is_refused(
    act: Callable[[], Signed], message: str
) -> None:
    """By who would sign it; who reads it makes the same checks."""
    with pytest.raises(RefusedError, match=message):
        act()


def test_a_invoice_of_a_period_after_the_notice_is_refused() -> None:
    """The contract has ended."""
    late = Period.containing(Millis(NOW + 31 * DAY_MS), PERIOD_MS)
    with pytest.raises(RefusedError, match="not in force"):
        invoice(CONTRACT, late, (usage(),), signer(BOB, late.until_ms))


def resigned(**changes: object) -> Signed:
    """The invoice with other values, signed by bob."""
    body = {
        name: value for name, value in INVOICE.body.items() if name not in {"by", "key", "at_ms"}
    }
    return sign({**body, **changes}, BOB, key(BOB), END)  # type: ignore[dict-item] # of a test


@pytest.mark.parametrize(
    ("signed", "message"),
    [
        (Signed({**INVOICE.body, "until_ms": END + 1}, INVOICE.signature), "signature of bob"),
        (Signed({**INVOICE.body, "by": "alice"}, INVOICE.signature), "is no key of alice"),
        (sign({**INVOICE.body}, ALICE, key(ALICE), END), "alice is not the seller"),
        (resigned(lines=[{**usage_json, "units": "-1"}]) if (usage_json := dict(
            INVOICE.body["lines"][0])) else INVOICE, "load is"),  # type: ignore[index,arg-type]
        (resigned(lines=[{**usage_json, "units": "NaN"}]), "no decimal number"),
        (resigned(lines=[{**usage_json, "units": 1}]), "a text was expected"),
        (resigned(lines=[{**usage_json, "price": "1"}]), "outside of"),
        (resigned(contract="other"), "of contract other"),
        (resigned(more=1), "this is no invoice"),
        (resigned(format=2), "a newer Medusa"),
    ],
)  # fmt: skip
def test_a_wrong_invoice_is_refused_by_the_buyer(signed: Signed, message: str) -> None:
    """Changed, of a stranger, or with impossible values."""
    with pytest.raises(InputError, match=message):
        read_invoice(signed, CONTRACT, signer(ALICE, END))


def test_a_invoice_from_the_future_is_refused() -> None:
    """The clocks disagree."""
    late = invoice(CONTRACT, period(0), (usage(),), signer(BOB, END + 400_000))
    with pytest.raises(RefusedError, match="400 s in the future"):
        read_invoice(late, CONTRACT, signer(ALICE, END))


def changed(**changes: object) -> SignedEntry:
    """The answer with other values, signed by alice."""
    entry = replace(HALF.entry, **changes)  # type: ignore[arg-type] # of a test
    return SignedEntry(entry, ()).signed_by(ALICE, key(ALICE), END)


def with_line(**changes: object) -> SignedEntry:
    """The answer with another line."""
    assert isinstance(HALF.entry, Settlement)
    return changed(lines=(replace(HALF.entry.lines[0], **changes),))  # type: ignore[arg-type]


NOTHING = LoadUnits(Decimal(0))
OTHER = Digest("0" * 64)


@pytest.mark.parametrize(
    ("half", "message"),
    [
        (with_line(settled=Settled(NOTHING, LoadUnits(Decimal("12.5")))), "settled by the rule"),
        (with_line(usage=usage("12.4"), settled=Settled(LoadUnits(Decimal("12.4")), NOTHING)),
         "not what was invoiced"),
        (changed(lines=()), "not what was invoiced"),
        (changed(period=period(1)), "not what was invoiced"),
        (changed(currency=Currency("USD")), "USD is not the currency"),
        (changed(place=replace(HALF.entry.place, number=2)), "next entry has number 1"),
        (changed(place=replace(HALF.entry.place, previous=OTHER)), "does not follow entry 0"),
        (changed(place=replace(HALF.entry.place, contract=ContractId("x"))), "of contract x"),
        (SignedEntry(HALF.entry, ()), "alice did not sign it"),
        (SignedEntry(HALF.entry, ()).signed_by(EVE, key(EVE), END), "is no key of eve"),
        (SignedEntry(HALF.entry, ()).signed_by(ALICE, key(EVE), END), "is no key of alice"),
    ],
)  # fmt: skip
def test_the_seller_signs_only_its_own_invoice(half: SignedEntry, message: str) -> None:
    """And only by the rule."""
    with pytest.raises(RefusedError, match=message):
        countersign(BOOK, CONTRACT, half, INVOICED, signer(BOB, END))


def test_the_buyer_pays_the_lower_count() -> None:
    """The seller signs the dispute, too: it has agreed on the rule."""
    found = settled(BOOK, CONTRACT, 0, counted=Count(500, 64_000)).entry
    assert isinstance(found, Settlement)
    assert found.lines[0].settled == Settled(LoadUnits(Decimal("6.25")), LoadUnits(Decimal("6.25")))
    unknown = answer(BOOK, CONTRACT, INVOICED, {}, signer(ALICE, END)).entry
    assert isinstance(unknown, Settlement)
    assert unknown.amount == Money(EUR, Decimal(0))


def test_a_period_is_settled_once() -> None:
    """An answer to an old invoice is refused."""
    _, book = ledger(CONTRACT, 1)
    with pytest.raises(RefusedError, match="settled before"):
        answer(book, CONTRACT, INVOICED, {TASK: COUNTED}, signer(ALICE, END))


def test_only_who_has_paid_says_so() -> None:
    """And only what was paid."""
    money = Money(EUR, Decimal("1.5"))
    half = pay(BOOK, CONTRACT, money, "transfer 7", signer(ALICE))
    whole = countersign(BOOK, CONTRACT, half, None, signer(BOB))
    assert BOOK.after(whole.entry, ALICE).owed == Money(EUR, Decimal("-1.5"))
    forged = SignedEntry(half.entry, ()).signed_by(BOB, key(BOB), NOW)
    with pytest.raises(RefusedError, match="only who has paid"):
        countersign(BOOK, CONTRACT, forged, None, signer(ALICE))
    for amount in ("0", "-1", "NaN"):
        with pytest.raises(InputError, match="amount"):
            pay(BOOK, CONTRACT, Money(EUR, Decimal(amount)), "", signer(ALICE))
    with pytest.raises(RefusedError, match="already"):
        whole.signed_by(ALICE, key(ALICE), NOW)


def test_tasks_of_a_invoice_are_in_order() -> None:
    """So that equal invoices are equal bytes."""
    more = usage(task=TaskId("a.b"))
    found = invoice(CONTRACT, period(0), (usage(), more), signer(BOB, END))
    assert found == invoice(CONTRACT, period(0), (more, usage()), signer(BOB, END))


def test_documents_that_were_signed_with_a_revoked_key_are_refused() -> None:
    """Somebody else may have signed them, at whatever time they say."""
    for party, act in (
        (BOB, lambda ring: read_invoice(INVOICE, CONTRACT, signer(ALICE, END, ring))),
        (
            ALICE,
            lambda ring: countersign(BOOK, CONTRACT, HALF, INVOICED, signer(BOB, END, ring)),
        ),
    ):
        gone = keys(party).rotated(key(party, 1), Millis(END + 1), None)
        with pytest.raises(RefusedError, match=f"{party} has revoked the key"):
            act({**RING, party: gone})


def test_an_answer_from_the_future_is_refused() -> None:
    """The clocks disagree."""
    half = answer(BOOK, CONTRACT, INVOICED, {TASK: COUNTED}, signer(ALICE, END + 400_000))
    with pytest.raises(RefusedError, match="400 s in the future"):
        countersign(BOOK, CONTRACT, half, INVOICED, signer(BOB, END))
