"""Verification of a ledger: every changed, missing, reordered or doubled entry is named."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.contracts.documents.parties import KeyRing
from pipeline.contracts.ledger.book import Book, check_next
from pipeline.contracts.ledger.signed_entry import SignedEntry, read_entry
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.errors import InputError


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake in a ledger.

    Args:
        number: of the entry; of an unreadable one, the number that it should have.
        problem: what is wrong with it.
    """

    number: int
    problem: str

    def __str__(self) -> str:
        return f"entry {self.number}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Verified:
    """Result of a verification.

    Args:
        book: the state after the last entry that is right.
        entries: those that are right, up to the first mistake.
        findings: all mistakes; empty: the ledger is right.
    """

    book: Book
    entries: tuple[SignedEntry, ...]
    findings: tuple[Finding, ...]


def verify(
    lines: Sequence[str], start: Book, negotiation: Negotiation, ring: KeyRing, end: Book | None
) -> Verified:
    """Verify the entries of a ledger.

    Args:
        lines: the entries as text, in their order.
        start: the state before the first of them.
        negotiation: the contract, verified.
        ring: the keys of both parties.
        end: the state that they should lead to, from another place; None: it is not known.
    """
    checker = _Checker(start, negotiation, ring)
    for line in lines:
        checker.line(line)
    checker.end(end)
    findings = sorted(checker.findings, key=lambda one: one.number)
    return Verified(checker.book, tuple(checker.entries), tuple(findings))


class _Checker:
    """Walk through entries.

    After the first mistake the contents of later ones are compared no more, since they depend on
    it; their signatures and numbers are.
    """

    def __init__(self, start: Book, negotiation: Negotiation, ring: KeyRing) -> None:
        self.book = start
        self.entries: list[SignedEntry] = []
        self.findings: list[Finding] = []
        self._expected = start.count + 1
        self._negotiation = negotiation
        self._ring = ring
        self._buyer = negotiation.agreed[-1].contract.buyer
        self._seen: dict[int, str] = {}
        self._unreadable: list[str] = []
        self._gaps: list[tuple[int, int]] = []

    def line(self, line: str) -> None:
        """Check one entry."""
        try:
            signed = read_entry(line, f"ledger of {self.book.contract}")
        except InputError as error:
            self._unreadable.append(f"it was changed: {error.message}")
            return
        number = signed.entry.place.number
        if number in self._seen:
            same = self._seen[number] == line
            self._add(number, "it is there twice" if same else "there are two different ones")
            return
        self._seen[number] = line
        if number < self._expected:
            self._add(number, "it is out of order")
            return
        self._skip_to(number)
        self._expected = number + 1
        self._content(signed)

    def end(self, end: Book | None) -> None:
        """Compare with where the entries should lead, and add what is missing."""
        last = end.count if end else self.book.count
        self._skip_to(max(last + 1, self._expected))
        for first, until in self._gaps:
            self._missing(first, until)
        right = end is None or (self.book.count, self.book.head) == (end.count, end.head)
        if not self.findings and not right:
            self._add(self.book.count, "it is not the last entry that is recorded")

    def _add(self, number: int, problem: str) -> None:
        self.findings.append(Finding(number, problem))

    def _skip_to(self, number: int) -> None:
        """Note what is changed or missing before the entry of a number."""
        first = self._expected
        for at, problem in enumerate(self._unreadable, start=first):
            self._add(min(at, number), problem)
        first += len(self._unreadable)
        self._unreadable = []
        if first < number:
            self._gaps.append((first, number - 1))

    def _missing(self, first: int, last: int) -> None:
        """Add the entries of a gap, except those that came later."""
        for number in sorted(one for one in self._seen if first <= one <= last):
            if first < number:
                self._missing(first, number - 1)
            first = number + 1
        if first <= last:
            more = "" if first == last else f", as are those up to {last}"
            self._add(first, f"it is missing{more}")

    def _content(self, signed: SignedEntry) -> None:
        number = signed.entry.place.number
        try:
            signed.check_signatures(self._ring, self._negotiation.parties, f"entry {number}")
            if self.findings or self._gaps:
                return
            check_next(self.book, signed.entry, self._negotiation)
        except InputError as error:
            self._add(number, error.message)
            return
        self.entries.append(signed)
        self.book = self.book.after(signed.entry, self._buyer)
