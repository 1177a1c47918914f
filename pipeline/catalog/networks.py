"""Network records: deploy, removal, and the revision counter of all changes."""

from dataclasses import dataclass
from typing import Final

from brokers.versioned_store import Delete
from pipeline.catalog.network_steps import (
    StoredNetwork,
    check_expected,
    check_unchanged,
    check_unmoved,
    deploy_step,
    remove_step,
)
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import (
    FragmentRecord,
    NetworkRecord,
    NetworkVersionRecord,
    RevisionRecord,
)
from pipeline.catalog.retrying import retrying
from pipeline.errors import RefusedError
from pipeline.ids import NetworkId, NetworkVersion, ParticipantId

VERSIONS_PER_STEP_MAX: Final = 200
"""Versions removed in one step; the rest of a long history is removed in earlier steps."""


@dataclass(frozen=True, slots=True)
class Networks:
    """The deployed networks."""

    records: RecordStore

    def revision(self, participant: ParticipantId) -> int:
        """Number of deploys, removals and changes of desired states of a participant's networks."""
        path = self.records.znodes.networks(participant)
        found = self.records.read(RevisionRecord, path)
        return 0 if found is None else found.revision

    def get(self, network: NetworkId) -> NetworkRecord | None:
        """One network; None if it is not deployed."""
        return self.records.read(NetworkRecord, self.records.znodes.network(network))

    def of(self, participant: ParticipantId) -> tuple[NetworkRecord, ...]:
        """The deployed networks of a participant, by name; two requests."""
        return self.records.read_below(NetworkRecord, self.records.znodes.networks(participant))

    def deploy(
        self,
        network: NetworkRecord,
        version: NetworkVersionRecord,
        fragments: tuple[FragmentRecord, ...],
        expected_version: NetworkVersion | None,
        expected_fragments: tuple[FragmentRecord, ...] = (),
    ) -> None:
        """Deploy a version, in one atomic step.

        Fragments with unchanged records are not written; those missing in `fragments` are removed.

        Args:
            network: the new record of the network; names the new version.
            version: the new version; it must not exist.
            fragments: the new records of all fragments.
            expected_version: the version that the plan was computed against; None: not deployed.
            expected_fragments: records of that version that must not have changed.

        Raises:
            RetryError: the network was changed since the plan was computed.
            RefusedError: the document and its schemas are too large for the catalog.
        """
        name, records = network.network, self.records
        path = records.znodes.network(name)

        def step() -> None:
            stored = read_network(records, name)
            current = stored.values.record(NetworkRecord, path)
            check_expected(current, expected_version, network.life, f"network {name}")
            check_unmoved(stored.fragments, expected_fragments, f"network {name}")
            operations = deploy_step(records.znodes, stored, network, version, fragments)
            records.store.apply(operations)

        retrying(step, f"network {name}")

    def remove(self, network: NetworkId, expected: NetworkRecord | None = None) -> bool:
        """Remove a network with its versions, fragments, owners and statuses; ends its life.

        False if it is not deployed. `expected`: the record when the removal was decided; if it was
        deployed since, RetryError. A very long history is removed first, in separate steps; the
        rest is one step. Epoch counters stay: a later deploy of this name continues them.
        """
        store, znodes = self.records.store, self.records.znodes
        path = znodes.network(network)

        def step() -> bool:
            stored = read_network(self.records, network)
            if stored.network is None:
                return False
            check_unchanged(stored.values.record(NetworkRecord, path), expected)
            versions = self.records.values(*self.records.paths_below(znodes.versions(network)))
            old = tuple(sorted(versions)[:-VERSIONS_PER_STEP_MAX])
            for first in range(0, len(old), VERSIONS_PER_STEP_MAX):
                part = old[first : first + VERSIONS_PER_STEP_MAX]
                store.apply(tuple(Delete(one, versions.pop(one).version) for one in part))
            store.apply(remove_step(znodes, stored, network, versions))
            return True

        return retrying(step, f"network {network}")


def read_network(records: RecordStore, network: NetworkId) -> StoredNetwork:
    """Read a network for a step; three requests. The revision is read first: the step checks it.

    Raises:
        RefusedError: the catalog is not set up.
    """
    znodes = records.znodes
    folder = znodes.networks(network.participant)
    revision = records.values(folder).required(folder)
    names = [one.fragment for one in records.fragment_ids((network,))]
    of_network = znodes.network(network)
    of_fragment = (
        *(znodes.fragment, znodes.owner, znodes.status, znodes.started),
        znodes.trim,
    )
    below = (path(network, name) for name in names for path in of_fragment)
    found = records.values(of_network, znodes.versions(network), znodes.fragments(network), *below)
    paths = {name: znodes.fragment(network, name) for name in names}
    fragments = {name: found[path] for name, path in paths.items() if path in found}
    return StoredNetwork(revision, found.get(of_network), fragments, found)


def not_deployed(records: RecordStore, network: NetworkId) -> RefusedError:
    """Error for a network that is not deployed; its hint names the deployed ones."""
    names = ", ".join(str(one.network) for one in Networks(records).of(network.participant))
    return RefusedError(
        "it is not deployed", place=f"network {network}", hint=f"deployed are: {names or 'none'}."
    )
