"""Settlement of a contract over the catalog: each step reads both copies, verifies, signs, stores.

Who countersigns an entry stores it first; the other one copies it. If both have signed an entry for
the same place at the same time, such as a settlement and a payment, that of the buyer is taken: the
buyer countersigns nothing while its own entry waits, and the seller gives up its own.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from pipeline.catalog.contracts import ContractKey
from pipeline.catalog.ledgers import Ledgers, StoredLedger
from pipeline.contracts.documents.signed import read_signed
from pipeline.contracts.ledger import steps
from pipeline.contracts.ledger.book import Book
from pipeline.contracts.ledger.entries import Settlement
from pipeline.contracts.ledger.signed_entry import SignedEntry, read_entry
from pipeline.contracts.ledger.usage import Count, Period, Usage
from pipeline.contracts.ledger.verify import verify
from pipeline.contracts.money import Money
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.contracts.negotiation.steps import Signer
from pipeline.contracts.terms import PartyId, TaskId
from pipeline.errors import RefusedError, RetryError
from pipeline.operations.contracts.negotiating import Negotiating

CountTasks = Callable[[Period, tuple[TaskId, ...]], Mapping[TaskId, Count]]
"""Returns what the buyer counted of tasks in a period; a task without a count was not its own."""


@dataclass(frozen=True, slots=True)
class _Position:
    """Both copies of a ledger, the own one with all entries that the partner has."""

    contract: Negotiation
    signer: Signer
    own: StoredLedger
    partner: StoredLedger

    @property
    def is_buyer(self) -> bool:
        return self.signer.party == self.contract.agreed[-1].contract.buyer


@dataclass(frozen=True, slots=True)
class Settling:
    """The settlement of a participant's contracts."""

    negotiating: Negotiating

    def invoice(self, key: ContractKey, period: Period, usages: Iterable[Usage]) -> None:
        """Sign and store what was metered in a period; by the seller.

        Raises:
            RefusedError: it is not what the contract permits, the period has an invoice or was
                settled, or too many wait.
        """
        found = self._position(key)
        if found.is_buyer:
            raise RefusedError("only the seller invoices", place=found.contract.place)
        signed = steps.invoice(found.contract, period, usages, found.signer)
        invoiced = {one.period for one in self._own_invoices(found)}
        if period in invoiced or period.from_ms < found.own.end.settled_until_ms:
            raise RefusedError("this period was invoiced before", place=found.contract.place)
        self._ledgers.invoice(found.signer.party, key, signed.text())

    def answer(self, key: ContractKey, counted: CountTasks) -> SignedEntry | None:
        """Sign the entry that settles the oldest invoice of the partner; by the buyer.

        An invoice that is wrong is passed over if there is a right one after it.

        Returns:
            The entry; None: no invoice waits, or an entry of this party does.

        Raises:
            RefusedError: the invoices are changed, or not what the contract permits.
        """
        found = self._position(key)
        if not found.is_buyer or self._waits(found):
            return None
        refused: RefusedError | None = None
        for text in found.partner.invoices:
            try:
                invoice = self._read_invoice(found, text)
            except RefusedError as error:
                refused = refused or error
                continue
            if invoice.period.from_ms < found.own.end.settled_until_ms:
                continue  # settled; the partner has not noticed yet
            counts = counted(invoice.period, tuple(one.task for one in invoice.usages))
            book = found.own.end
            half = steps.answer(book, found.contract, invoice, counts, found.signer)
            return self._sign(key, found, half)
        if refused is not None:
            raise refused
        return None

    def pay(self, key: ContractKey, amount: Money, reference: str) -> SignedEntry:
        """Sign that this party has paid the partner.

        Raises:
            RetryError: another entry of this party waits for the partner.
        """
        found = self._position(key)
        half = steps.pay(found.own.end, found.contract, amount, reference, found.signer)
        signed = None if self._waits(found) else self._sign(key, found, half)
        if signed is None:
            raise RetryError(
                f"an entry waits for the signature of {key.partner}",
                place=f"ledger of {key.contract}",
                hint="run it again when the partner has signed it.",
            )
        return signed

    def countersign(
        self, key: ContractKey, expected: SignedEntry | None = None
    ) -> SignedEntry | None:
        """Sign what the partner has signed, and store it; from then on it is owed.

        Args:
            key: partner and contract.
            expected: sign only this entry; None: whichever waits.

        Returns:
            The entry; None: nothing waits, or it waits for an entry of this party.

        Raises:
            RefusedError: it is not what was invoiced, or not what the contract says.
        """
        found = self._position(key)
        half = self._half(key, found)
        if half is None or expected not in (None, half):
            return None
        book = found.own.end
        whole = steps.countersign(
            book, found.contract, half, self._invoiced(found, half), found.signer
        )
        after = book.after(whole.entry, found.contract.agreed[-1].contract.buyer)
        added = self._ledgers.append(
            found.signer.party,
            key,
            whole.text(),
            after,
            waiting=found.own.half if found.is_buyer else None,
        )
        return whole if added else None

    def waiting(self, key: ContractKey) -> SignedEntry | None:
        """The entry that `countersign` would sign, not verified yet; None: there is none."""
        return self._half(key, self._position(key))

    def _half(self, key: ContractKey, found: _Position) -> SignedEntry | None:
        """What the partner has signed for the next place, unless an entry of the buyer waits."""
        if not found.partner.half or (found.is_buyer and self._waits(found)):
            return None
        half = read_entry(found.partner.half, f"ledger of {key.contract}")
        is_old = half.entry.place.number <= found.own.end.count  # not copied by the partner yet
        return None if is_old else half

    def _position(self, key: ContractKey) -> _Position:
        """Read both copies, and copy what the partner has more.

        Raises:
            RefusedError: the contract is wrong or was never agreed on, or the partner's entries
                are not right.
        """
        contract, signer, _ = self.negotiating.read(key)
        if not contract.agreed:
            raise RefusedError("it has no ledger: it was not agreed on", place=contract.place)
        me, theirs = signer.party, ContractKey(signer.party, key.contract)
        own = self._ledgers.read(me, key)
        partner = self._ledgers.read(key.partner, theirs)
        if partner.end.count > own.end.count:
            lines = self._ledgers.entries(key.partner, theirs, partner)
            skipped = own.end.count - partner.start.count
            if skipped < 0:
                raise RefusedError(
                    f"{key.partner} has removed entries that are not in the copy of {me}",
                    place=f"ledger of {key.contract}",
                    hint="ask for its exported file.",
                )
            found = verify(lines[skipped:], own.end, contract, signer.ring, partner.end)
            if found.findings:
                raise RefusedError(
                    f"copy of {key.partner}: {found.findings[0]}",
                    place=f"ledger of {key.contract}",
                )
            self._copy(me, key, own.end, contract, found.entries)
            own = self._ledgers.read(me, key)
        return _Position(contract, signer, own, partner)

    def _copy(
        self,
        me: PartyId,
        key: ContractKey,
        book: Book,
        contract: Negotiation,
        entries: Iterable[SignedEntry],
    ) -> None:
        buyer = contract.agreed[-1].contract.buyer
        for one in entries:
            book = book.after(one.entry, buyer)
            self._ledgers.append(me, key, one.text(), book)

    def _sign(self, key: ContractKey, found: _Position, half: SignedEntry) -> SignedEntry | None:
        own = found.own
        stored = self._ledgers.sign(found.signer.party, key, half.text(), own.end, own.half)
        return half if stored else None

    def _waits(self, found: _Position) -> bool:
        """Whether an entry of this party waits that the partner may sign.

        The partner signs none whose key is revoked by now; it is signed again.
        """
        if not found.own.half:
            return False
        half = read_entry(found.own.half, f"ledger of {found.contract.contract}")
        key = found.signer.ring[found.signer.party].find(half.stamps[0].key)
        return key is not None and not key.is_revoked

    def _invoiced(self, found: _Position, half: SignedEntry) -> steps.Invoice | None:
        """The own invoice that an entry settles."""
        if not isinstance(half.entry, Settlement):
            return None
        period = half.entry.period
        return next((one for one in self._own_invoices(found) if one.period == period), None)

    def _own_invoices(self, found: _Position) -> tuple[steps.Invoice, ...]:
        """The waiting invoices of this party, without those whose key is revoked by now."""
        invoices = []
        for text in found.own.invoices:
            with suppress(RefusedError):
                invoices.append(self._read_invoice(found, text))
        return tuple(invoices)

    def _read_invoice(self, found: _Position, text: str) -> steps.Invoice:
        signed = read_signed(text, f"invoice of {found.contract.contract}")
        return steps.read_invoice(signed, found.contract, found.signer)

    @property
    def _ledgers(self) -> Ledgers:
        return self.negotiating.parties.catalog.ledgers
