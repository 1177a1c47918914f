"""Programs of several versions on one catalog; `newest=2` is a version that does not exist yet."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.versioned_store import Operation
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.formats import check_all_read
from pipeline.catalog.records import NodeRecord
from pipeline.errors import MedusaError, NewerFormatError, RefusedError, RetryError
from pipeline.ids import NodeId, ParticipantId
from pipeline.names import Znodes
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.catalog.support import ME, NODE1, NODE2, deployed, node

ZNODES = Znodes("")


def program(tree: MemoryTree, newest: int) -> tuple[MemoryStore, Catalog]:
    """Create a session of a program that can read formats up to `newest`."""
    store = MemoryStore(tree)
    return store, Catalog(store, ZNODES, newest)


def of_version(newest: int, name: NodeId = NODE1) -> NodeRecord:
    """A node of a program that can read formats up to `newest`."""
    return replace(node(name), reads=newest, version=f"0.{newest}")


def content(store: MemoryStore, path: str = "") -> dict[str, tuple[bytes, int]]:
    """All values below a path, with versions."""
    found = {}
    for name in store.children(path or "/"):
        child = f"{path}/{name}"
        value = store.get(child)
        assert value is not None
        found[child] = (value.value, value.version)
        found.update(content(store, child))
    return found


def test_nodes_of_several_versions_are_compatible_until_the_format_is_raised() -> None:
    """A newer node joins an older one and writes nothing that the older one cannot read."""
    tree = MemoryTree()
    old_store, old = program(tree, 1)
    new_store, new = program(tree, 2)
    deployed(old)
    old.nodes.register(of_version(1))
    new.format.ensure(ME)
    new.nodes.register(of_version(2, NODE2))
    assert (old.format.current(), new.format.current()) == (1, 1)
    assert [record.reads for record in old.nodes.all()] == [1, 2]
    before = content(new_store)
    with pytest.raises(RefusedError, match=r"node1 \(Medusa 0.1 on host, reads up to format 1\)"):
        new.format.raise_to_newest()
    assert content(new_store) == before
    old_store.close()
    assert new.format.raise_to_newest() == 1
    assert new.format.current() == 2
    assert new.networks.revision(ME) == 2, "nodes look again"
    assert new.format.raise_to_newest() == 2
    assert [record.node for record in new.nodes.all()] == [NODE2]


@pytest.mark.parametrize(
    "act",
    [
        lambda old: old.format.ensure(ME),
        lambda old: old.format.current(),
        lambda old: old.nodes.register(of_version(1)),
        lambda old: old.format.raise_to_newest(),
    ],
    ids=["set up", "look", "register", "raise"],
)
def test_an_older_program_does_not_touch_a_newer_catalog(
    act: Callable[[Catalog], object],
) -> None:
    """The error contains the format that it cannot read."""
    tree = MemoryTree()
    new_store, new = program(tree, 2)
    new.format.ensure(ME)
    assert new.format.current() == 2, "a new catalog has no older node"
    before = content(new_store)
    with pytest.raises(NewerFormatError, match="format 2, this one reads up to 1"):
        act(program(tree, 1)[1])
    assert content(new_store) == before


def test_an_older_node_cannot_return_after_a_raise() -> None:
    """The raise did not wait for it, since its session had ended; registering again fails."""
    tree = MemoryTree()
    old_store, old = program(tree, 1)
    new_store, new = program(tree, 2)
    old.format.ensure(ME)
    old.nodes.register(of_version(1))
    old_store.expire()
    old_store.resume()
    assert new.format.raise_to_newest() == 1
    with pytest.raises(NewerFormatError):
        old.nodes.register(of_version(1))
    assert new_store.children(ZNODES.nodes(ME)) == ()


def test_a_catalog_that_is_not_set_up_has_no_format() -> None:
    """The error contains the command that sets it up."""
    _, catalog = program(MemoryTree(), 1)
    snapshot = partial(catalog.snapshot, ME)
    for act in (catalog.format.current, catalog.format.raise_to_newest, snapshot):
        with pytest.raises(RefusedError, match="not set up"):
            act()


@given(st.lists(st.integers(1, 4), max_size=4), st.integers(1, 4))
def test_exactly_the_nodes_that_do_not_read_a_format_are_named(
    reads: list[int], newest: int
) -> None:
    """The error contains all of them, and no others."""
    nodes = [of_version(r, NodeId(f"n{i}.")) for i, r in enumerate(reads)]
    older = [record.node for record in nodes if record.reads < newest]
    message = ""
    try:
        check_all_read(newest, nodes)
    except RefusedError as error:
        message = error.message
    assert [n.node for n in nodes if n.node in message] == older


@dataclass
class Racing(MemoryStore):
    """A session with a concurrent change just before its next step."""

    tree: MemoryTree
    first: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.tree)

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Apply the concurrent change first, once."""
        while self.first:
            self.first.pop()()
        super().apply(operations)


