"""A ledger of some periods, signed by both."""

from decimal import Decimal

from pipeline.contracts.ledger.book import Book
from pipeline.contracts.ledger.signed_entry import SignedEntry
from pipeline.contracts.ledger.steps import Invoice, answer, countersign, invoice, pay, read_invoice
from pipeline.contracts.ledger.usage import Count, Period, Usage
from pipeline.contracts.money import LoadUnits, Money
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.contracts.terms import TaskId
from pipeline.ids import Millis
from tests.unit.contracts.parties import ALICE, BOB, EUR, NOW, PERIOD_MS, signer

TASK = TaskId("tolls.scan")
COUNTED = Count(1_000, 64_000)


def period(number: int) -> Period:
    """A settlement period after the begin of the contract."""
    return Period.containing(Millis(NOW + number * PERIOD_MS), PERIOD_MS)


def usage(units: str = "12.5", price: str = "0.004", task: TaskId = TASK) -> Usage:
    """What bob metered."""
    return Usage(task, Decimal(price), LoadUnits(Decimal(units)), COUNTED)


def settled(
    book: Book,
    negotiation: Negotiation,
    number: int,
    usages: tuple[Usage, ...] = (),
    counted: Count = COUNTED,
) -> SignedEntry:
    """The entry of a period, by all three steps."""
    now_ms = period(number).until_ms
    usages = usages or (usage(),)
    seller, buyer = signer(BOB, now_ms), signer(ALICE, now_ms)
    signed = invoice(negotiation, period(number), usages, seller)
    invoiced = read_invoice(signed, negotiation, buyer)
    half = answer(
        book, negotiation, invoiced, dict.fromkeys([u.task for u in usages], counted), buyer
    )
    assert isinstance(invoiced, Invoice)
    return countersign(book, negotiation, half, invoiced, seller)


def paid(book: Book, negotiation: Negotiation, amount: str) -> SignedEntry:
    """The entry of a payment by alice."""
    money = Money(EUR, Decimal(amount))
    half = pay(book, negotiation, money, "transfer 1", signer(ALICE, NOW + 1))
    return countersign(book, negotiation, half, None, signer(BOB, NOW + 1))


def ledger(negotiation: Negotiation, count: int) -> tuple[tuple[SignedEntry, ...], Book]:
    """A ledger of so many settled periods and one payment in between."""
    book, entries = Book(negotiation.contract), []
    for number in range(count):
        entries.append(settled(book, negotiation, number))
        book = book.after(entries[-1].entry, ALICE)
        if number == 1:
            entries.append(paid(book, negotiation, "0.02"))
            book = book.after(entries[-1].entry, ALICE)
    return tuple(entries), book
