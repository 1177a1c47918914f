"""Ledgers: each party's copy of the entries that both have signed, below its own path.

The record of a ledger has the state after its last entry; an entry is added in one step with it.
Entries are small and few: one for each settlement period of a contract. A copy keeps at most
`ENTRIES_MAX`; older ones are removed when they were exported.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from brokers.versioned_store import Create, Delete, Operation, Versioned
from pipeline.catalog.codec import encode
from pipeline.catalog.contract_records import EntryRecord, LedgerRecord
from pipeline.catalog.contracts import ContractKey
from pipeline.catalog.network_steps import put
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.retrying import retrying
from pipeline.contracts.documents.canonical import canonical, read_object
from pipeline.contracts.ledger.book import Book
from pipeline.contracts.ledger.file import decode_book, encode_book
from pipeline.contracts.terms import PartyId
from pipeline.errors import RefusedError
from pipeline.ids import ParticipantId

ENTRIES_MAX: Final = 5_000
"""Entries of a contract that a copy keeps: more than half a year of hours, about 7 MB."""
INVOICES_MAX: Final = 100
"""Invoices that wait for an answer: a partner that does not answer is given up long before."""
_REMOVED_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class StoredLedger:
    """A party's copy of a ledger.

    Args:
        start: state before the first stored entry.
        end: state after the last one.
        invoices: invoices of the party that are not settled, as text.
        half: an entry that only the party has signed, as text; empty: there is none.
    """

    start: Book
    end: Book
    invoices: tuple[str, ...] = ()
    half: str = ""


@dataclass(frozen=True, slots=True)
class Ledgers:
    """The copies of each participant."""

    records: RecordStore

    def read(self, party: PartyId, key: ContractKey) -> StoredLedger:
        """A party's copy of the ledger of a contract; an empty one if there is none."""
        path = self._path(party, key)
        return _stored(self.records.read(LedgerRecord, path), key, path)

    def entries(self, party: PartyId, key: ContractKey, ledger: StoredLedger) -> tuple[str, ...]:
        """The entries of a copy as text, by number, without missing ones; one request."""
        numbers = range(ledger.start.count + 1, ledger.end.count + 1)
        paths = [self._entry_path(party, key, number) for number in numbers]
        found = self.records.read_all(EntryRecord, paths)
        return tuple(one.entry for one in found if one is not None)

    def invoice(self, party: PartyId, key: ContractKey, invoice: str) -> None:
        """Store an invoice of the party.

        Raises:
            RefusedError: too many wait for an answer.
        """

        def changed(before: StoredLedger) -> StoredLedger:
            if len(before.invoices) >= INVOICES_MAX:
                raise RefusedError(
                    f"{key.partner} has not answered {INVOICES_MAX} invoices",
                    place=f"ledger of {key.contract}",
                )
            return replace(before, invoices=(*before.invoices, invoice))

        self._change(party, key, changed)

    def sign(
        self, party: PartyId, key: ContractKey, half: str, end: Book, instead_of: str = ""
    ) -> bool:
        """Store an entry that only the party has signed, to follow the state `end`.

        `instead_of`: the entry whose place it takes.

        Returns:
            Whether it was stored: the ledger is at that state, and no other entry waits.
        """
        changed = False

        def step(before: StoredLedger) -> StoredLedger:
            nonlocal changed
            changed = before.end == end and before.half == instead_of
            return replace(before, half=half) if changed else before

        self._change(party, key, step)
        return changed

    def append(
        self,
        party: PartyId,
        key: ContractKey,
        entry: str,
        after: Book,
        *,
        waiting: str | None = None,
    ) -> bool:
        """Add an entry that both have signed, which the caller has verified.

        Ends what waits: the entry that only the party has signed, and, if the entry settles a
        period, the invoices up to it.

        Args:
            party: whose copy.
            key: partner and contract.
            entry: as text.
            after: the state after it.
            waiting: add it only if this is the entry that waits; None: whichever does.

        Returns:
            Whether it was added; False: it is there already, or another one waits.

        Raises:
            RefusedError: it is not the next one, or the copy is full.
        """
        path = self._path(party, key)
        records = self.records

        def step() -> bool:
            stored = records.values(path)
            found = stored.record(LedgerRecord, path)
            before = _stored(found, key, path)
            if before.end == after or waiting not in (None, before.half):
                return False
            self._check_next(before, after, key)
            record = replace(before, end=after, half="", invoices=_open(before, after))
            number = after.count
            created = Create(self._entry_path(party, key, number), encode(EntryRecord(entry)))
            operations = (self._put(party, key, record, stored.get(path)), created)
            records.store.apply(operations)
            return True

        return retrying(step, f"ledger of {key.contract}")

    def remove_up_to(self, party: PartyId, key: ContractKey, start: Book) -> int:
        """Remove the entries up to a state, which the caller has exported; returns how many.

        The record is changed first: entries before its start are of no effect. Those that an
        interrupted removal has left are removed by the next one.
        """

        def changed(before: StoredLedger) -> StoredLedger:
            ahead = before.start.count <= start.count <= before.end.count
            return replace(before, start=start) if ahead else before

        self._change(party, key, changed)
        first = self.read(party, key).start.count
        paths = self.records.paths_below(self._path(party, key))
        gone = [path for path in paths if int(path.rpartition("/")[2]) <= first]
        for at in range(0, len(gone), _REMOVED_AT_ONCE):
            step = gone[at : at + _REMOVED_AT_ONCE]
            self.records.store.apply(tuple(Delete(path, None) for path in step))
        return len(gone)

    def _change(
        self, party: PartyId, key: ContractKey, changed: Callable[[StoredLedger], StoredLedger]
    ) -> None:
        path, records = self._path(party, key), self.records

        def step() -> None:
            stored = records.values(path)
            before = _stored(stored.record(LedgerRecord, path), key, path)
            after = changed(before)
            if after != before:
                records.store.apply((self._put(party, key, after, stored.get(path)),))

        retrying(step, f"ledger of {key.contract}")

    def _check_next(self, before: StoredLedger, after: Book, key: ContractKey) -> None:
        place = f"ledger of {key.contract}"
        if after.count != before.end.count + 1:
            raise RefusedError(
                f"entry {after.count} cannot follow entry {before.end.count}", place=place
            )
        if before.end.count - before.start.count >= ENTRIES_MAX:
            raise RefusedError(
                f"the ledger has {ENTRIES_MAX:,} entries in the catalog",
                place=place,
                hint=f"`medusa ledger export {key.contract} FILE --remove` makes room.",
            )

    def _put(
        self, party: PartyId, key: ContractKey, ledger: StoredLedger, found: Versioned | None
    ) -> Operation:
        record = LedgerRecord(
            key.contract,
            party,
            key.partner,
            canonical(encode_book(ledger.start)).decode(),
            canonical(encode_book(ledger.end)).decode(),
            ledger.invoices,
            ledger.half,
        )
        return put(self._path(party, key), encode(record), found)

    def _path(self, party: PartyId, key: ContractKey) -> str:
        return self.records.znodes.ledger(ParticipantId(party), key.partner, key.contract)

    def _entry_path(self, party: PartyId, key: ContractKey, number: int) -> str:
        znodes = self.records.znodes
        return znodes.ledger_entry(ParticipantId(party), key.partner, key.contract, number)


def _stored(record: LedgerRecord | None, key: ContractKey, path: str) -> StoredLedger:
    if record is None:
        return StoredLedger(Book(key.contract), Book(key.contract))
    start, end = (
        decode_book(key.contract, read_object(text.encode(), "state of a ledger", path), path)
        for text in (record.start, record.end)
    )
    return StoredLedger(start, end, record.invoices, record.half)


def _open(before: StoredLedger, after: Book) -> tuple[str, ...]:
    """The invoices that an entry leaves open: those of periods that it does not settle."""
    if after.settled_until_ms == before.end.settled_until_ms:
        return before.invoices
    return tuple(one for one in before.invoices if _until_ms(one) > after.settled_until_ms)


def _until_ms(invoice: str) -> int:
    found = read_object(invoice.encode(), "invoice", "ledger")
    body = found.get("body")
    until_ms = body.get("until_ms") if isinstance(body, dict) else None
    return until_ms if isinstance(until_ms, int) else 0
