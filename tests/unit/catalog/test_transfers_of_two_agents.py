"""A move between two agents: every order of their steps, of a user's and of lost sessions.

All states that can be reached within one claim and one restart of each node are visited once. An
agent releases by what it has read last, and a node whose session is lost does nothing more.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NodeRecord, OwnerRecord
from pipeline.catalog.snapshot import CatalogSnapshot, Leaving
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import FragmentId, Millis, NodeId
from pipeline.names import Znodes
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.catalog.support import ME, MOVING, NODE1, NODE2, NOW, TOLLS, deployed, node
from tests.unit.catalog.test_transfers import move

NODES = (NODE1, NODE2)
EPOCH_MAX, LIFE_MAX = 2, 1
AGENTS = ("look", "release", "claim")
STEPS = (
    ("ask", NODE2),
    ("cancel", NODE1),
    ("ready", NODE2),
    ("look", NODE1),
    ("release", NODE1),
    *((what, name) for what in ("claim", "lose", "start") for name in NODES),
)
ID = FragmentId(TOLLS, MOVING)


@dataclass(frozen=True, slots=True)
class State:
    """What is in the catalog, and what the agents know.

    Args:
        tree: the store, which is not changed.
        sessions: of the nodes that are up.
        lives: how often each node was started again.
        seen: what each agent has read last.
    """

    tree: MemoryTree
    sessions: Mapping[NodeId, int]
    lives: Mapping[NodeId, int] = field(default_factory=lambda: dict.fromkeys(NODES, 0))
    seen: Mapping[NodeId, CatalogSnapshot] = field(default_factory=dict)

    @property
    def key(self) -> object:
        """What decides about all that can follow: neither versions nor the revision do."""
        values = {path: one.value for path, one in self.tree._entries.items()}
        del values[Znodes().networks(ME)]
        leaving = [(name, sorted(one.leaving(name).items())) for name, one in self.seen.items()]
        return repr((sorted(values.items()), sorted(self.lives.items()), sorted(leaving)))

    def with_catalog(self, session: int | None = None) -> tuple["State", Catalog]:
        """A copy, and a session on it: that of a node, or a new one."""
        tree = MemoryTree()
        tree._entries, tree._next_session = self.tree._entries, self.tree._next_session
        store = MemoryStore(tree)
        if session is not None:
            store._session = session
        return replace(self, tree=tree), Catalog(store, Znodes())

    @property
    def owner(self) -> OwnerRecord | None:
        """The owner of the fragment."""
        return self.with_catalog()[1].owners.get(TOLLS, MOVING)


def record(state: State, name: NodeId) -> NodeRecord:
    """A node in its present life."""
    return replace(node(name), started_at_ms=Millis(NOW + state.lives[name]))


def step(before: State, what: str, at: NodeId) -> State | None:
    """The state after a step; None: it is impossible, or changes nothing."""
    up = at in before.sessions
    if up is (what == "start") and what not in ("ask", "cancel"):
        return None
    state, catalog = before.with_catalog(before.sessions.get(at))
    match what:
        case "lose":
            state.tree.end_session(before.sessions[at])
            left = {name: one for name, one in before.sessions.items() if name != at}
            seen = {name: one for name, one in before.seen.items() if name != at}
            return replace(state, sessions=left, seen=seen)
        case "start":
            return started(state, at) if before.lives[at] < LIFE_MAX else None
        case "look":
            return replace(state, seen={**before.seen, at: catalog.snapshot(ME)})
    with suppress(RefusedError, RetryError):
        act(catalog, before, what, at)
    return state


def started(state: State, at: NodeId) -> State:
    """A node has been started again."""
    state = replace(state, lives={**state.lives, at: state.lives[at] + 1})
    state, catalog = state.with_catalog()
    store = catalog.nodes.records.store
    assert isinstance(store, MemoryStore)
    catalog.nodes.register(record(state, at))
    return replace(state, sessions={**state.sessions, at: store._session})


def is_gone(state: State, leaving: Leaving) -> bool:
    """Whether the target has ended since, which a release does not compare.

    The owner, or the target in its next life, claims what was released.
    """
    to, transfer = leaving.to, leaving.transfer
    if to is None or transfer is None or to not in state.sessions:
        return True
    return record(state, to).started_at_ms != transfer.to_life


def act(catalog: Catalog, before: State, what: str, at: NodeId) -> None:
    """Do a step in a catalog."""
    found, transfers = catalog.owners.get(TOLLS, MOVING), catalog.transfers
    asked = transfers.of(ME)
    match what:
        case "ask" if found is not None and at in before.sessions:
            over = tuple(one for one in asked if one.id not in catalog.snapshot(ME).moving)
            transfers.ask(
                replace(move(catalog, at), to_life=record(before, at).started_at_ms), over
            )
        case "cancel" if asked:
            transfers.end(asked[0])
        case "ready" if asked:
            transfers.note_ready(asked[0])
        case "release" if at in before.seen:
            due = catalog.snapshot(ME).leaving(at)
            for fragment, leaving in before.seen[at].leaving(at).items():
                if catalog.owners.release(fragment, leaving):
                    assert fragment in due or is_gone(before, leaving), "it was decided otherwise"
        case "claim" if found is None or not found.is_of(record(before, at)):
            if catalog.snapshot(ME).assigned_to(at):
                catalog.owners.claim(TOLLS, MOVING, record(before, at), NOW)


def followers_of(state: State) -> Iterator[State]:
    """The states that can follow."""
    for what, at in STEPS:
        after = step(state, what, at)
        if after is None:
            continue
        was, found = state.owner, after.owner
        if found is not None and found.epoch > EPOCH_MAX:
            continue
        if found != was and found is not None:
            assert what == "claim", "only a claim makes an owner"
            assert was is None or found.epoch == was.epoch + 1
            assert not after.with_catalog()[1].transfers.of(ME), "a claim ends each move"
        yield after


def settled(state: State) -> State:
    """The state after both nodes are up, and the agents alone go on for a while."""
    for name in NODES:
        if name not in state.sessions:
            state = started(state, name)
    for _ in range(2):
        state = one_round(state)
    return state


def one_round(state: State) -> State:
    """Each agent looks, releases and claims."""
    for what in AGENTS:
        for name in NODES:
            state = step(state, what, name) or state
    return state


def test_in_every_state_one_node_runs_the_fragment_in_the_end() -> None:
    """Whatever was asked, cancelled, released or lost before, and in whatever order."""
    tree = MemoryTree()
    _, catalog = State(tree, {}).with_catalog()
    deployed(catalog)
    store = catalog.nodes.records.store
    assert isinstance(store, MemoryStore)
    state = State(store._tree, {}, dict.fromkeys(NODES, -1))
    for name in NODES:
        state = started(state, name)
    known, checked, open_ones = {state.key}, set[object](), deque([state])
    while open_ones:
        before = open_ones.popleft()
        unread = replace(before, seen={}).key  # the agents look again
        if unread not in checked:
            checked.add(unread)
            end = settled(before)
            assert end.owner is not None, "it is forgotten"
            assert one_round(end).owner == end.owner, "it does not stay"
        for after in followers_of(before):
            if after.key not in known:
                known.add(after.key)
                open_ones.append(after)
    assert len(known) > 100
