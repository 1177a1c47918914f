"""Ledgers of a participant: verification of both copies, statements, accounts, files."""

from dataclasses import dataclass
from decimal import Decimal

from pipeline.catalog.contracts import ContractKey
from pipeline.catalog.ledgers import StoredLedger
from pipeline.contracts.documents.parties import KeyRing
from pipeline.contracts.ledger.book import Book
from pipeline.contracts.ledger.file import LedgerFile, verify_file
from pipeline.contracts.ledger.statements import Account, Statement, accounts, statement
from pipeline.contracts.ledger.verify import Finding, Verified, verify
from pipeline.contracts.negotiation.chain import Negotiation
from pipeline.contracts.terms import PartyId
from pipeline.errors import RefusedError
from pipeline.operations.contracts.negotiating import Negotiating


@dataclass(frozen=True, slots=True)
class Copy:
    """A party's copy of a ledger.

    Args:
        party: whose.
        stored: its state.
        lines: its entries as text.
        verified: the result of its verification.
    """

    party: PartyId
    stored: StoredLedger
    lines: tuple[str, ...]
    verified: Verified


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger of a contract.

    Args:
        contract: the contract.
        own: the participant's copy.
        partner: the partner's copy.
        statement: totals of the participant's verified entries.
        problems: what is wrong, each in one line; empty: nothing is.
    """

    contract: Negotiation
    own: Copy
    partner: Copy
    statement: Statement
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ledgers:
    """The ledgers of a participant's contracts."""

    negotiating: Negotiating

    def read(self, key: ContractKey) -> Ledger:
        """Verify both copies of a ledger, and compare them.

        Raises:
            RefusedError: the contract was never agreed on, or its documents are wrong.
        """
        contract, ring = self._contract(key)
        me = self.negotiating.parties.party
        own = self._copy(me, key, contract, ring)
        mirrored = ContractKey(me, key.contract)
        partner = self._copy(key.partner, mirrored, contract, ring)
        problems = [*_problems(own), *_problems(partner), *_compared(own, partner)]
        entries = [one.entry for one in own.verified.entries]
        buyer = contract.agreed[-1].contract.buyer
        opening = own.stored.start.owed
        totals = statement(entries, buyer, opening.amount if opening else Decimal(0))
        return Ledger(contract, own, partner, totals, tuple(problems))

    def accounts(self) -> tuple[tuple[Account, ...], tuple[str, ...]]:
        """What is owed between the participant and each partner, by currency; and what is wrong.

        What was owed for entries that were removed from the catalog is the opening balance. A
        contract whose documents are wrong owes nothing; it is among what is wrong.
        """
        rows, problems = [], []
        for listed in self.negotiating.list():
            if listed.contract is None:
                problems.append(f"contract {listed.key}: {listed.problem}")
            if listed.contract is None or not listed.contract.agreed:
                continue
            found = self.read(listed.key)
            problems += [f"ledger of {listed.key}: {one}" for one in found.problems]
            terms = found.contract.agreed[-1].contract
            rows.append((terms.buyer, terms.seller, terms.price.currency, found.statement))
        return accounts(rows), tuple(problems)

    def file(self, key: ContractKey) -> LedgerFile:
        """The participant's copy as a file.

        Raises:
            RefusedError: it is not right; nothing is exported then.
        """
        contract, ring = self._contract(key)
        own = self._copy(self.negotiating.parties.party, key, contract, ring)
        if own.verified.findings:
            raise RefusedError(
                f"{own.verified.findings[0]}",
                place=f"ledger of {key.contract}",
                hint=f"`medusa ledger verify {key.contract}` names all mistakes.",
            )
        return LedgerFile(own.stored.start, own.stored.end, own.lines)

    def check_file(self, key: ContractKey, file: LedgerFile) -> tuple[Finding, ...]:
        """Verify a file against the contract, and with the state that the catalog has, if it can.

        The state before its first entry is known of a ledger from its beginning, and of one that
        begins where the catalog's copy does; else it is that of the file.
        """
        contract, ring = self._contract(key)
        if file.end.contract != key.contract:
            raise RefusedError(
                f"the file is the ledger of {file.end.contract}", place=f"contract {key.contract}"
            )
        me = self.negotiating.parties.party
        stored = self.negotiating.parties.catalog.ledgers.read(me, key)
        known = {0: Book(key.contract), stored.start.count: stored.start}
        start = known.get(file.start.count, file.start)
        findings = list(verify_file(file, start, contract, ring))
        if file.end.count > stored.end.count:
            text = f"the copy of {me} in the catalog ends before it, with entry {stored.end.count}"
            findings.append(Finding(stored.end.count + 1, text))
        elif file.end.count == stored.end.count and file.end != stored.end:
            findings.append(Finding(file.end.count, "the catalog has another last entry"))
        return tuple(findings)

    def _contract(self, key: ContractKey) -> tuple[Negotiation, KeyRing]:
        contract, signer, _ = self.negotiating.read(key)
        if not contract.agreed:
            raise RefusedError(
                f"it is {contract.at(signer.now_ms).state.value}, so it has no ledger",
                place=contract.place,
            )
        return contract, signer.ring

    def _copy(self, party: PartyId, key: ContractKey, contract: Negotiation, ring: KeyRing) -> Copy:
        ledgers = self.negotiating.parties.catalog.ledgers
        stored = ledgers.read(party, key)
        lines = ledgers.entries(party, key, stored)
        return Copy(party, stored, lines, verify(lines, stored.start, contract, ring, stored.end))


def _problems(copy: Copy) -> list[str]:
    found = [f"copy of {copy.party}: {one}" for one in copy.verified.findings]
    if not found and copy.verified.book != copy.stored.end:
        found.append(f"copy of {copy.party}: its recorded balance is not that of its entries")
    return found


def _compared(own: Copy, partner: Copy) -> list[str]:
    """Where two copies have different entries of one number; one may be behind the other."""
    theirs = {one.entry.place.number: one.text() for one in partner.verified.entries}
    return [
        f"entry {one.entry.place.number}: the two copies differ"
        for one in own.verified.entries
        if theirs.get(one.entry.place.number, one.text()) != one.text()
    ]
