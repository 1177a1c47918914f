"""The catalog on a versioned store: reads records, asks `steps.py` what to do, applies it.

A step that lost a race is tried again from reading, a few times; what then still loses is
`RetryError`. Every method raises `UnavailableError` when the store does not answer, and
`NewerFormatError` when a newer version of Medusa wrote what is read. After an `UnavailableError` of
a change it is open whether it was done: read to find out.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from brokers.versioned_store import (
    Create,
    Delete,
    Operation,
    PathExistsError,
    Set,
    Versioned,
    VersionedStore,
)
from pipeline.catalog.codec import R, decode, encode
from pipeline.catalog.formats import registration, written_format
from pipeline.catalog.later_topics import LaterTopics
from pipeline.catalog.missing import MissingSchemas
from pipeline.catalog.records import (
    DeployRecord,
    DesiredState,
    EpochRecord,
    FormatRecord,
    FragmentRecord,
    FragmentStatus,
    NetworkRecord,
    NetworkVersionRecord,
    NodeRecord,
    OwnerRecord,
    ParticipantRecord,
    RevisionRecord,
)
from pipeline.catalog.retrying import LOST, retrying
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.catalog.starts import Starts
from pipeline.catalog.steps import (
    Claim,
    StoredFragment,
    StoredNetwork,
    begun_deploys,
    bump,
    check_claimable,
    check_expected,
    check_participant,
    check_unchanged,
    check_unmoved,
    claim_step,
    deploy_step,
    name_taken,
    next_epoch,
    no_fragment,
    not_deployed,
    put,
    remove_step,
)
from pipeline.errors import FencedError, RefusedError, RetryError
from pipeline.formats import NEWEST
from pipeline.ids import (
    NO_EPOCH,
    Epoch,
    FragmentName,
    Millis,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
    TopicName,
)
from pipeline.names import Znodes

VERSIONS_PER_STEP_MAX: Final = 200
"""Versions that one step removes; the rest of a long history goes in steps before it."""


class Catalog:
    """All that nodes and commands share. Safe to use from several threads if the store is.

    `newest` is the newest format that the program understands.
    """

    def __init__(self, store: VersionedStore, znodes: Znodes, newest: int = NEWEST) -> None:
        self._store = store
        self._znodes = znodes
        self.newest = newest
        self.missing = MissingSchemas(store, znodes)
        self.starts = Starts(store, znodes)
        self.later_topics = LaterTopics(store, znodes)

    @property
    def suspended(self) -> bool:
        """Whether the session is in doubt, so that nothing may be decided on what was read."""
        return self._store.suspended

    @property
    def session(self) -> int:
        """Changes when the session was lost; the node then has to be registered again."""
        return self._store.session

    def ensure_format(self) -> None:
        """Set the catalog up if it is new, and make sure that this version can read it.

        Raises:
            NewerFormatError: it is written in a format that this version does not understand.
        """
        znodes = self._znodes
        if self._get(FormatRecord, znodes.format()) is not None:
            return
        if znodes.root:
            self._store.make_parents(znodes.root)
        folders = (
            znodes.participants(),
            znodes.nodes(),
            znodes.epochs(),
            znodes.missing_schemas(),
            znodes.missing_guids(),
            znodes.deploys(),
        )
        try:
            self._store.apply(
                (
                    Create(znodes.format(), encode(FormatRecord(self.newest))),
                    Create(znodes.networks(), encode(RevisionRecord(0))),
                    *(Create(folder, b"") for folder in folders),
                )
            )
        except PathExistsError:
            if self._get(FormatRecord, znodes.format()) is None:
                raise

    def format(self) -> int:
        """The newest format in which anything may be written."""
        return written_format(self._store, self._znodes, self.newest)

    # --- participants and nodes -----------------------------------------------------------------

    def add_participant(self, record: ParticipantRecord) -> None:
        """Make a participant known; one that is known stays as it is."""
        try:
            path = self._znodes.participant(record.participant)
            self._store.apply((Create(path, encode(record)),))
        except PathExistsError:
            return

    def participant(self, participant: ParticipantId) -> ParticipantRecord | None:
        """One participant; None if it is not known."""
        return self._get(ParticipantRecord, self._znodes.participant(participant))

    def participants(self) -> tuple[ParticipantRecord, ...]:
        """All participants, by name."""
        names = self._store.children(self._znodes.participants())
        found = (self.participant(ParticipantId(name)) for name in names)
        return tuple(record for record in found if record is not None)

    def register_node(self, record: NodeRecord, replaces: NodeRecord | None = None) -> None:
        """Say that a node is up, for as long as the store's session lives.

        Registering the same process again, in a new session too, renews it.

        Args:
            record: the node.
            replaces: an earlier life of the node of which the caller knows that it ended, although
                its session still seems alive.

        Raises:
            RefusedError: another process is up under this name; says which.
            NewerFormatError: the catalog is too new for this version.
        """
        path = self._znodes.node(record.node)
        value = encode(record)

        def step() -> None:
            steps = list(registration(self._store, self._znodes, self.newest))
            found = self._store.get(path)
            if found is not None:
                there = decode(NodeRecord, found.value, path)
                if there not in (record, replaces):
                    raise name_taken(there)
                steps.append(Delete(path, found.version))
            self._store.apply((*steps, Create(path, value, ephemeral=True)))

        retrying(step, f"node {record.node}")

    def node(self, node: NodeId) -> NodeRecord | None:
        """One node; None if it is not up."""
        return self._get(NodeRecord, self._znodes.node(node))

    def nodes(self) -> tuple[NodeRecord, ...]:
        """The nodes that are up, by name."""
        found = (self.node(name) for name in self.node_names())
        return tuple(record for record in found if record is not None)

    def node_names(self) -> tuple[NodeId, ...]:
        """The names of the nodes that are up, sorted; one cheap read."""
        return tuple(NodeId(name) for name in self._store.children(self._znodes.nodes()))

    # --- networks -------------------------------------------------------------------------------

    def revision(self) -> int:
        """Counts every deploy, removal and change of a desired state; one cheap read."""
        found = self._get(RevisionRecord, self._znodes.networks())
        return 0 if found is None else found.revision

    def networks(self) -> tuple[NetworkRecord, ...]:
        """All deployed networks, by name."""
        names = self._store.children(self._znodes.networks())
        found = (self.network(NetworkName(name)) for name in names)
        return tuple(record for record in found if record is not None)

    def network(self, network: NetworkName) -> NetworkRecord | None:
        """One network; None if it is not deployed."""
        return self._get(NetworkRecord, self._znodes.network(network))

    def version(self, network: NetworkName, version: NetworkVersion) -> NetworkVersionRecord | None:
        """One version of a network; None if there is none."""
        return self._get(NetworkVersionRecord, self._znodes.version(network, version))

    def fragments(self, network: NetworkName) -> tuple[FragmentRecord, ...]:
        """The fragments of a network, by name; none if it is not deployed."""
        found = (self.fragment(network, name) for name in self._fragment_names(network))
        return tuple(record for record in found if record is not None)

    def fragment(self, network: NetworkName, fragment: FragmentName) -> FragmentRecord | None:
        """One fragment; None if there is none."""
        return self._get(FragmentRecord, self._znodes.fragment(network, fragment))

    def snapshot(self) -> CatalogSnapshot:
        """Every fragment with its owner, and the nodes that are up.

        Raises:
            NewerFormatError: the catalog was raised beyond this version meanwhile.
        """
        self.format()
        alive = frozenset(record.node for record in self.nodes())
        fragments = (
            Deployed(network, record, self.owner(record.network, record.fragment))
            for network in self.networks()
            for record in self.fragments(network.network)
        )
        return CatalogSnapshot(alive, tuple(fragments))

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
        name = network.network

        def step() -> None:
            stored = self._stored(name)
            current = self._decoded(NetworkRecord, stored.network, self._znodes.network(name))
            check_expected(current, expected_version, network.life, f"network {name}")
            check_unmoved(stored.fragments, known, f"network {name}")
            self._store.apply(deploy_step(self._znodes, stored, network, version, fragments))

        retrying(step, f"network {name}")

    def begin_deploy(self, network: NetworkName, topics: tuple[TopicName, ...]) -> None:
        """Keep which topics a deploy is about to create, beside those of deploys cut off before."""
        self._change_begun(network, lambda known: known.union(topics))

    def begun_deploy(self, network: NetworkName) -> tuple[TopicName, ...]:
        """The topics that deploys which never ended were about to create."""
        found = self._get(DeployRecord, self._znodes.deploy(network))
        return found.topics if found else ()

    def end_deploy(self, network: NetworkName, topics: tuple[TopicName, ...]) -> None:
        """A deploy is done: what it created stands in the network's record. Others may not be."""
        self._change_begun(network, lambda known: known.difference(topics))

    def _change_begun(self, network: NetworkName, change: Callable[..., set[TopicName]]) -> None:
        path = self._znodes.deploy(network)

        def step() -> None:
            found = self._store.get(path)
            known = self._decoded(DeployRecord, found, path)
            topics = change(set(known.topics if known else ()))
            self._store.apply(begun_deploys(path, found, topics))

        retrying(step, f"network {network}")

    def set_desired(
        self,
        network: NetworkName,
        desired: DesiredState,
        fragments: tuple[FragmentName, ...] | None = None,
        before: DesiredState | None = None,
    ) -> None:
        """Say what is wanted of some fragments, or of all of a network, in one step.

        With `before`, only of those of which that was wanted so far.

        Raises:
            RefusedError: the network or a fragment is not deployed.
        """

        def step() -> None:
            stored = self._stored(network)
            if stored.network is None:
                raise self._not_deployed(network)
            operations: list[Operation] = []
            for name in sorted(stored.fragments if fragments is None else fragments):
                if name not in stored.fragments:
                    raise self._no_fragment(network, name)
                path, found = self._znodes.fragment(network, name), stored.fragments[name].record
                record = decode(FragmentRecord, found.value, path)
                if record.desired is not desired and before in {None, record.desired}:
                    changed = encode(replace(record, desired=desired))
                    operations.append(Set(path, changed, found.version))
            if operations:
                self._store.apply((*operations, bump(self._znodes, stored.revision)))

        retrying(step, f"network {network}")

    def remove_network(self, network: NetworkName, expected: NetworkRecord | None = None) -> bool:
        """End a network's life: remove it with its versions, fragments, owners and statuses.

        False if there is none. `expected`: as it was when that was decided; if it was deployed
        since, RetryError. A very long history goes first, in steps of its own; the rest is one
        step. The counters of epochs stay: a later deploy under this name goes on after them.
        """

        def step() -> bool:
            stored = self._stored(network)
            if stored.network is None:
                return False
            check_unchanged(stored.network, expected)
            versions = self._versions(network)
            old = tuple(sorted(versions)[:-VERSIONS_PER_STEP_MAX])
            for first in range(0, len(old), VERSIONS_PER_STEP_MAX):
                part = old[first : first + VERSIONS_PER_STEP_MAX]
                self._store.apply(tuple(Delete(path, versions.pop(path).version) for path in part))
            self._store.apply(remove_step(self._znodes, stored, network, versions))
            return True

        return retrying(step, f"network {network}")

    # --- ownership and status -------------------------------------------------------------------

    def claim(
        self,
        network: NetworkName,
        fragment: FragmentName,
        by: NodeRecord,
        now_ms: Millis,
        *,
        written: Epoch = NO_EPOCH,
    ) -> Epoch:
        """Take a fragment over: its next epoch is that of this life of a node.

        Of all claims of an epoch exactly one is done. There is no second try in here: whoever lost
        looks at the winner first.

        `written`: the epoch of the fragment's last commit marker; the new epoch exceeds it, even
        where the catalog's counter is below it.

        Raises:
            RetryError: another node was first, or owns it and is alive.
            RefusedError: there is no such fragment, or another participant owns its network.
        """
        znodes, place = self._znodes, f"fragment {network}.{fragment}"
        there = self._store.get(znodes.fragment(network, fragment))
        if there is None:
            raise self._no_fragment(network, fragment)
        deployed = self.network(network)
        if deployed is None:
            raise self._not_deployed(network)
        check_participant(deployed, by.participant)
        counter = self._store.get(znodes.epoch(network, fragment))
        owner = self._store.get(znodes.owner(network, fragment))
        current = self._decoded(OwnerRecord, owner, znodes.owner(network, fragment))
        if current is not None and current.node != by.node:
            alive = self.node(current.node) is not None
            check_claimable(current, by.node, place, owner_alive=alive)
        last = self._decoded(EpochRecord, counter, znodes.epoch(network, fragment))
        epoch = next_epoch(last, written)
        claimed = OwnerRecord(by.node, by.participant, epoch, now_ms, by.started_at_ms)
        claim = Claim(network, fragment, claimed)
        try:
            self._store.apply(claim_step(znodes, claim, there, owner, counter))
        except LOST as error:
            raise RetryError(
                f"somebody else was first to claim epoch {claimed.epoch}, or changed the fragment",
                place=place,
            ) from error
        return claimed.epoch

    def owner(self, network: NetworkName, fragment: FragmentName) -> OwnerRecord | None:
        """Who owns a fragment; None before the first claim since it was deployed."""
        return self._get(OwnerRecord, self._znodes.owner(network, fragment))

    def report(self, status: FragmentStatus) -> None:
        """Keep what a fragment's owner sees; nothing happens if the fragment is gone.

        Raises:
            FencedError: a newer epoch has reported already.
        """
        path = self._znodes.status(status.network, status.fragment)

        def step() -> None:
            found = self._store.get(path)
            before = self._decoded(FragmentStatus, found, path)
            if before is not None and before.epoch > status.epoch:
                raise FencedError(
                    f"epoch {before.epoch} has reported already, this is epoch {status.epoch}",
                    place=f"fragment {status.network}.{status.fragment}",
                )
            fragment = self._znodes.fragment(status.network, status.fragment)
            if found is None and self._store.get(fragment) is None:
                return
            self._store.apply((put(path, encode(status), found),))

        retrying(step, f"fragment {status.network}.{status.fragment}")

    def status(self, network: NetworkName, fragment: FragmentName) -> FragmentStatus | None:
        """What was last reported of a fragment; None before the first report."""
        return self._get(FragmentStatus, self._znodes.status(network, fragment))

    def statuses(self, network: NetworkName) -> tuple[FragmentStatus, ...]:
        """What was last reported of a network's fragments, by name; without those not reported."""
        found = (self.status(network, name) for name in self._fragment_names(network))
        return tuple(status for status in found if status is not None)

    # --- reading --------------------------------------------------------------------------------

    def _fragment_names(self, network: NetworkName) -> tuple[FragmentName, ...]:
        names = self._store.children(self._znodes.fragments(network))
        return tuple(FragmentName(name) for name in names)

    def _stored(self, network: NetworkName) -> StoredNetwork:
        """Read a network for a step. The revision is read first: the step checks it."""
        znodes, get = self._znodes, self._store.get
        revision = get(znodes.networks())
        if revision is None:
            raise RefusedError("the catalog is not set up", hint="`medusa up` sets it up.")
        fragments: dict[FragmentName, StoredFragment] = {}
        for name in self._fragment_names(network):
            record = get(znodes.fragment(network, name))
            if record is not None:
                owner = get(znodes.owner(network, name))
                reported = get(znodes.status(network, name)) is not None
                started = self.starts.recorded(network, name)
                fragments[name] = StoredFragment(record, owner, reported, started)
        folders = {
            path: get(path) for path in (znodes.versions(network), znodes.fragments(network))
        }
        return StoredNetwork(
            revision,
            get(znodes.network(network)),
            {path: found for path, found in folders.items() if found is not None},
            fragments,
        )

    def _versions(self, network: NetworkName) -> dict[str, Versioned]:
        names = self._store.children(self._znodes.versions(network))
        paths = (self._znodes.version(network, int(name)) for name in names)
        found = {path: self._store.get(path) for path in paths}
        return {path: value for path, value in found.items() if value is not None}

    def _get(self, kind: type[R], path: str) -> R | None:
        return self._decoded(kind, self._store.get(path), path)

    def _decoded(self, kind: type[R], found: Versioned | None, path: str) -> R | None:
        return None if found is None else decode(kind, found.value, path, self.newest)

    def _not_deployed(self, network: NetworkName) -> RefusedError:
        return not_deployed(network, (record.network for record in self.networks()))

    def _no_fragment(self, network: NetworkName, fragment: FragmentName) -> RefusedError:
        return no_fragment(network, fragment, self._fragment_names(network))
