"""Steps of a settlement: the seller invoices, the buyer answers, the seller countersigns.

1. The seller signs an invoice: what it metered of each task in a period.
2. The buyer adds what it counted, settles the differences by the rule, and signs the entry.
3. The seller compares the entry with its invoice and with the rule, and signs it too.

Only then anything is owed. Both keep the entry. The steps of a payment are the last two: who paid
signs first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.contracts.documents.signed import Signed, check_new, sign
from pipeline.contracts.ledger.book import Book, check_next, check_usages, settlement
from pipeline.contracts.ledger.entries import (
    FORMAT,
    LINES_MAX,
    Payment,
    Settlement,
    decode_usage,
    encode_usage,
)
from pipeline.contracts.ledger.signed_entry import SignedEntry
from pipeline.contracts.ledger.usage import Count, Period, Usage
from pipeline.contracts.money import Money
from pipeline.contracts.negotiation.acts import check_format
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.contracts.negotiation.steps import Signer
from pipeline.contracts.terms import ContractId, TaskId
from pipeline.errors import InputError, RefusedError
from pipeline.ids import Millis
from schemas.json_value import Json, JsonObject, list_of, number_of, object_of, text_of

_INVOICE = frozenset(
    {"format", "document", "contract", "from_ms", "until_ms", "lines", "by", "key", "at_ms"}
)


@dataclass(frozen=True, slots=True)
class Invoice:
    """What the seller metered in a period."""

    contract: ContractId
    period: Period
    usages: tuple[Usage, ...]


def invoice(
    negotiation: Negotiation, period: Period, usages: Iterable[Usage], signer: Signer
) -> Signed:
    """Sign what was metered in a period, which must be over. The signer is the seller.

    Raises:
        RefusedError: the period is not over or none of the contract, or a price or the load is not
            what the contract permits.
    """
    where = f"invoice of {negotiation.contract}"
    found = Invoice(negotiation.contract, period, tuple(sorted(usages, key=lambda one: one.task)))
    _check_invoice(found, negotiation, signer.now_ms, where)
    lines: list[Json] = [encode_usage(one) for one in found.usages]
    body: JsonObject = {
        "format": FORMAT,
        "document": "invoice",
        "contract": found.contract,
        "from_ms": period.from_ms,
        "until_ms": period.until_ms,
        "lines": lines,
    }
    return sign(body, signer.party, signer.key, signer.now_ms)


def read_invoice(signed: Signed, negotiation: Negotiation, signer: Signer) -> Invoice:
    """Verify an invoice of the seller.

    Raises:
        RefusedError: it is changed, or a stranger's, or not what the contract permits.
    """
    where = f"invoice of {negotiation.contract}"
    check_new(signed, signer.ring, signer.now_ms, where)
    body = signed.body
    check_format(body, "invoice", where)
    try:
        found = Invoice(
            ContractId(text_of(body["contract"])),
            Period(Millis(number_of(body["from_ms"])), Millis(number_of(body["until_ms"]))),
            tuple(decode_usage(object_of(one)) for one in list_of(body["lines"])),
        )
        known = body.keys() == _INVOICE and text_of(body["document"]) == "invoice"
    except (KeyError, TypeError, ValueError, InputError) as error:
        raise RefusedError(f"this is no invoice: {error}", place=where) from error
    if not known:
        raise RefusedError("this is no invoice", place=where)
    if signed.by not in negotiation.parties - {_buyer(negotiation)}:
        raise RefusedError(f"{signed.by} is not the seller", place=where)
    _check_invoice(found, negotiation, signer.now_ms, where)
    return found


def answer(
    book: Book,
    negotiation: Negotiation,
    invoiced: Invoice,
    counted: Mapping[TaskId, Count],
    signer: Signer,
) -> SignedEntry:
    """The entry that settles an invoice, signed by the buyer.

    Args:
        book: the ledger before it.
        negotiation: the contract.
        invoiced: the invoice, verified.
        counted: what the buyer counted, by task.
        signer: the buyer.

    Raises:
        RefusedError: the period was settled before, or the ledger has another head.
    """
    entry = settlement(book, negotiation, invoiced.period, invoiced.usages, counted)
    return SignedEntry(entry, ()).signed_by(signer.party, signer.key, signer.now_ms)


def pay(
    book: Book, negotiation: Negotiation, amount: Money, reference: str, signer: Signer
) -> SignedEntry:
    """The entry of a payment, signed by the one that paid."""
    entry = Payment(book.next_place, signer.party, amount, reference)
    check_next(book, entry, negotiation)
    return SignedEntry(entry, ()).signed_by(signer.party, signer.key, signer.now_ms)


def countersign(
    book: Book,
    negotiation: Negotiation,
    half: SignedEntry,
    invoiced: Invoice | None,
    signer: Signer,
) -> SignedEntry:
    """Sign an entry that the partner has signed; from then on it is owed.

    Args:
        book: the ledger before it.
        negotiation: the contract.
        half: the entry with the signature of the partner.
        invoiced: of a settlement, what this party has invoiced; None: of a payment.
        signer: this party.

    Raises:
        RefusedError: the entry is not what was invoiced, or not what the contract says.
    """
    where = str(half.entry.place)
    partner = negotiation.other(signer.party)
    half.check_signatures(signer.ring, frozenset({partner}), where)
    for signed in half.documents():
        check_new(signed, signer.ring, signer.now_ms, where)
    check_next(book, half.entry, negotiation)
    if isinstance(half.entry, Settlement):
        usages = tuple(line.usage for line in half.entry.lines)
        same = invoiced is not None and (invoiced.period, invoiced.usages) == (
            half.entry.period,
            usages,
        )
        if not same:
            raise RefusedError("it is not what was invoiced", place=where)
    elif half.entry.payer != partner:
        raise RefusedError("only who has paid says so", place=where)
    return half.signed_by(signer.party, signer.key, signer.now_ms)


def _check_invoice(found: Invoice, negotiation: Negotiation, now_ms: Millis, where: str) -> None:
    agreement = negotiation.in_force(found.period.from_ms)
    if agreement is None:
        raise RefusedError("the contract was not in force in this period", place=where)
    if found.contract != negotiation.contract:
        raise RefusedError(f"it is of contract {found.contract}", place=where)
    length_ms = agreement.settlement.period_ms
    if found.period != Period.containing(found.period.from_ms, length_ms):
        raise RefusedError("its period is none of the contract", place=where)
    if found.period.until_ms > now_ms:
        raise RefusedError("its period is not over", place=where)
    tasks = [one.task for one in found.usages]
    if tasks != sorted(set(tasks)) or not 0 < len(tasks) <= LINES_MAX:
        raise RefusedError(
            f"it needs 1 to {LINES_MAX} tasks, each of them once and in order", place=where
        )
    check_usages(list(found.usages), agreement.contract, found.period, where)


def _buyer(negotiation: Negotiation) -> str:
    return negotiation.agreed[-1].contract.buyer
