"""Records of keys, contracts and ledgers; signed documents are stored as the text that was signed.

Each participant writes below its own path only: its keys, the documents that it signed, its copies
of ledgers. It reads those of its partners.
"""

from dataclasses import dataclass

from pipeline.catalog.records import Record
from pipeline.contracts.documents.keys import Signature
from pipeline.contracts.documents.parties import PartyKey
from pipeline.contracts.terms import ContractId, PartyId


@dataclass(frozen=True, slots=True)
class KeysRecord(Record):
    """The public keys of a participant, the oldest first, signed by the last one."""

    participant: PartyId
    keys: tuple[PartyKey, ...]
    signature: Signature


@dataclass(frozen=True, slots=True)
class ContractRecord(Record):
    """The documents of a contract that one of its parties has signed, in their order.

    Args:
        contract: its name.
        party: who signed them.
        partner: the other party.
        documents: each with its signature, in canonical JSON.
    """

    contract: ContractId
    party: PartyId
    partner: PartyId
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LedgerRecord(Record):
    """How far a party's copy of a ledger is.

    Args:
        contract: its name.
        party: whose copy.
        partner: the other party.
        start: state before the first stored entry, in canonical JSON: earlier ones were removed.
        end: state after the last entry.
        invoices: invoices of this party that are not settled, signed, the oldest first.
        half: entry that only this party has signed; empty: there is none.
    """

    contract: ContractId
    party: PartyId
    partner: PartyId
    start: str
    end: str
    invoices: tuple[str, ...] = ()
    half: str = ""


@dataclass(frozen=True, slots=True)
class EntryRecord(Record):
    """An entry of a ledger, with both signatures, in canonical JSON."""

    entry: str
