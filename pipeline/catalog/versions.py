"""Versions of networks: documents with the schemas and code that were deployed with them."""

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import NetworkRecord, NetworkVersionRecord
from pipeline.ids import NetworkId, NetworkVersion, ParticipantId


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of all networks; a version is immutable."""

    records: RecordStore

    def get(self, network: NetworkId, version: NetworkVersion) -> NetworkVersionRecord | None:
        """One version of a network; None if it does not exist."""
        path = self.records.znodes.version(network, version)
        return self.records.read(NetworkVersionRecord, path)

    def of(self, network: NetworkId, numbers: Iterable[int]) -> tuple[NetworkVersionRecord, ...]:
        """Those of some versions of a network that exist; one request."""
        paths = [self.records.znodes.version(network, number) for number in numbers]
        found = self.records.read_all(NetworkVersionRecord, paths)
        return tuple(record for record in found if record is not None)

    def deployed(
        self, participant: ParticipantId | None = None
    ) -> tuple[tuple[NetworkRecord, NetworkVersionRecord | None], ...]:
        """Every network with its deployed version, by participant and name; four requests.

        `participant`: only those of one; None: those of all.
        """
        records, znodes = self.records, self.records.znodes
        owners = records.participants() if participant is None else (participant,)
        networks = records.read_below(NetworkRecord, *map(znodes.networks, owners))
        paths = [znodes.version(record.network, record.version) for record in networks]
        return tuple(zip(networks, records.read_all(NetworkVersionRecord, paths), strict=True))
