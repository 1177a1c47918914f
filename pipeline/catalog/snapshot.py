"""What the catalog contains of one participant: nodes that are up, fragments with owners. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.catalog.records import DesiredState, FragmentRecord, NetworkRecord, OwnerRecord
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
    """A version of a network within one life of it: what it holds never changes."""

    network: NetworkId
    life: NetworkLife
    version: NetworkVersion


@dataclass(frozen=True, slots=True)
class Deployed:
    """A fragment that is deployed.

    Args:
        network: the record of its network.
        record: its own record.
        owner: who has claimed it; None: nobody since it was deployed.
    """

    network: NetworkRecord
    record: FragmentRecord
    owner: OwnerRecord | None = None

    @property
    def id(self) -> FragmentId:
        """Which fragment."""
        return FragmentId(self.record.network, self.record.fragment)

    @property
    def names(self) -> FragmentNames:
        """The names that belong to it."""
        return FragmentNames(self.id)

    @property
    def place(self) -> str:
        """Names it in messages."""
        return f"fragment {self.id}"

    @property
    def version(self) -> VersionId:
        """The version of its network that last changed it, which its plan is made of."""
        return VersionId(self.network.network, self.network.life, self.record.version)

    @property
    def newest_version(self) -> VersionId:
        """The version of its network that is wanted now."""
        return VersionId(self.network.network, self.network.life, self.network.version)

    @property
    def topic_ids(self) -> Mapping[TopicName, str]:
        """The ids of its topics at its last deploy."""
        return dict(self.record.topic_ids)

    @property
    def choice(self) -> StateChoice | None:
        """What was chosen for its state; None: nothing."""
        return None if self.record.choice is None else StateChoice(*self.record.choice)

    @property
    def begins(self) -> Mapping[StreamName, Begin]:
        """Where it begins to read what it has never read, as deploys have decided."""
        return self.record.decided(self.network.life)

    @property
    def succession(self) -> Succession | None:
        """Which other fragments have written its output; None: none has."""
        found = self.record.succeeds
        return None if found is None else Succession(self.network.life, *found)

    @property
    def running(self) -> bool:
        """Whether it is to run."""
        return self.record.desired is DesiredState.RUNNING


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """All that a node decides by, as it was read; of one participant only.

    Args:
        alive: the nodes that are up.
        fragments: every fragment of every network of the participant, by name.
    """

    alive: frozenset[NodeId]
    fragments: tuple[Deployed, ...]

    def assigned_to(self, node: NodeId) -> tuple[Deployed, ...]:
        """The fragments that a node of the participant has to run, or to keep stopped.

        These are the ones that the node owns, or that have no owner which is up.
        """
        return tuple(
            one
            for one in self.fragments
            if one.owner is None or one.owner.node == node or one.owner.node not in self.alive
        )

    def run_elsewhere(self, node: NodeId) -> tuple[Deployed, ...]:
        """The fragments that other nodes of the participant have to run."""
        return tuple(
            one
            for one in self.fragments
            if one.running
            and one.owner is not None
            and one.owner.node != node
            and one.owner.node in self.alive
        )
