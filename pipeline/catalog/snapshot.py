"""Catalog snapshot of one participant: nodes that are up, fragments with owners. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.catalog.placing import Placement, place
from pipeline.catalog.records import (
    FragmentRecord,
    NetworkRecord,
    NodeRecord,
    OwnerRecord,
    Standby,
    Transfer,
)
from pipeline.catalog.secondaries import may_run, open_to, secondaries
from pipeline.ids import (
    FragmentId,
    NetworkId,
    NetworkLife,
    NetworkVersion,
    NodeId,
    StreamName,
    TopicName,
)
from pipeline.lanes.output_succession import Succession
from pipeline.lanes.source_ids import Begin
from pipeline.lanes.start.facts import StateChoice
from pipeline.names import FragmentNames


class VersionId(NamedTuple):
    """Id of a network version within one life of the network; its contents are immutable."""

    network: NetworkId
    life: NetworkLife
    version: NetworkVersion


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployed fragment.

    Args:
        network: the record of its network.
        record: its own record.
        owner: None before the first claim since it was deployed.
    """

    network: NetworkRecord
    record: FragmentRecord
    owner: OwnerRecord | None = None

    @property
    def id(self) -> FragmentId:
        """Id of the fragment."""
        return FragmentId(self.record.network, self.record.fragment)

    @property
    def names(self) -> FragmentNames:
        """The names of its topics and group."""
        return FragmentNames(self.id)

    @property
    def place(self) -> str:
        """Its name in messages."""
        return f"fragment {self.id}"

    @property
    def version(self) -> VersionId:
        """The version of its network that last changed it, and that its plan is computed from."""
        return VersionId(self.network.network, self.network.life, self.record.version)

    @property
    def newest_version(self) -> VersionId:
        """The deployed version of its network."""
        return VersionId(self.network.network, self.network.life, self.network.version)

    @property
    def topic_ids(self) -> Mapping[TopicName, str]:
        """The ids of its topics at its last deploy."""
        return dict(self.record.topic_ids)

    @property
    def choice(self) -> StateChoice | None:
        """The user's choice for its state; None: no choice."""
        return None if self.record.choice is None else StateChoice(*self.record.choice)

    @property
    def begins(self) -> Mapping[StreamName, Begin]:
        """The decided beginnings of inputs that it has never read."""
        return self.record.decided(self.network.life)

    @property
    def succession(self) -> Succession | None:
        """Its succession to other writers of its output; None: there were none."""
        found = self.record.succeeds
        return None if found is None else Succession(self.network.life, *found)

    @property
    def begun_anew(self) -> str | None:
        """The takeover that its last marker named when its version was deployed; None: unknown."""
        return self.record.begun_anew

    def fits(self, transfer: Transfer) -> bool:
        """Whether a transfer of the fragment is valid: see `CatalogSnapshot.moving`."""
        same = (transfer.life, transfer.version) == (self.network.life, self.record.version)
        if not same or not self.running:
            return False
        if self.owner is None:
            return transfer.is_ready
        return (self.owner.node, self.owner.epoch) == (transfer.source, transfer.epoch)

    @property
    def running(self) -> bool:
        """Whether its desired state is running."""
        return self.record.is_wanted


