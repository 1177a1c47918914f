"""The readers of a topic by the catalog, and what was announced to them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import TrimRecord
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.ids import FragmentId, NodeId, Offset, TopicName
from pipeline.lanes.follower_phases import LEVEL, FollowerPhase
from pipeline.lanes.needed_by_readers import Reader
from pipeline.markers.deploys import DeployId

_AT_REST = LEVEL | {FollowerPhase.DISCARDED}
"""Phases of followers that read nothing below the last marker, or that have all of it."""


@dataclass(frozen=True, slots=True)
class ReadersInCatalog:
    """The readers of a fragment's output.

    Args:
        catalog: contains all networks of the participant.
        fragment: the writer.
    """

    catalog: Catalog
    fragment: FragmentId

    def find(self, topic: TopicName, topic_id: str) -> tuple[int, tuple[Reader, ...]]:
        """The revision before, and the readers, without their markers.

        A fragment with positions in another topic of that name is one as well: it needs a deploy.
        """
        participant = self.fragment.network.participant
        revision = self.catalog.trims.revision(participant)
        snapshot = self.catalog.snapshot(participant)
        followers = dict(_followers(snapshot))
        return revision, tuple(
            _reader(one, followers.get(one.id, ""))
            for one in snapshot.fragments
            if one.id != self.fragment
            and any(topic == name or topic_id == own for name, own in one.record.topic_ids)
        )

    def announce(self, trim: TrimRecord, revision: int) -> bool:
        """As `Trims.announce`."""
        return self.catalog.trims.announce(trim, revision)

    def announced(
        self, topic_ids: Mapping[TopicName, str]
    ) -> Mapping[TopicName, Mapping[int, Offset]]:
        """As `Trims.announced`, of the inputs of this fragment."""
        return self.catalog.trims.announced(self.fragment.network.participant, topic_ids)


def _reader(one: Deployed, follower: str) -> Reader:
    return Reader(
        fragment=one.id,
        deploy=DeployId(one.network.life, one.record.version),
        chosen=None if one.record.choice is None else one.record.choice[1],
        follower=follower,
    )


def _followers(snapshot: CatalogSnapshot) -> Iterator[tuple[FragmentId, str]]:
    """The fragments with followers that build a state, or that may."""
    phases: Mapping[tuple[NodeId, FragmentId], FollowerPhase] = {
        (node, one.id): one.phase for node, found in snapshot.standbys.items() for one in found
    }
    for fragment, nodes in snapshot.secondaries().items():
        for node in nodes:
            if phases.get((node, fragment)) not in _AT_REST:
                yield fragment, f"has a follower on node {node} that is not level"
    for fragment, (_, transfer) in snapshot.moving.items():
        yield fragment, f"moves to node {transfer.to}"
