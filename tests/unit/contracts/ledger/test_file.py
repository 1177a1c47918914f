"""Ledger files: what is written is read, and every changed byte is found."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.ledger.book import Book
from pipeline.contracts.ledger.file import LedgerFile, read_ledger, verify_file, write_ledger
from pipeline.errors import RefusedError
from tests.unit.contracts.ledger.entries_of import ledger
from tests.unit.contracts.parties import ALICE, LOAD, RING, active

CONTRACT = active()
ENTRIES, END = ledger(CONTRACT, 3)
START = Book(LOAD)
FILE = LedgerFile(START, END, tuple(entry.text() for entry in ENTRIES))
TEXT = write_ledger(FILE)


def problems(text: str) -> list[str]:
    """What is found in a file."""
    try:
        file = read_ledger(text, "ledger.jsonl")
    except RefusedError as error:
        return [error.message]
    return [str(one) for one in verify_file(file, START, CONTRACT, RING)]


def test_a_written_ledger_is_read_and_right() -> None:
    """Also an empty one, and a later part."""
    assert read_ledger(TEXT, "") == FILE
    assert problems(TEXT) == []
    assert problems(write_ledger(LedgerFile(START, START, ()))) == []
    later = START.after(ENTRIES[0].entry, ALICE)
    part = read_ledger(write_ledger(LedgerFile(later, END, FILE.lines[1:])), "")
    assert verify_file(part, later, CONTRACT, RING) == ()
    wrong = verify_file(part, replace(later, settled_until_ms=END.settled_until_ms), CONTRACT, RING)
    assert wrong


@given(st.data())
def test_any_single_changed_byte_is_found(data: st.DataObject) -> None:
    """Of the head line, of an entry, of a line end."""
    raw = bytearray(TEXT.encode())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255).filter(lambda new: new != raw[at]))
    assert problems(raw.decode("latin-1"))


@given(st.data())
def test_a_file_that_was_cut_or_has_more_is_found(data: st.DataObject) -> None:
    """At any place."""
    assert problems(TEXT[: data.draw(st.integers(0, len(TEXT) - 1))])
    assert problems(TEXT + data.draw(st.text(min_size=1, max_size=3)))


def test_files_of_a_newer_version_and_other_files_are_refused() -> None:
    """With words."""
    with pytest.raises(RefusedError, match="newer Medusa"):
        read_ledger(TEXT.replace('"format":1,"kind"', '"format":2,"kind"'), "")
    with pytest.raises(RefusedError, match="no ledger"):
        read_ledger("{}\n", "")
    with pytest.raises(RefusedError, match="whole"):
        read_ledger("text", "")
