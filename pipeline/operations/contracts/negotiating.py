"""Negotiation of contracts over the catalog: read, verify, sign, store."""

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.catalog.contracts import ContractKey, StoredContract
from pipeline.contracts.agreement import Agreement
from pipeline.contracts.documents.signed import Signed, read_signed
from pipeline.contracts.negotiation.chain import Negotiation, read_chain
from pipeline.contracts.negotiation.states import State
from pipeline.contracts.negotiation.steps import (
    Signer,
    accept,
    cancel,
    counter,
    propose,
    renew,
)
from pipeline.contracts.terms import Kind, PartyId
from pipeline.errors import MedusaError, RefusedError
from pipeline.nearest import nearest_first
from pipeline.network.boxes.traits import KINDS
from pipeline.operations.contracts.parties import Confirm, Parties

Step = Callable[[Negotiation, Signer], tuple[Signed, Negotiation]]


@dataclass(frozen=True, slots=True)
class Listed:
    """A contract in a list.

    Args:
        key: partner and name.
        contract: its state; None: its documents cannot be verified.
        problem: why; empty: they are right.
    """

    key: ContractKey
    contract: Negotiation | None
    problem: str


@dataclass(frozen=True, slots=True)
class Negotiating:
    """The contracts of a participant.

    Args:
        parties: its keys and those of its partners.
        confirm: asks about a partner's key that is seen for the first time.
    """

    parties: Parties
    confirm: Confirm

    def find(self, name: str) -> ContractKey:
        """The contract of a name, or of `PARTNER.NAME`.

        Raises:
            RefusedError: there is none, or there are several.
        """
        keys = self.parties.catalog.contracts.keys_of(self.parties.party)
        found = [key for key in keys if name in {key.contract, str(key)}]
        if len(found) == 1:
            return found[0]
        place = f"contract {name}"
        if found:
            names = ", ".join(map(str, found))
            raise RefusedError("several partners use this name", place=place, hint=f"say {names}.")
        there = ", ".join(nearest_first(name, [key.contract for key in keys]))
        raise RefusedError(
            "there is no such contract", place=place, hint=f"there is: {there or 'none'}."
        )

    def read(self, key: ContractKey) -> tuple[Negotiation, Signer, StoredContract]:
        """Verify a contract; returns its state, who may sign the next document, and what is stored.

        Raises:
            RefusedError: a document is changed, missing, or not the partner's.
        """
        parties = self.parties
        ring = parties.ring((key.partner,), self.confirm)
        stored = parties.catalog.contracts.read(parties.party, key)
        now_ms = parties.clock.now_ms()
        documents = [read_signed(one, f"contract {key.contract}") for one in stored.documents]
        found = read_chain(key.contract, documents, ring, now_ms)
        signer = Signer(parties.party, parties.own_key(), ring, now_ms)
        return found, signer, stored

    def list(self) -> tuple[Listed, ...]:
        """All contracts, now; a wrong one does not hide the others."""
        found = []
        for key in self.parties.catalog.contracts.keys_of(self.parties.party):
            try:
                contract, signer, _ = self.read(key)
                found.append(Listed(key, contract.at(signer.now_ms), ""))
            except MedusaError as error:
                if error.external:
                    raise
                found.append(Listed(key, None, error.message))
        return tuple(found)

    def propose(self, terms: Agreement, answer_within_ms: int) -> Negotiation:
        """Propose a new contract to the other party of the terms."""
        key = ContractKey(self._partner(terms), terms.contract.id)
        return self._step(key, lambda now, who: propose(now, terms, who, answer_within_ms))

    def counter(self, terms: Agreement, answer_within_ms: int) -> Negotiation:
        """Answer a proposal with other terms."""
        key = ContractKey(self._partner(terms), terms.contract.id)
        return self._step(key, lambda now, who: counter(now, terms, who, answer_within_ms))

    def renew(self, terms: Agreement, answer_within_ms: int) -> Negotiation:
        """Propose other terms for an active contract."""
        key = ContractKey(self._partner(terms), terms.contract.id)
        return self._step(key, lambda now, who: renew(now, terms, who, answer_within_ms))

    def accept(self, key: ContractKey) -> Negotiation:
        """Accept the proposal of the partner."""
        return self._step(key, accept)

    def cancel(self, key: ContractKey, reason: str) -> Negotiation:
        """Withdraw or reject a proposal, or end a contract after its notice."""
        return self._step(key, lambda now, who: cancel(now, who, reason))

    def _step(self, key: ContractKey, step: Step) -> Negotiation:
        before, signer, stored = self.read(key)
        signed, after = step(before, signer)
        self.parties.catalog.contracts.add(stored, signed.text())
        return after

    def _partner(self, terms: Agreement) -> PartyId:
        """The other party of terms that this participant may propose."""
        contract, me = terms.contract, self.parties.party
        place = f"contract {contract.id}"
        if me not in (contract.buyer, contract.seller):
            raise RefusedError(
                f"{me} is no party of it",
                place=place,
                hint="it is between its buyer and its seller; `--set participant=NAME` says who "
                "you are.",
            )
        if contract.kind is not Kind.LOAD:
            raise RefusedError(
                f"this version of Medusa carries out contracts of kind load, not {contract.kind}",
                place=place,
            )
        unknown = sorted(contract.tasks.boxes - KINDS.keys())
        if unknown:
            there = ", ".join(nearest_first(unknown[0], sorted(KINDS)))
            raise RefusedError(
                f"there is no kind of box {unknown[0]}", place=place, hint=f"there is: {there}."
            )
        return contract.seller if me == contract.buyer else contract.buyer


def existing(contract: Negotiation) -> Negotiation:
    """A contract that has documents.

    Raises:
        RefusedError: it has none.
    """
    if contract.state is State.ABSENT:
        raise RefusedError("there is no such contract", place=contract.place)
    return contract
