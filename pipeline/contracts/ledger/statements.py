"""Statements of a ledger, accounts between parties, and balances; all amounts exact."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from pipeline.contracts.ledger.entries import Entry, Settlement
from pipeline.contracts.money import EXACT, Currency, LoadUnits
from pipeline.contracts.terms import PartyId, TaskId

_NO_UNITS: Final = LoadUnits(Decimal(0))


@dataclass(frozen=True, slots=True)
class TaskTotal:
    """A task in a statement: paid and disputed load, and what is owed for it."""

    task: TaskId
    paid: LoadUnits
    disputed: LoadUnits
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Statement:
    """Totals of entries of one contract.

    Args:
        periods: number of settled periods.
        tasks: totals by task, by name.
        charged: sum of all tasks.
        paid: payments of the buyer, less those of the seller.
        opening: what the buyer owed before these entries.
    """

    periods: int
    tasks: tuple[TaskTotal, ...]
    charged: Decimal
    paid: Decimal
    opening: Decimal = Decimal(0)

    @property
    def owed(self) -> Decimal:
        """What the buyer still owes; negative: what it has paid in advance."""
        return EXACT.subtract(EXACT.add(self.opening, self.charged), self.paid)


@dataclass(frozen=True, slots=True)
class Account:
    """What one party owes another for all its contracts in one currency.

    A client outside of the federation, who pays for a query, is a party as any other one.

    Args:
        buyer: who pays.
        seller: who is paid.
        currency: of the amounts.
        charged: for load.
        paid: by now.
        opening: what was owed before.
    """

    buyer: PartyId
    seller: PartyId
    currency: Currency
    charged: Decimal
    paid: Decimal
    opening: Decimal = Decimal(0)

    @property
    def owed(self) -> Decimal:
        """What the buyer still owes; negative: what it has paid in advance."""
        return EXACT.subtract(EXACT.add(self.opening, self.charged), self.paid)


def statement(entries: Iterable[Entry], buyer: PartyId, opening: Decimal = Decimal(0)) -> Statement:
    """The statement of some entries of one contract; `opening`: what was owed before them."""
    tasks: dict[TaskId, TaskTotal] = {}
    periods, paid = 0, Decimal(0)
    for entry in entries:
        if not isinstance(entry, Settlement):
            amount = entry.amount.amount
            paid = EXACT.add(paid, amount if entry.payer == buyer else -amount)
            continue
        periods += 1
        for line in entry.lines:
            task = line.usage.task
            before = tasks.get(task, TaskTotal(task, _NO_UNITS, _NO_UNITS, Decimal(0)))
            tasks[task] = TaskTotal(
                task,
                LoadUnits(EXACT.add(before.paid, line.settled.paid)),
                LoadUnits(EXACT.add(before.disputed, line.settled.disputed)),
                EXACT.add(before.amount, line.amount),
            )
    charged = Decimal(0)
    for one in tasks.values():
        charged = EXACT.add(charged, one.amount)
    totals = tuple(tasks[name] for name in sorted(tasks))
    return Statement(periods, totals, charged, paid, opening)


def accounts(
    statements: Iterable[tuple[PartyId, PartyId, Currency, Statement]],
) -> tuple[Account, ...]:
    """Accounts of all contracts, by buyer, seller and currency.

    `statements`: buyer, seller, currency and statement of each contract.
    """
    found: dict[tuple[PartyId, PartyId, Currency], Account] = {}
    for buyer, seller, currency, one in statements:
        key = (buyer, seller, currency)
        before = found.get(key, Account(*key, Decimal(0), Decimal(0)))
        found[key] = replace(
            before,
            charged=EXACT.add(before.charged, one.charged),
            paid=EXACT.add(before.paid, one.paid),
            opening=EXACT.add(before.opening, one.opening),
        )
    return tuple(found[key] for key in sorted(found))


def balances(found: Iterable[Account]) -> Mapping[tuple[PartyId, Currency], Decimal]:
    """What each party is owed, less what it owes, by currency; their sum is 0 in each."""
    totals: dict[tuple[PartyId, Currency], Decimal] = {}
    for one in found:
        for party, amount in ((one.seller, one.owed), (one.buyer, -one.owed)):
            key = (party, one.currency)
            totals[key] = EXACT.add(totals.get(key, Decimal(0)), amount)
    return totals