@dataclass(frozen=True, slots=True)
class Leaving:
    """A fragment that its node has to release, and what that was decided by.

    A release compares the latter: a user may have cancelled the move meanwhile, for instance.

    Args:
        owner: the node's record as its owner.
        to: the node that is to run it; None: none has room for it.
        record: of the fragment.
        transfer: of the fragment, whether or not it is valid; None: there is none.
        is_drained: whether the node is drained.
    """

    owner: OwnerRecord
    to: NodeId | None
    record: FragmentRecord
    transfer: Transfer | None = None
    is_drained: bool = False


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """Snapshot of a participant's records, the input of a node's decisions.

    Args:
        nodes: the nodes that are up.
        fragments: every fragment of every network of the participant, by name.
        drained: the nodes that are drained, also ones that are not up.
        transfers: the moves that users have asked for, also ones that are over.
        standbys: how far the followers are of the nodes that are up and have reported it.
        suspected: the nodes that are up by the catalog, and down by their heartbeats.
        overdue: those of them of which that has been known for a while.
    """

    nodes: tuple[NodeRecord, ...]
    fragments: tuple[Deployed, ...]
    drained: frozenset[NodeId] = frozenset()
    transfers: tuple[Transfer, ...] = ()
    standbys: Mapping[NodeId, tuple[Standby, ...]] = field(default_factory=dict)
    suspected: frozenset[NodeId] = frozenset()
    overdue: frozenset[NodeId] = frozenset()
    _placements: list[Placement] = field(
        default_factory=list, init=False, compare=False, repr=False
    )
    """The placement, once it was computed: nearly everything else is derived from it."""

    @property
    def alive(self) -> frozenset[NodeId]:
        """The names of the nodes that are up."""
        return frozenset(record.node for record in self._working)

    @property
    def _working(self) -> tuple[NodeRecord, ...]:
        return tuple(record for record in self.nodes if record.node not in self.suspected)

    def assigned_to(self, node: NodeId) -> tuple[Deployed, ...]:
        """The fragments that a node of the participant must run, or keep stopped: see `place`.

        One that another node owns that is up has to be released first. A node that is not up by
        this snapshot keeps those that it owns and that no other may run, or has room for. What an
        overdue node still owns, each node that may run it and has room is to claim: the one that
        the placement names may not know.
        """
        placement, up = self.placement, self.alive
        working = () if node in placement.full else self._working
        return tuple(
            one
            for one in self.fragments
            if (
                _meant(one, placement, up) == node
                and (one.owner is None or one.owner.node == node or one.owner.node not in up)
            )
            or (
                one.owner is not None
                and one.owner.node in self.overdue
                and any(here.node == node for here in open_to(one.record, working, self.drained))
            )
        )

    @property
    def is_deserted(self) -> bool:
        """Whether a fragment that should run, and is not queued, has no owner that is up."""
        up, queued = self.alive, self.placement.queued
        return any(
            one.running and one.id not in queued and (not one.owner or one.owner.node not in up)
            for one in self.fragments
        )

    def leaving(self, node: NodeId) -> Mapping[FragmentId, Leaving]:
        """The fragments that a node owns and that another one must run, or that are queued."""
        placement, up = self.placement, self.alive
        transfers = {one.id: one for one in self.transfers}
        return {
            one.id: Leaving(one.owner, to, one.record, transfers.get(one.id), node in self.drained)
            for one in self.fragments
            if one.owner is not None
            and one.owner.node == node
            and (to := _meant(one, placement, up)) != node
        }

    @property
    def placement(self) -> Placement:
        """Where the fragments are to be."""
        if not self._placements:
            moving = self.moving
            moves = {name: one.to for name, (_, one) in moving.items() if one.is_ready}
            waiting = moving.keys() - moves.keys()
            level, drained = self.level, self.drained
            found = place(self._working, self.fragments, drained, moves, waiting, level)
            self._placements.append(found)
        return self._placements[0]

    @property
    def level(self) -> frozenset[tuple[FragmentId, NodeId]]:
        """Fragments, each with a node whose follower is level with its owner."""
        return frozenset(
            (one.id, node)
            for node, standbys in self.standbys.items()
            for one in standbys
            if one.is_level
        )

    def secondaries(self) -> Mapping[FragmentId, tuple[NodeId, ...]]:
        """The nodes that follow each fragment that should run, and is not queued."""
        return self._secondaries(self.placement)

    def _secondaries(self, placement: Placement) -> Mapping[FragmentId, tuple[NodeId, ...]]:
        where, nodes = placement.nodes, self._working
        return {
            one.id: secondaries(one.record, where.get(one.id), nodes, self.drained)
            for one in self.fragments
            if one.running and one.record.reliability.secondaries and one.id not in placement.queued
        }

    def standing_by(self, node: NodeId) -> tuple[tuple[Deployed, bool], ...]:
        """The fragments that a node follows as a secondary, or has followed and is to run now.

        Each with whether its follower begins, if there is none: as a secondary of an owner that is
        up. While another takes over, all cores are needed there. One that is queued keeps the
        followers that it has: it goes on with one of them.
        """
        placement, up = self.placement, self.alive
        found = self._secondaries(placement)
        return tuple(
            (
                one,
                node in found.get(one.id, ()) and one.owner is not None and one.owner.node in up,
            )
            for one in self.fragments
            if one.running
            and one.record.reliability.secondaries
            and (one.owner is None or one.owner.node != node)
            and (
                node in found.get(one.id, ())
                or one.id in placement.queued
                or placement.nodes.get(one.id) == node
            )
        )

    @property
    def moving(self) -> Mapping[FragmentId, tuple[Deployed, Transfer]]:
        """The fragments with a transfer that is valid.

        It is while the fragment should run, and its version and owner are those that it was asked
        for; or once that owner has released it, until a node claims it. The target has to be up
        since before it was asked for, may not be drained, and its labels have to be those that are
        meant.
        """
        targets = {node.node: node for node in self._working if node.node not in self.drained}
        transfers = {
            one.id: one
            for one in self.transfers
            if one.to in targets and targets[one.to].started_at_ms == one.to_life
        }
        return {
            one.id: (one, transfers[one.id])
            for one in self.fragments
            if one.id in transfers
            and one.fits(transfers[one.id])
            and may_run(one.record, targets[transfers[one.id].to])
        }

    def followed_by(self, node: NodeId) -> tuple[tuple[Deployed, Transfer], ...]:
        """The fragments that move to a node, by name."""
        return tuple(found for _, found in sorted(self.moving.items()) if found[1].to == node)

    def run_elsewhere(self, node: NodeId) -> tuple[Deployed, ...]:
        """The fragments that other nodes of the participant must run, and that this one may."""
        here, up = next((record for record in self.nodes if record.node == node), None), self.alive
        return tuple(
            one
            for one in self.fragments
            if one.running
            and one.owner is not None
            and one.owner.node != node
            and one.owner.node in up
            and (here is None or may_run(one.record, here))
        )


def _meant(one: Deployed, placement: Placement, up: Collection[NodeId]) -> NodeId | None:
    """The node that is to have a fragment; None: none has room for it.

    One that the placement leaves out stays with its owner, unless it is queued while that is up.
    """
    owner = None if one.owner is None else one.owner.node
    gives_up = one.id in placement.queued and owner in up
    return placement.nodes.get(one.id, None if gives_up else owner)
