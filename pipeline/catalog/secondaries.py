"""Secondaries of fragments: the nodes that follow them. Pure.

Each node computes them from its own snapshot of the catalog, as it does the placement. The order of
the nodes is that of rendezvous hashing (Thaler and Ravishankar, 1998), with the capacity as weight
(Schindler and Schomaker, 2005): a node that comes or goes changes only what it is a secondary of
itself, so that no other follower has to be built anew; and once an owner is gone, the first node of
the order is the one that has followed it.
"""

import hashlib
import math
from collections.abc import Collection, Iterable
from typing import Final

from pipeline.catalog.records import FragmentRecord, NodeRecord
from pipeline.ids import NodeId
from pipeline.labels import parse_selector, selects

_BYTES: Final = 6


def may_run(record: FragmentRecord, node: NodeRecord) -> bool:
    """Whether a fragment may run on a node, by its labels.

    Not if a later version of this program wrote a selector that this one cannot read.
    """
    if not record.nodes:
        return True
    try:
        selector = parse_selector(record.nodes)
    except ValueError:
        return False
    return selects(selector, dict(node.labels))


def open_to(
    record: FragmentRecord, nodes: Iterable[NodeRecord], drained: Collection[NodeId]
) -> tuple[NodeRecord, ...]:
    """The nodes that may take a fragment on: drained ones only if no other of the nodes may."""
    allowed = tuple(node for node in nodes if may_run(record, node))
    return tuple(node for node in allowed if node.node not in drained) or allowed


def weight(record: FragmentRecord, node: NodeRecord) -> float:
    """The rank of a node among the secondaries of a fragment; the largest is the first."""
    name = f"{record.network.full_name}.{record.fragment}\n{node.node}"
    found = hashlib.sha256(name.encode()).digest()[:_BYTES]
    drawn = (int.from_bytes(found) + 1) / ((1 << 8 * _BYTES) + 1)  # never 0 or 1 as a float
    return -node.capacity / math.log(drawn)


def secondaries(
    record: FragmentRecord,
    owner: NodeId | None,
    nodes: Iterable[NodeRecord],
    drained: Collection[NodeId],
) -> tuple[NodeId, ...]:
    """The nodes that follow a fragment, the first one first; fewer than wanted if no more may.

    Args:
        record: of the fragment.
        owner: the node that runs it, or is to run it.
        nodes: those that are up.
        drained: those that take on nothing.
    """
    open_ones = (node for node in nodes if node.node != owner and node.node not in drained)
    candidates = [node for node in open_ones if may_run(record, node)]
    candidates.sort(key=lambda node: (-weight(record, node), node.node))
    return tuple(node.node for node in candidates[: record.reliability.secondaries])
