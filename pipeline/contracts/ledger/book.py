"""Book of a contract: how far its ledger is, and which entry may come next."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from pipeline.contracts.agreement import Agreement
from pipeline.contracts.documents.canonical import NOTHING_BEFORE, Digest
from pipeline.contracts.ledger.entries import (
    LINES_MAX,
    Entry,
    Line,
    Payment,
    Place,
    Settlement,
    entry_digest,
)
from pipeline.contracts.ledger.usage import (
    NOTHING_COUNTED,
    Count,
    Period,
    Settled,
    Usage,
    settle,
    total_units,
)
from pipeline.contracts.money import EXACT, Currency, Money
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.contracts.terms import Contract, ContractId, PartyId, TaskId
from pipeline.errors import RefusedError
from pipeline.ids import Millis

_SECOND_MS = 1_000


@dataclass(frozen=True, slots=True)
class Book:
    """State of a ledger after some of its entries.

    Args:
        contract: whose ledger.
        count: number of the last entry; 0: there is none.
        head: digest of the last entry.
        settled_until_ms: end of the last settled period.
        owed: what the buyer owes the seller by now; negative: what it has paid in advance. None:
            before the first entry.
    """

    contract: ContractId
    count: int = 0
    head: Digest = NOTHING_BEFORE
    settled_until_ms: Millis = Millis(0)  # noqa: RUF009 - a NewType
    owed: Money | None = None

    @property
    def next_place(self) -> Place:
        """The place of the next entry."""
        return Place(self.contract, self.count + 1, self.head)

    def after(self, entry: Entry, buyer: PartyId) -> "Book":
        """The book with one more entry, which `check_next` has checked."""
        before = Decimal(0) if self.owed is None else self.owed.amount
        if isinstance(entry, Settlement):
            owed = Money(entry.currency, EXACT.add(before, entry.amount.amount))
            until_ms = entry.period.until_ms
        else:
            paid = entry.amount.amount if entry.payer == buyer else -entry.amount.amount
            owed = Money(entry.amount.currency, EXACT.subtract(before, paid))
            until_ms = self.settled_until_ms
        return replace(
            self,
            count=entry.place.number,
            head=entry_digest(entry),
            settled_until_ms=until_ms,
            owed=owed,
        )


def settlement(
    book: Book,
    negotiation: Negotiation,
    period: Period,
    usages: Iterable[Usage],
    counted: Mapping[TaskId, Count],
) -> Settlement:
    """The entry that settles a period.

    Args:
        book: the ledger before it.
        negotiation: the contract.
        period: which period.
        usages: what the seller metered.
        counted: what the buyer counted, by task; a task that it does not know has no count.

    Raises:
        RefusedError: `check_next` refuses it.
    """
    agreement = _in_force(negotiation, period, str(book.next_place))
    tolerance = agreement.settlement.tolerance
    lines = []
    for usage in sorted(usages, key=lambda one: one.task):
        count = counted.get(usage.task, NOTHING_COUNTED)
        lines.append(Line(usage, count, settle(usage, count, tolerance)))
    price = agreement.contract.price
    entry = Settlement(book.next_place, period, price.currency, tuple(lines))
    check_next(book, entry, negotiation)
    return entry


def check_next(book: Book, entry: Entry, negotiation: Negotiation) -> None:
    """Check that an entry may be the next one of a ledger.

    Raises:
        RefusedError: it is out of order, or is not what the contract says: its period, its prices,
            its load or its sums; names the entry.
    """
    where = str(entry.place)
    if entry.place.contract != book.contract:
        raise RefusedError(f"it is of contract {entry.place.contract}", place=where)
    if entry.place.number != book.count + 1:
        raise RefusedError(f"the next entry has number {book.count + 1}", place=where)
    if entry.place.previous != book.head:
        raise RefusedError(
            f"it does not follow entry {book.count}",
            place=where,
            hint="one of the two was changed after both had signed it.",
        )
    if isinstance(entry, Payment):
        _check_payment(entry, negotiation, where)
        return
    if entry.period.from_ms < book.settled_until_ms:
        raise RefusedError("its period was settled before", place=where)
    _check_settlement(entry, negotiation, where)


def _check_payment(entry: Payment, negotiation: Negotiation, where: str) -> None:
    if entry.payer not in negotiation.parties:
        raise RefusedError(f"{entry.payer} is no party of the contract", place=where)
    _check_currency(entry.amount.currency, negotiation, where)


def _check_settlement(entry: Settlement, negotiation: Negotiation, where: str) -> None:
    agreement = _in_force(negotiation, entry.period, where)
    contract, length_ms = agreement.contract, agreement.settlement.period_ms
    if entry.period != Period.containing(entry.period.from_ms, length_ms):
        raise RefusedError(
            f"its period is none of the contract, whose periods have {length_ms} ms", place=where
        )
    _check_currency(entry.currency, negotiation, where)
    tasks = [line.usage.task for line in entry.lines]
    if tasks != sorted(set(tasks)) or len(tasks) > LINES_MAX:
        raise RefusedError("a task is there twice, or there are too many", place=where)
    check_usages([line.usage for line in entry.lines], contract, entry.period, where)
    for line in entry.lines:
        right = settle(line.usage, line.counted, agreement.settlement.tolerance)
        if line.settled != right:
            raise RefusedError(
                f"task {line.usage.task} is not settled by the rule: {_words(right)}", place=where
            )


def check_usages(usages: list[Usage], contract: Contract, period: Period, where: str) -> None:
    """Check prices and load of a period against a contract.

    Raises:
        RefusedError: a price lies outside the range, or the load is more than the limit permits.
    """
    price = contract.price
    for one in usages:
        if not price.lowest <= one.unit_price <= price.highest:
            raise RefusedError(
                f"the price {one.unit_price} of task {one.task} lies outside of "
                f"{price.lowest} to {price.highest}",
                place=where,
            )
    seconds = Decimal(period.until_ms - period.from_ms) / _SECOND_MS
    limit = contract.limits.cpu_units * seconds
    if total_units(usages) > limit:
        raise RefusedError(
            f"{total_units(usages)} load units are more than the limit: {limit} in this period",
            place=where,
            hint="the seller metered wrongly, or ran more than the contract permits.",
        )


def _in_force(negotiation: Negotiation, period: Period, where: str) -> Agreement:
    agreement = negotiation.in_force(period.from_ms)
    if agreement is None:
        raise RefusedError("the contract was not in force in this period", place=where)
    return agreement


def _check_currency(currency: Currency, negotiation: Negotiation, where: str) -> None:
    if currency != negotiation.agreed[-1].contract.price.currency:  # renewals keep it
        raise RefusedError(f"{currency} is not the currency of the contract", place=where)


def _words(settled: Settled) -> str:
    return f"{settled.paid} load units are paid and {settled.disputed} disputed"
