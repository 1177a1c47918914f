"""Participants and nodes."""

import pytest

from brokers.versioned_store import Versioned
from pipeline.catalog.codec import encode
from pipeline.catalog.records import ParticipantRecord
from pipeline.errors import RefusedError
from pipeline.names import Znodes
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import ME, NODE1, node, session


def test_a_node_is_up_as_long_as_its_session() -> None:
    """Its record is removed when the session of its process ends."""
    tree = MemoryTree()
    store, catalog = session(tree)
    _, other = session(tree)
    catalog.format.ensure(ME)
    catalog.nodes.register(node())
    assert other.nodes.all() == (node(),)
    store.close()
    assert other.nodes.all() == ()


def test_a_second_node_of_the_same_name_is_refused() -> None:
    """The error contains the process that has the name."""
    tree = MemoryTree()
    _, first = session(tree)
    _, second = session(tree)
    first.format.ensure(ME)
    first.nodes.register(node(pid=7))
    with pytest.raises(RefusedError, match="process 7 on host"):
        second.nodes.register(node(pid=8))
    assert second.nodes.get(ME, NODE1) == node(pid=7)


def test_a_node_registers_again_in_a_new_session() -> None:
    """After its session was lost the same process can use its name again at once."""
    tree = MemoryTree()
    store, catalog = session(tree)
    catalog.format.ensure(ME)
    catalog.nodes.register(node())
    before = catalog.store.session
    store.expire()
    assert catalog.store.session != before
    assert catalog.nodes.all() == ()
    catalog.nodes.register(node())
    catalog.nodes.register(node())
    assert catalog.nodes.all() == (node(),)


def test_registering_again_moves_the_record_to_the_new_session() -> None:
    """The record does not end with the older session of the process."""
    tree = MemoryTree()
    old_store, old = session(tree)
    _, new = session(tree)
    old.format.ensure(ME)
    old.nodes.register(node())
    new.nodes.register(node())
    old_store.close()
    assert new.nodes.all() == (node(),)


def test_the_record_of_an_ended_process_can_be_replaced() -> None:
    """Without waiting for its session to expire."""
    tree = MemoryTree()
    _, first = session(tree)
    _, second = session(tree)
    first.format.ensure(ME)
    first.nodes.register(node(pid=7))
    second.nodes.register(node(pid=8), replaces=node(pid=7))
    assert second.nodes.all() == (node(pid=8),)
    with pytest.raises(RefusedError):
        first.nodes.register(node(pid=9), replaces=node(pid=7))


def test_participants_are_added_once() -> None:
    """A participant that is in the catalog is not added again."""
    store, catalog = session(MemoryTree())
    catalog.format.ensure(ME)
    catalog.format.ensure(ME)
    assert store.get(Znodes().participant(ME)) == Versioned(encode(ParticipantRecord(ME)), 0)
    assert store.children(Znodes().participants()) == (ME,)
