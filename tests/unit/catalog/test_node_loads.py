"""Loads of nodes in the catalog."""

from dataclasses import replace

from pipeline.catalog.load_records import FragmentLoad, NodeLoadRecord
from pipeline.ids import ParticipantId
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import ME, MOVING, NODE1, NODE2, NOW, TOLLS, session

LOAD = NodeLoadRecord(
    NODE1,
    ME,
    NOW,
    NOW,
    60_000,
    1_000,
    2,
    5,
    50,
    20,
    1,
    (FragmentLoad(TOLLS, MOVING, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),),
)


def test_the_last_load_of_each_node_is_kept_while_it_is_up() -> None:
    """Those of all participants, or of some; it ends with the session of the node."""
    tree, theirs = MemoryTree(), ParticipantId("others")
    (store, first), (_, second) = session(tree), session(tree)
    for owner in (ME, theirs):
        first.format.ensure(owner)
    first.loads.report(LOAD)
    first.loads.report(replace(LOAD, total=21))
    second.loads.report(replace(LOAD, node=NODE2, participant=theirs))
    assert [(one.node, one.total) for one in second.loads.all()] == [(NODE1, 21), (NODE2, 20)]
    assert second.loads.of(ME) == (replace(LOAD, total=21),)
    assert LOAD.fragments[0].total == 15
    store.expire()
    assert [one.node for one in second.loads.all()] == [NODE2]
