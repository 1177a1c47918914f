"""Ledgers as files: a head line, then one line for each entry, all in canonical JSON."""

from dataclasses import dataclass
from typing import Final

from pipeline.contracts.documents.canonical import Digest, canonical, read_object
from pipeline.contracts.documents.parties import KeyRing
from pipeline.contracts.documents.terms_json import decimal_text, read_decimal
from pipeline.contracts.ledger.book import Book
from pipeline.contracts.ledger.verify import Finding, verify
from pipeline.contracts.money import Currency, Money
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.contracts.terms import ContractId
from pipeline.errors import InputError, RefusedError
from pipeline.ids import Millis
from schemas.json_value import JsonObject, number_of, object_of, text_of

KIND: Final = "medusa-ledger"
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """A ledger, or its later part.

    Args:
        start: the state before the first entry.
        end: the state after the last one.
        lines: the entries as text.
    """

    start: Book
    end: Book
    lines: tuple[str, ...]


def encode_book(book: Book) -> JsonObject:
    """A book as JSON, without the name of its contract."""
    owed = book.owed
    return {
        "count": book.count,
        "head": book.head,
        "settled_until_ms": book.settled_until_ms,
        "currency": owed.currency if owed else None,
        "owed": decimal_text(owed.amount) if owed else None,
    }


def decode_book(contract: ContractId, found: JsonObject, place: str) -> Book:
    """Read what `encode_book` returns.

    Raises:
        RefusedError: it is something else.
    """
    try:
        owed = None
        if found["owed"] is not None:
            currency = Currency(text_of(found["currency"]))
            owed = Money(currency, read_decimal(text_of(found["owed"])))
        head = Digest(text_of(found["head"]))
        until_ms = Millis(number_of(found["settled_until_ms"]))
        return Book(contract, number_of(found["count"]), head, until_ms, owed)
    except (KeyError, TypeError, ValueError, InputError) as error:
        raise RefusedError(f"this is no state of a ledger: {error}", place=place) from error


def write_ledger(file: LedgerFile) -> str:
    """The text of a ledger file."""
    head: JsonObject = {
        "kind": KIND,
        "format": FORMAT,
        "contract": file.end.contract,
        "start": encode_book(file.start),
        "end": encode_book(file.end),
    }
    return "".join(f"{line}\n" for line in (canonical(head).decode(), *file.lines))


def read_ledger(text: str, place: str) -> LedgerFile:
    """Parse a ledger file; does not verify its entries.

    Args:
        text: the file.
        place: its name, for errors.

    Raises:
        RefusedError: it is no ledger file, or its head line or its end was changed.
    """
    first, *lines = text.split("\n")
    if not lines or lines[-1] != "":
        raise RefusedError("this is no whole ledger: its last line does not end", place=place)
    head = read_object(first.encode(), "ledger", f"{place}, line 1")
    try:
        kind, version, contract = (
            head["kind"],
            head["format"],
            ContractId(text_of(head["contract"])),
        )
        start = decode_book(contract, object_of(head["start"]), place)
        end = decode_book(contract, object_of(head["end"]), place)
    except (KeyError, TypeError) as error:
        raise RefusedError(f"this is no ledger: {error}", place=f"{place}, line 1") from error
    file = LedgerFile(start, end, tuple(lines[:-1]))
    if (kind, version) != (KIND, FORMAT) or write_ledger(file) != text:
        raise RefusedError("this is no ledger, or one of a newer Medusa", place=f"{place}, line 1")
    return file


def verify_file(
    file: LedgerFile, recorded_start: Book, negotiation: Negotiation, ring: KeyRing
) -> tuple[Finding, ...]:
    """Verify the entries of a file, and what its head line says of them.

    Args:
        file: the ledger, or its later part.
        recorded_start: the state before its first entry, from another place.
        negotiation: the contract, verified.
        ring: the keys of both parties.
    """
    verified = verify(file.lines, recorded_start, negotiation, ring, file.end)
    found = list(verified.findings)
    compared = ((file.start, recorded_start, "first"), (file.end, verified.book, "last"))
    for said, right, which in compared:
        if said != right and not found:
            number = file.start.count + 1 if which == "first" else file.end.count
            found.append(Finding(number, f"line 1 does not say what is true of the {which} entry"))
    return tuple(found)
