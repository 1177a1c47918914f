"""Public keys of participants."""

from collections.abc import Iterable
from dataclasses import dataclass

from brokers.versioned_store import Create
from pipeline.catalog.codec import encode
from pipeline.catalog.contract_records import KeysRecord
from pipeline.catalog.network_steps import put
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import RevisionRecord
from pipeline.catalog.retrying import retrying
from pipeline.contracts.documents.parties import PartyKeys
from pipeline.contracts.terms import PartyId
from pipeline.errors import RefusedError
from pipeline.ids import ParticipantId


@dataclass(frozen=True, slots=True)
class Keys:
    """The public keys of each participant that signs contracts."""

    records: RecordStore

    def get(self, party: PartyId) -> PartyKeys | None:
        """The keys of a participant; None: it has none."""
        return self.of((party,)).get(party)

    def of(self, parties: Iterable[PartyId]) -> dict[PartyId, PartyKeys]:
        """The keys of those participants that have some; one request."""
        wanted = tuple(parties)
        paths = [self.records.znodes.keys(ParticipantId(party)) for party in wanted]
        found = self.records.read_all(KeysRecord, paths)
        return {
            party: PartyKeys(party, record.keys, record.signature)
            for party, record in zip(wanted, found, strict=True)
            if record is not None and record.keys
        }

    def replace(self, before: PartyKeys | None, after: PartyKeys) -> None:
        """Store the keys of a participant; the first time, with its folders of contracts.

        Args:
            before: what was read; None: it had none.
            after: the new keys.

        Raises:
            RefusedError: the keys were changed meanwhile.
        """
        records, znodes = self.records, self.records.znodes
        participant = ParticipantId(after.party)
        path = znodes.keys(participant)

        def step() -> None:
            stored = records.values(
                path, znodes.contracts(participant), znodes.ledgers(participant)
            )
            found = stored.record(KeysRecord, path)
            keys = before.keys if before else ()
            if (found.keys if found else ()) != keys:
                raise RefusedError(
                    "its keys were changed meanwhile",
                    place=f"participant {participant}",
                    hint="run it again.",
                )
            value = encode(KeysRecord(after.party, after.keys, after.signature))
            missing = {
                znodes.contracts(participant): encode(RevisionRecord(0)),
                znodes.ledgers(participant): b"",
            }
            created = [Create(one, v) for one, v in missing.items() if one not in stored]
            records.store.apply((put(path, value, stored.get(path)), *created))

        retrying(step, f"participant {participant}")
