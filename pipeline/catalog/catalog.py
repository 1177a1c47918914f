"""The catalog: one object per aggregate, all on one versioned store.

A step that loses a compare-and-set is retried from its reads, a limited number of times; after that
it raises `RetryError`. Every method raises `UnavailableError` when the store does not answer, and
`NewerFormatError` when it reads a record of a newer version of Medusa. A change that raises
`UnavailableError` may have been applied or not: read again to decide.
"""

from brokers.versioned_store import VersionedStore
from pipeline.catalog.contracts import Contracts
from pipeline.catalog.deploys import Deploys
from pipeline.catalog.drains import Drains
from pipeline.catalog.formats import CatalogFormat
from pipeline.catalog.fragment_owners import Owners
from pipeline.catalog.fragments import Fragments
from pipeline.catalog.ledgers import Ledgers
from pipeline.catalog.missing_schemas import MissingSchemas
from pipeline.catalog.networks import Networks
from pipeline.catalog.node_loads import NodeLoads
from pipeline.catalog.nodes import Nodes
from pipeline.catalog.party_keys import Keys
from pipeline.catalog.read_snapshot import read_snapshot
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.snapshot import CatalogSnapshot
from pipeline.catalog.standbys import Standbys
from pipeline.catalog.starts import Starts
from pipeline.catalog.statuses import Statuses
from pipeline.catalog.transfers import Transfers
from pipeline.catalog.trims import Trims
from pipeline.catalog.versions import Versions
from pipeline.formats import NEWEST
from pipeline.ids import ParticipantId
from pipeline.names import Znodes


class Catalog:
    """Catalog of all participants. Thread-safe if the store is.

    `newest` is the newest format that the program can read.
    """

    def __init__(self, store: VersionedStore, znodes: Znodes, newest: int = NEWEST) -> None:
        self.store = store
        self._records = records = RecordStore(store, znodes, newest)
        self.format = CatalogFormat(records)
        self.nodes = Nodes(records)
        self.loads = NodeLoads(records)
        self.drains = Drains(records)
        self.transfers = Transfers(records)
        self.standbys = Standbys(records)
        self.trims = Trims(records)
        self.networks = Networks(records)
        self.versions = Versions(records)
        self.fragments = Fragments(records)
        self.deploys = Deploys(records)
        self.owners = Owners(records)
        self.starts = Starts(records)
        self.statuses = Statuses(records)
        self.missing_schemas = MissingSchemas(records)
        self.keys = Keys(records)
        self.contracts = Contracts(records)
        self.ledgers = Ledgers(records)

    def snapshot(self, participant: ParticipantId) -> CatalogSnapshot:
        """The fragments of a participant with owners, and its nodes; see `read_snapshot`."""
        return read_snapshot(self._records, participant)

    def participants(self) -> tuple[ParticipantId, ...]:
        """All participants, by name; one request."""
        return self._records.participants()
