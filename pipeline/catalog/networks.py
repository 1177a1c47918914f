"""Networks: deploy, remove, and the revision that counts every change of them."""

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
"""Versions that one step removes; the rest of a long history goes in steps before it."""


@dataclass(frozen=True, slots=True)
class Networks:
    """The deployed networks."""

    records: RecordStore

    def revision(self, participant: ParticipantId) -> int:
        """Counts each deploy, removal and change of a desired state of a participant's networks."""
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
        known: tuple[FragmentRecord, ...] = (),
    ) -> None:
        """Make a version the wanted one, in one atomic step.

        Fragments whose record is unchanged are not touched; those that are not among `fragments`
        are removed.

        Args:
            network: the network as it is to be; names the new version.
            version: the new version; it must not exist.
            fragments: all fragments that there are to be.
            expected_version: what the plan was made against; None: not deployed.
            known: the fragments that it was made against, as far as they are not to have changed.

        Raises:
            RetryError: somebody else changed the network since the plan was made.
            RefusedError: the document and its schemas are too large for the catalog.
        """
        name, records = network.network, self.records
        path = records.znodes.network(name)

        def step() -> None:
            stored = read_network(records, name)
            current = stored.values.record(NetworkRecord, path)
            check_expected(current, expected_version, network.life, f"network {name}")
            check_unmoved(stored.fragments, known, f"network {name}")
            operations = deploy_step(records.znodes, stored, network, version, fragments)
            records.store.apply(operations)

        retrying(step, f"network {name}")

    def remove(self, network: NetworkId, expected: NetworkRecord | None = None) -> bool:
        """End a network's life: remove it with its versions, fragments, owners and statuses.

        False if there is none. `expected`: as it was when that was decided; if it was deployed
        since, RetryError. A very long history goes first, in steps of its own; the rest is one
        step. The counters of epochs stay: a later deploy under this name goes on after them.
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
    of_fragment = (znodes.fragment, znodes.owner, znodes.status, znodes.started)
    below = (path(network, name) for name in names for path in of_fragment)
    found = records.values(of_network, znodes.versions(network), znodes.fragments(network), *below)
    paths = {name: znodes.fragment(network, name) for name in names}
    fragments = {name: found[path] for name, path in paths.items() if path in found}
    return StoredNetwork(revision, found.get(of_network), fragments, found)


def not_deployed(records: RecordStore, network: NetworkId) -> RefusedError:
    """The refusal of a network that is not deployed; its hint names those that are."""
    there = ", ".join(str(one.network) for one in Networks(records).of(network.participant))
    return RefusedError(
        "it is not deployed", place=f"network {network}", hint=f"deployed are: {there or 'none'}."
    )
