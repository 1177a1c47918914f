"""The in-memory store, compared with a simple model of a tree of versioned values."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from brokers.versioned_store import (
    Check,
    Create,
    Delete,
    NoSuchPathError,
    NotEmptyError,
    Operation,
    PathExistsError,
    Set,
    VersionConflictError,
    Versioned,
    check_path,
    check_step,
)
from pipeline.errors import (
    BrokenInvariantError,
    MedusaError,
    RefusedError,
    UnavailableError,
)
from tests.memory_store import MemoryStore, MemoryTree
from tests.profiles import examples

PATHS = ("/a", "/b", "/a/x", "/a/y", "/a/x/z")
VALUES = st.sampled_from((b"", b"1", b"22"))
VERSIONS = st.integers(0, 3)
OPERATIONS = st.one_of(
    st.builds(Create, st.sampled_from(PATHS), VALUES, st.booleans()),
    st.builds(Set, st.sampled_from(PATHS), VALUES, VERSIONS),
    st.builds(Check, st.sampled_from(PATHS), VERSIONS),
    st.builds(Delete, st.sampled_from(PATHS), st.none() | VERSIONS),
)


class Model:
    """Values, versions and owners in three plain dictionaries; a failed step restores them."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.versions: dict[str, int] = {}
        self.owners: dict[str, int] = {}

    def apply(self, operations: tuple[Operation, ...], session: int) -> type[MedusaError] | None:
        """Execute all operations or none; returns the expected error."""
        saved = dict(self.values), dict(self.versions), dict(self.owners)
        for operation in operations:
            error = self.one(operation, session)
            if error is not None:
                self.values, self.versions, self.owners = saved
                return error
        return None

    def one(self, operation: Operation, session: int) -> type[MedusaError] | None:
        """Execute one operation, or return the error."""
        path = operation.path
        if isinstance(operation, Create):
            return self.create(operation, session)
        if path not in self.values:
            return NoSuchPathError
        if operation.version not in (None, self.versions[path]):
            return VersionConflictError
        if isinstance(operation, Set):
            self.values[path] = operation.value
            self.versions[path] += 1
        if isinstance(operation, Delete):
            if any(other.startswith(path + "/") for other in self.values):
                return NotEmptyError
            for facts in (self.values, self.versions, self.owners):
                facts.pop(path, None)
        return None

    def create(self, operation: Create, session: int) -> type[MedusaError] | None:
        """Create a path, or return the error."""
        path = operation.path
        parent = path[: path.rindex("/")]
        if path in self.values:
            return PathExistsError
        if parent and parent not in self.values:
            return NoSuchPathError
        if parent in self.owners:
            return BrokenInvariantError
        self.values[path], self.versions[path] = operation.value, 0
        if operation.ephemeral:
            self.owners[path] = session
        return None

    def end(self, session: int) -> None:
        """Remove the ephemeral paths of a session."""
        for path in [path for path, owner in self.owners.items() if owner == session]:
            for facts in (self.values, self.versions, self.owners):
                facts.pop(path, None)


class StoreMachine(RuleBasedStateMachine):
    """Several sessions do random steps; tree and model must agree after each."""

    sessions = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self.tree = MemoryTree()
        self.observer = MemoryStore(self.tree)
        self.model = Model()

    @rule(target=sessions)
    def open(self) -> MemoryStore:
        """Open a session."""
        return MemoryStore(self.tree)

    @rule(store=sessions, operations=st.lists(OPERATIONS, max_size=4))
    def apply(self, store: MemoryStore, operations: list[Operation]) -> None:
        """Execute a step; success or error is that of the model."""
        step = tuple(operations)
        expected = self.model.apply(step, store.session)
        if expected is None:
            store.apply(step)
            return
        with pytest.raises(expected):
            store.apply(step)

    @rule(store=sessions)
    def expire(self, store: MemoryStore) -> None:
        """Expire a session; the store continues with a new one."""
        before = store.session
        self.model.end(before)
        store.expire()
        assert store.session != before

    @rule(store=sessions, path=st.sampled_from(PATHS))
    def make_parents(self, store: MemoryStore, path: str) -> None:
        """Create a path with its parents, unless one of them is ephemeral."""
        parts = path.split("/")[1:]
        prefixes = ["/" + "/".join(parts[: n + 1]) for n in range(len(parts))]
        missing = [prefix for prefix in prefixes if prefix not in self.model.values]
        creates: tuple[Operation, ...] = tuple(Create(prefix, b"") for prefix in missing)
        expected = self.model.apply(creates, store.session)
        if expected is None:
            store.make_parents(path)
            return
        with pytest.raises(expected):
            store.make_parents(path)

    @invariant()
    def store_equals_the_model(self) -> None:
        """Every session reads exactly the contents of the model."""
        for path in PATHS:
            expected = (
                Versioned(self.model.values[path], self.model.versions[path])
                if path in self.model.values
                else None
            )
            assert self.observer.get(path) == expected
            below = {other[len(path) + 1 :] for other in self.model.values if path + "/" in other}
            assert self.observer.children(path) == tuple(
                sorted(name for name in below if "/" not in name)
            )


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=examples(60), stateful_step_count=25)


def test_a_closed_session_is_unavailable() -> None:
    """After closing, every call fails so; closing again does nothing."""
    store = MemoryStore(MemoryTree())
    store.close()
    store.close()
    calls: tuple[Callable[[], object], ...] = (
        lambda: store.get("/a"),
        lambda: store.children("/a"),
        lambda: store.make_parents("/a"),
        lambda: store.apply(()),
    )
    for call in calls:
        with pytest.raises(UnavailableError, match="closed"):
            call()


def test_a_suspended_session_refuses_until_it_resumes() -> None:
    """While the connection is lost every call fails at once without an effect."""
    store = MemoryStore(MemoryTree())
    store.suspend()
    assert store.suspended
    with pytest.raises(UnavailableError, match="suspended"):
        store.apply((Create("/a", b""),))
    store.resume()
    assert store.get("/a") is None


@pytest.mark.parametrize("path", ["", "a", "a/b", "/a/", "//a", "/a//b", "/a/../b", "/.", "/a\0"])
def test_an_invalid_path_is_a_broken_invariant(path: str) -> None:
    """Names are checked before they become paths."""
    with pytest.raises(BrokenInvariantError, match="not a path"):
        check_path(path)


def test_the_size_of_a_step_is_limited() -> None:
    """Many small values can be too large together."""
    step = tuple(Create(f"/a{n}", b"x" * 100_000) for n in range(10))
    check_step(step[:9])
    with pytest.raises(RefusedError, match="1000000 bytes"):
        check_step(step)
