"""Verification of ledgers: every kind of damage is found and named."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.documents.canonical import Digest
from pipeline.contracts.ledger.book import Book
from pipeline.contracts.ledger.signed_entry import SignedEntry
from pipeline.contracts.ledger.verify import Verified, verify
from pipeline.contracts.money import Money
from tests.unit.contracts.ledger.entries_of import ledger
from tests.unit.contracts.parties import BOB, EUR, LOAD, RING, active, key, terms

CONTRACT = active()
ENTRIES, END = ledger(CONTRACT, 4)
LINES = [entry.text() for entry in ENTRIES]
START = Book(LOAD)


def checked(lines: list[str], end: Book | None = END, start: Book = START) -> Verified:
    """Verify lines against the right end."""
    return verify(lines, start, CONTRACT, RING, end)


def problems(lines: list[str], end: Book | None = END) -> list[str]:
    """The findings as text."""
    return [str(one) for one in checked(lines, end).findings]


def test_a_right_ledger_has_no_findings() -> None:
    """Four periods at 12.5 units and 0.004, less a payment."""
    found = checked(LINES)
    assert found.findings == ()
    assert found.entries == ENTRIES
    assert found.book == END
    assert found.book.owed == Money(EUR, Decimal("0.18"))


def test_an_empty_ledger_is_right() -> None:
    """Nothing was settled yet."""
    assert checked([], START).findings == ()


@pytest.mark.parametrize("number", range(1, 6))
def test_a_missing_entry_is_named(number: int) -> None:
    """Also the last one, since the end is recorded elsewhere."""
    lines = LINES[: number - 1] + LINES[number:]
    assert problems(lines) == [f"entry {number}: it is missing"]


def test_missing_entries_are_named_together() -> None:
    """As a range, wherever they are."""
    assert problems(LINES[:2]) == ["entry 3: it is missing, as are those up to 5"]
    assert problems([LINES[0], LINES[4]]) == ["entry 2: it is missing, as are those up to 4"]
    assert problems([]) == ["entry 1: it is missing, as are those up to 5"]


@pytest.mark.parametrize("number", range(1, 6))
def test_a_doubled_entry_is_named(number: int) -> None:
    """Wherever the second one is."""
    assert problems([*LINES[:number], LINES[number - 1], *LINES[number:]]) == [
        f"entry {number}: it is there twice"
    ]
    assert problems([*LINES, LINES[number - 1]]) == [f"entry {number}: it is there twice"]


def test_reordered_entries_are_named() -> None:
    """Those that come too late."""
    assert problems([LINES[0], LINES[2], LINES[1], *LINES[3:]]) == ["entry 2: it is out of order"]
    assert problems([*LINES[1:], LINES[0]]) == ["entry 1: it is out of order"]


def test_an_entry_signed_by_one_side_owes_nothing() -> None:
    """It is named, and not counted."""
    half = SignedEntry(ENTRIES[4].entry, ENTRIES[4].stamps[:1])
    found = checked([*LINES[:4], half.text()])
    assert [str(one) for one in found.findings] == ["entry 5: bob did not sign it"]
    assert found.book.owed == Money(EUR, Decimal("0.13"))


def test_an_entry_signed_by_a_stranger_is_named() -> None:
    """Also under the name of a party."""
    entry = SignedEntry(ENTRIES[4].entry, ENTRIES[4].stamps[:1])
    forged = entry.signed_by(BOB, key(BOB, 1), ENTRIES[4].stamps[1].at_ms)
    (found,) = problems([*LINES[:4], forged.text()])
    assert "is no key of bob" in found


def test_entries_of_another_contract_are_named() -> None:
    """Even if both have signed them."""
    other, _ = ledger(active(terms(id="other")), 1)
    (found,) = problems([other[0].text()], None)
    assert found == "entry 1: it is of contract other"


def test_an_entry_is_changed_together_with_the_end_of_the_book_only() -> None:
    """A chain that ends in another entry than the recorded one is found."""
    assert problems(LINES, replace(END, head=Digest("0" * 64))) == [
        "entry 5: it is not the last entry that is recorded"
    ]


@given(st.data())
def test_any_single_byte_that_is_changed_is_found(data: st.DataObject) -> None:
    """The finding names the entry, or the one that follows it."""
    number = data.draw(st.integers(1, len(LINES)))
    raw = bytearray(LINES[number - 1].encode())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255).filter(lambda new: new != raw[at]))
    lines = [*LINES[: number - 1], raw.decode("latin-1"), *LINES[number:]]
    found = checked(lines).findings
    assert found
    assert min(abs(one.number - number) for one in found) <= 1


@given(st.data())
def test_any_damage_of_the_order_is_found(data: st.DataObject) -> None:
    """Any list of the same lines but the right one."""
    numbers = data.draw(st.lists(st.integers(0, 4), max_size=8).filter(lambda n: n != [*range(5)]))
    assert checked([LINES[number] for number in numbers]).findings


def test_a_later_part_is_verified_from_its_start() -> None:
    """Of a ledger whose beginning was removed."""
    start = START
    for one in ENTRIES[:3]:
        start = start.after(one.entry, ENTRIES[0].stamps[0].by)
    found = checked(LINES[3:], END, start)
    assert found.findings == ()
    assert found.book == END
