"""Contracts: the signed documents of each party, below its own path.

A step adds one document. It checks that neither party has changed any of its contracts since the
documents were read: so of an acceptance and a withdrawal at the same time only one is stored, and
no party needs the right to write below the path of another one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from brokers.versioned_store import Check, Operation, Versioned
from pipeline.catalog.codec import decode, encode
from pipeline.catalog.contract_records import ContractRecord
from pipeline.catalog.network_steps import bump, put
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.retrying import LOST
from pipeline.contracts.terms import ContractId, PartyId
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import ParticipantId

CONTRACTS_MAX: Final = 1_000
"""Contracts of a participant, with those that have ended."""


@dataclass(frozen=True, slots=True, order=True)
class ContractKey:
    """A contract from the view of one party: its partner, and the name that they gave it."""

    partner: PartyId
    contract: ContractId

    def __str__(self) -> str:
        return f"{self.partner}.{self.contract}"


@dataclass(frozen=True, slots=True)
class StoredContract:
    """The documents of a contract as they were read, with the versions for the next step.

    Args:
        party: from whose view.
        key: partner and name.
        documents: of both parties, as text.
        own: the stored value of the party's own documents; None: it has signed none.
        folders: the folders of both parties, by path.
    """

    party: PartyId
    key: ContractKey
    documents: tuple[str, ...]
    own: Versioned | None
    folders: Mapping[str, Versioned]


@dataclass(frozen=True, slots=True)
class Contracts:
    """The contracts of each participant."""

    records: RecordStore

    def keys_of(self, party: PartyId) -> tuple[ContractKey, ...]:
        """All contracts of a party, also those that only its partners have signed; two requests."""
        znodes = self.records.znodes
        others = [one for one in self.records.participants() if one != ParticipantId(party)]
        folders = [znodes.contracts(ParticipantId(party)), *map(znodes.contracts, others)]
        own, *theirs = self.records.store.children_all(folders)
        found = {_key(name) for name in own}
        for partner, names in zip(others, theirs, strict=True):
            for key in map(_key, names):
                if key.partner == party:
                    found.add(ContractKey(PartyId(partner), key.contract))
        return tuple(sorted(found))

    def read(self, party: PartyId, key: ContractKey) -> StoredContract:
        """The documents of a contract; one request. Without documents, there is no such contract.

        Raises:
            RefusedError: one of the parties has no keys, so it signs nothing.
        """
        znodes = self.records.znodes
        me, partner = ParticipantId(party), ParticipantId(key.partner)
        folders = znodes.contracts(me), znodes.contracts(partner)
        own = znodes.contract(me, key.partner, key.contract)
        theirs = znodes.contract(partner, party, key.contract)
        stored = self.records.values(*folders, own, theirs)  # the folders first: a step checks them
        for participant, folder in zip((me, partner), folders, strict=True):
            if folder not in stored:
                raise RefusedError(
                    f"participant {participant} has no key to sign contracts",
                    place=f"contract {key.contract}",
                    hint=f"`medusa participant init`, by {participant}, makes one.",
                )
        documents = tuple(
            document
            for path in (own, theirs)
            if (record := stored.record(ContractRecord, path)) is not None
            for document in record.documents
        )
        return StoredContract(
            party, key, documents, stored.get(own), {path: stored[path] for path in folders}
        )

    def add(self, before: StoredContract, document: str) -> None:
        """Add a document that the party has signed, if nothing was changed since `before`.

        Raises:
            RetryError: one of the parties has changed a contract meanwhile; nothing was changed.
            RefusedError: there are too many contracts.
        """
        records, znodes = self.records, self.records.znodes
        party, key = ParticipantId(before.party), before.key
        path = znodes.contract(party, key.partner, key.contract)
        folder = znodes.contracts(party)
        signed = self._documents(before, path)
        if not signed and len(records.store.children(folder)) >= CONTRACTS_MAX:
            raise RefusedError(f"{party} has {CONTRACTS_MAX} contracts", place=f"contract {key}")
        record = ContractRecord(key.contract, before.party, key.partner, (*signed, document))
        theirs = znodes.contracts(ParticipantId(key.partner))
        operations: tuple[Operation, ...] = (
            bump(folder, before.folders[folder]),
            put(path, encode(record), before.own),
            Check(theirs, before.folders[theirs].version),
        )
        try:
            records.store.apply(operations)
        except LOST as error:
            raise RetryError(
                "a contract of the two participants was changed meanwhile; nothing was done",
                place=f"contract {key.contract}",
                hint="look at it with `medusa contract show`, and run it again.",
            ) from error

    def _documents(self, before: StoredContract, path: str) -> tuple[str, ...]:
        if before.own is None:
            return ()
        return decode(ContractRecord, before.own.value, path, self.records.newest).documents


def _key(name: str) -> ContractKey:
    """The key of a name in a folder of contracts or ledgers."""
    partner, _, contract = name.partition(".")
    return ContractKey(PartyId(partner), ContractId(contract))
