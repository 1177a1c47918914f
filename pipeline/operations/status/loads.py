"""Loads of fragments and nodes, as the nodes have metered them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pipeline.catalog.load_records import NodeLoadRecord
from pipeline.catalog.records import NodeRecord
from pipeline.ids import NodeId, ParticipantId
from pipeline.operations.status.observed import ObservedFragment


def with_loads(
    seen: Sequence[ObservedFragment], loads: Iterable[NodeLoadRecord]
) -> tuple[ObservedFragment, ...]:
    """Fragments with the load that the node which has reported their status has metered."""
    found = {(one.id, node.node): one for node in loads for one in node.fragments}
    return tuple(
        one
        if one.status is None or not one.node_up
        else replace(one, load=found.get((one.id, one.status.node)))
        for one in seen
    )


def loads_of(
    nodes: Iterable[NodeRecord], loads: Iterable[NodeLoadRecord]
) -> Mapping[tuple[ParticipantId, NodeId], NodeLoadRecord]:
    """The loads of nodes in their present life, by participant and node."""
    lives = {(one.participant, one.node, one.started_at_ms) for one in nodes}
    return {
        (one.participant, one.node): one
        for one in loads
        if (one.participant, one.node, one.life) in lives
    }
