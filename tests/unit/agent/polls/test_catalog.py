import threading
from collections.abc import Sequence

import pytest

from pipeline.agent.events import CatalogLost, CatalogRead
from pipeline.agent.polls.poll import Ending, start
from pipeline.catalog.catalog import Catalog
from pipeline.errors import NewerFormatError
from pipeline.ids import Millis, ParticipantId
from pipeline.names import Znodes
from tests.memory_store import MemoryStore
from tests.unit.agent.polls.support import MOVING, NETWORK, World, node_record


def test_the_catalog_is_told_when_it_changes_and_not_before() -> None:
    """A look without a change costs one small read and tells nothing."""
    world = World()
    world.poll.read()
    world.poll.read()
    assert len(world.told) == 1
    world.deploy()
    world.poll.read()
    assert world.assigned() == ["moving"]


def test_a_fragment_of_another_living_node_is_not_ours() -> None:
    """As soon as that node is gone, it is."""
    world = World()
    world.deploy()
    other = MemoryStore(world.tree)
    theirs = Catalog(other, Znodes(""))
    theirs.nodes.register(node_record("there"))
    theirs.owners.claim(NETWORK, MOVING, node_record("there"), Millis(0))
    world.poll.read()
    assert world.assigned() == []
    other.close()
    world.poll.read()
    assert world.assigned() == ["moving"]


def test_a_session_in_doubt_is_told_once_and_read_anew_afterwards() -> None:
    """While it is in doubt nothing may be decided on what was read."""
    world = World()
    world.poll.read()
    world.store.suspend()
    world.poll.read()
    world.poll.read()
    world.store.resume()
    world.poll.read()
    assert [type(event) for event in world.told] == [CatalogRead, CatalogLost, CatalogRead]


def test_a_node_is_registered_again_when_its_session_was_lost() -> None:
    """Otherwise it would run on while everybody takes it for dead."""
    world = World()
    world.poll.read()
    world.store.expire()
    world.store.resume()
    assert world.catalog.nodes.all() == ()
    world.poll.read()
    assert [record.node for record in world.catalog.nodes.all()] == ["here"]


def test_a_catalog_that_was_raised_beyond_this_version_ends_the_node() -> None:
    """In words, without telling what is desired: it claims nothing any more."""
    world = World()
    world.poll.read()
    stop = threading.Event()
    ending = Ending(stop)
    world.store.expire()
    world.store.resume()
    Catalog(MemoryStore(world.tree), Znodes(""), newest=2).format.raise_to_newest()
    start(world.poll, "catalog", stop, ending).join(10)
    assert stop.is_set()
    with pytest.raises(NewerFormatError, match="format 2, this one reads up to 1"):
        ending.check()
    assert [type(event) for event in world.told] == [CatalogRead, CatalogLost]
    assert MemoryStore(world.tree).children(Znodes("").nodes(ParticipantId("local"))) == ()


def test_a_change_during_a_read_is_read_at_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The revision was read before: it is another one then."""
    world = World()
    read = world.store.children_all

    def meanwhile(paths: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        found = read(paths)
        monkeypatch.undo()
        world.deploy()
        return found

    monkeypatch.setattr(world.store, "children_all", meanwhile)
    world.poll.read()
    assert world.assigned() == []
    world.poll.read()
    assert world.assigned() == ["moving"]