def test_of_a_raise_and_a_node_that_it_excludes_one_succeeds() -> None:
    """The first one does; the other changes nothing."""
    tree = MemoryTree()
    _, old = program(tree, 1)
    old.format.ensure(ME)
    raising = Racing(tree, [lambda: old.nodes.register(of_version(1))])
    with pytest.raises(RetryError, match="nothing was changed"):
        Catalog(raising, ZNODES, 2).format.raise_to_newest()
    assert (old.format.current(), len(old.nodes.all())) == (1, 1)

    tree = MemoryTree()
    new_store, new = program(tree, 2)
    Catalog(new_store, ZNODES, 1).format.ensure(ME)

    def raised() -> None:
        assert new.format.raise_to_newest() == 1

    late = Catalog(Racing(tree, [raised]), ZNODES, 1)
    with pytest.raises(MedusaError, match="format 2, this one reads up to 1"):
        late.nodes.register(of_version(1))
    assert new.nodes.all() == ()


def test_a_participant_added_during_a_raise_is_detected() -> None:
    """Its nodes were not checked, so the raise changes nothing."""
    tree = MemoryTree()
    _, old = program(tree, 1)
    old.format.ensure(ME)
    theirs = replace(of_version(1), participant=ParticipantId("others"))

    def come() -> None:
        old.format.ensure(theirs.participant)
        old.nodes.register(theirs)

    raising = Catalog(Racing(tree, [come]), ZNODES, 2)
    with pytest.raises(RetryError, match="nothing was changed"):
        raising.format.raise_to_newest()
    with pytest.raises(RefusedError, match="reads up to format 1"):
        raising.format.raise_to_newest()
    assert (old.format.current(), old.nodes.all()) == (1, (theirs,))


def test_nodes_of_two_participants_may_have_one_name() -> None:
    """Raising the format checks both, and raises the revision of both participants."""
    tree = MemoryTree()
    _, one = program(tree, 2)
    store, other = program(tree, 1)
    others = ParticipantId("others")
    Catalog(MemoryStore(tree), ZNODES, 1).format.ensure(ME, others)
    one.nodes.register(of_version(2))
    other.nodes.register(replace(of_version(1), participant=others))
    assert [record.participant for record in one.nodes.all()] == [ME, others]
    assert (one.nodes.names(ME), one.nodes.names(others)) == ((NODE1,), (NODE1,))
    with pytest.raises(RefusedError, match="reads up to format 1"):
        one.format.raise_to_newest()
    store.close()
    assert one.format.raise_to_newest() == 1
    assert (one.networks.revision(ME), one.networks.revision(others)) == (1, 1)


def test_nodes_that_start_at_once_all_register() -> None:
    """They change the same folder; the one that loses retries."""
    tree = MemoryTree()
    _, one = program(tree, 1)
    one.format.ensure(ME)
    second = Catalog(Racing(tree, [lambda: one.nodes.register(of_version(1))]), ZNODES)
    second.nodes.register(of_version(1, NODE2))
    assert [record.node for record in one.nodes.all()] == [NODE1, NODE2]
