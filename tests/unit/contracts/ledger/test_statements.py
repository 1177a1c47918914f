"""Statements, accounts and balances: money is conserved."""

from collections import defaultdict
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.ledger.book import Book
from pipeline.contracts.ledger.statements import Account, accounts, balances, statement
from pipeline.contracts.ledger.usage import Count
from pipeline.contracts.money import LoadUnits
from pipeline.contracts.terms import ContractId, PartyId, TaskId
from tests.unit.contracts.ledger.entries_of import ledger, paid, settled, usage
from tests.unit.contracts.parties import ALICE, BOB, EUR, LOAD, active

CONTRACT = active()
AMOUNTS = st.decimals(0, "1000000", places=9)


def test_a_statement_has_paid_and_disputed_load_by_task() -> None:
    """And what is owed after the payments."""
    book = Book(LOAD)
    scan, other = usage(), usage("2", "0.0037", TaskId("tolls.count"))
    first = settled(book, CONTRACT, 0, (other, scan), Count(500, 64_000))
    book = book.after(first.entry, ALICE)
    second = paid(book, CONTRACT, "0.01")
    found = statement([first.entry, second.entry], ALICE)
    assert [(one.task, one.paid, one.disputed) for one in found.tasks] == [
        ("tolls.count", Decimal(1), Decimal(1)),
        ("tolls.scan", Decimal("6.25"), Decimal("6.25")),
    ]
    assert found.charged == Decimal("0.0037") + Decimal("0.025")
    assert found.owed == found.charged - Decimal("0.01")
    assert found.periods == 1


def test_the_book_owes_what_the_statement_says() -> None:
    """Both sum the same entries."""
    entries, book = ledger(CONTRACT, 5)
    assert book.owed is not None
    assert book.owed.amount == statement([one.entry for one in entries], ALICE).owed


def test_accounts_are_summed_over_contracts() -> None:
    """Of the same buyer, seller and currency."""
    one = statement([entry.entry for entry in ledger(CONTRACT, 3)[0]], ALICE)
    found = accounts([(ALICE, BOB, EUR, one), (BOB, ALICE, EUR, one), (ALICE, BOB, EUR, one)])
    assert [(account.buyer, account.charged) for account in found] == [
        (ALICE, Decimal("0.3")),
        (BOB, Decimal("0.15")),
    ]


@given(
    st.lists(
        st.tuples(
            *(st.sampled_from(["a", "b", "c", "client"]).map(PartyId) for _ in range(2)),
            st.sampled_from(["EUR", "USD"]),
            AMOUNTS,
            AMOUNTS,
        ),
        max_size=20,
    )
)
def test_money_is_conserved(
    rows: list[tuple[PartyId, PartyId, str, Decimal, Decimal]],
) -> None:
    """The balances of all parties and clients sum to nothing, in each currency."""
    totals: dict[str, Decimal] = defaultdict(Decimal)
    found = [Account(*row) for row in rows]  # type: ignore[arg-type] # a NewType
    for (_, currency), amount in balances(found).items():
        totals[currency] += amount
    assert not any(totals.values())


@given(
    st.lists(
        st.tuples(
            st.decimals(0, 100, places=6),
            st.decimals("0.0036", "0.0040", places=6),
            st.integers(0, 1_200),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_charged_is_never_more_than_was_metered_at_the_highest_price(
    rows: list[tuple[Decimal, Decimal, int]],
) -> None:
    """Whatever each side counts, and exactly the paid units at the price of the move."""
    book, entries = Book(ContractId(LOAD)), []
    for number, (units, price, records) in enumerate(rows):
        usages = (usage(str(units), str(price)),)
        entries.append(settled(book, CONTRACT, number, usages, Count(records, 64_000)).entry)
        book = book.after(entries[-1], ALICE)
    found = statement(entries, ALICE)
    metered = sum((units for units, _, _ in rows), Decimal(0))
    (task,) = found.tasks
    assert LoadUnits(task.paid + task.disputed) == metered
    assert found.charged <= metered * Decimal("0.0040")
    assert book.owed is not None
    assert book.owed.amount == found.owed
