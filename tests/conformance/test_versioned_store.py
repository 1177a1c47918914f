"""Conformance of versioned stores: the in-memory store and real ZooKeeper."""

import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokers.embedded.stack import EmbeddedStack
from brokers.versioned_store import (
    MAX_STEP_BYTES,
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
    VersionedStore,
)
from pipeline.errors import BrokenInvariantError, MedusaError, RefusedError, UnavailableError
from tests.conformance.conftest import OpenSession, zookeeper_sessions
from tests.memory_store import MemoryStore, MemoryTree
from tests.profiles import examples


def test_a_written_value_is_read_by_all_sessions(open_session: OpenSession) -> None:
    """With a version that counts its changes."""
    one, two = open_session(), open_session()
    one.apply((Create("/a", b"first"),))
    assert two.get("/a") == Versioned(b"first", 0)
    two.apply((Set("/a", b"second", 0),))
    two.apply((Set("/a", b"second", 1),))
    assert one.get("/a") == Versioned(b"second", 2)


def test_a_missing_path_has_no_value_and_no_children(open_session: OpenSession) -> None:
    """Reading a missing path is not an error."""
    store = open_session()
    assert store.get("/missing") is None
    assert store.get("/missing/below") is None
    assert store.children("/missing") == ()
    assert store.children("/") == ()


def test_an_empty_value_is_not_a_missing_one(open_session: OpenSession) -> None:
    """A read returns the empty value with its version."""
    store = open_session()
    store.apply((Create("/a", b""),))
    assert store.get("/a") == Versioned(b"", 0)


def test_children_are_sorted(open_session: OpenSession) -> None:
    """Names of direct children only, without their path."""
    store = open_session()
    store.make_parents("/a/c/x")
    store.make_parents("/a/b")
    store.make_parents("/ab")
    assert store.children("/a") == ("b", "c")
    assert store.children("/") == ("a", "ab")


def test_creating_parents_is_idempotent(open_session: OpenSession) -> None:
    """Existing paths and their values are unchanged."""
    store = open_session()
    store.make_parents("/")
    store.make_parents("/a")
    store.apply((Set("/a", b"kept", 0),))
    store.make_parents("/a/b/c")
    store.make_parents("/a/b/c")
    assert store.get("/a") == Versioned(b"kept", 1)
    assert store.get("/a/b/c") == Versioned(b"", 0)


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (Create("/a", b""), PathExistsError),
        (Create("/missing/b", b""), NoSuchPathError),
        (Create("/ephemeral/b", b""), BrokenInvariantError),
        (Set("/a", b"", 7), VersionConflictError),
        (Set("/missing", b"", 0), NoSuchPathError),
        (Check("/a", 7), VersionConflictError),
        (Check("/missing", 0), NoSuchPathError),
        (Delete("/a/b", 7), VersionConflictError),
        (Delete("/missing", 0), NoSuchPathError),
        (Delete("/missing", None), NoSuchPathError),
        (Delete("/a", 0), NotEmptyError),
    ],
)
def test_a_step_is_atomic(
    open_session: OpenSession, operation: Operation, error: type[MedusaError]
) -> None:
    """One failed operation undoes all others; the error contains its path."""
    store = open_session()
    store.make_parents("/a/b")
    store.apply((Create("/ephemeral", b"", ephemeral=True),))
    step = (Create("/new", b""), Set("/a/b", b"changed", 0), operation, Create("/other", b""))
    with pytest.raises(error) as caught:
        store.apply(step)
    assert caught.value.place.endswith(operation.path)
    assert store.get("/new") is None
    assert store.get("/other") is None
    assert store.get("/a/b") == Versioned(b"", 0)


def test_operations_of_a_step_see_each_other(open_session: OpenSession) -> None:
    """Within a step a path can be created, set, checked and deleted."""
    store = open_session()
    store.apply(
        (
            Create("/a", b"1"),
            Create("/a/b", b""),
            Set("/a", b"2", 0),
            Check("/a", 1),
            Delete("/a/b", 0),
        )
    )
    assert store.get("/a") == Versioned(b"2", 1)
    assert store.children("/a") == ()


def test_a_path_can_be_deleted_at_any_version(open_session: OpenSession) -> None:
    """A deletion without a version ignores concurrent changes of the value."""
    store = open_session()
    store.apply((Create("/a", b"1"),))
    store.apply((Set("/a", b"2", 0),))
    store.apply((Delete("/a", None),))
    assert store.get("/a") is None


def test_an_empty_step_succeeds(open_session: OpenSession) -> None:
    """A step without operations is not an error."""
    open_session().apply(())


def test_a_recreated_path_starts_at_version_zero(open_session: OpenSession) -> None:
    """Deletion and creation in one step exchange a path's owner."""
    store = open_session()
    store.apply((Create("/a", b"1"),))
    store.apply((Set("/a", b"2", 0),))
    store.apply((Delete("/a", 1), Create("/a", b"3")))
    assert store.get("/a") == Versioned(b"3", 0)


def test_ephemeral_paths_are_deleted_with_their_session(open_session: OpenSession) -> None:
    """Closing a session deletes its ephemeral paths, and no others."""
    one, two = open_session(), open_session()
    one.apply((Create("/mine", b"", ephemeral=True), Create("/stays", b"")))
    two.apply((Create("/theirs", b"", ephemeral=True),))
    assert two.get("/mine") is not None
    one.close()
    assert two.get("/mine") is None
    assert two.children("/") == ("stays", "theirs")


def test_an_ephemeral_path_changes_its_session_in_one_step(open_session: OpenSession) -> None:
    """After a new session has recreated it, the end of the old session does not delete it."""
    one, two = open_session(), open_session()
    one.apply((Create("/node", b"", ephemeral=True),))
    two.apply((Delete("/node", 0), Create("/node", b"", ephemeral=True)))
    one.close()
    assert two.get("/node") is not None


def test_a_closed_session_is_unavailable(open_session: OpenSession) -> None:
    """Calls after close raise UnavailableError; a second close does nothing."""
    store = open_session()
    store.close()
    store.close()
    with pytest.raises(UnavailableError, match="closed"):
        store.get("/a")


def test_a_healthy_session_is_not_in_doubt(open_session: OpenSession) -> None:
    """Without an outage a session is not suspended and its number does not change."""
    store = open_session()
    before = store.session
    store.make_parents("/a")
    assert not store.suspended
    assert store.session == before


def test_a_step_above_the_size_limit_is_refused(open_session: OpenSession) -> None:
    """The server accepts a step at the limit."""
    store = open_session()
    half = b"x" * (MAX_STEP_BYTES // 2)
    store.apply((Create("/a", half), Create("/b", half)))
    with pytest.raises(RefusedError):
        store.apply((Set("/a", half, 0), Set("/b", half + b"xx", 0)))
    assert store.get("/a") == Versioned(half, 0)


def test_a_step_accepts_many_operations(open_session: OpenSession) -> None:
    """A step of some hundred operations, as an undeploy needs, is accepted."""
    store = open_session()
    store.apply(tuple(Create(f"/p{n:04}", b"") for n in range(500)))
    assert len(store.children("/")) == 500
    store.apply(tuple(Delete(f"/p{n:04}", 0) for n in range(500)))
    assert store.children("/") == ()


def test_exactly_one_concurrent_writer_sets_each_version(open_session: OpenSession) -> None:
    """Compare-and-set under real concurrency loses no increment."""
    first = open_session()
    first.apply((Create("/counter", b"0"),))
    wins: list[int] = []

    def count(store: VersionedStore) -> None:
        for _ in range(25):
            found = store.get("/counter")
            assert found is not None
            value = str(int(found.value) + 1).encode()
            try:
                store.apply((Set("/counter", value, found.version),))
            except VersionConflictError:
                continue
            wins.append(int(value))

    threads = [threading.Thread(target=count, args=(open_session(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(wins) == list(range(1, len(wins) + 1))
    assert first.get("/counter") == Versioned(str(len(wins)).encode(), len(wins))


PATHS = st.sampled_from(("/a", "/b", "/a/x", "/a/y", "/a/x/z"))
VALUES = st.sampled_from((b"", b"1"))
VERSIONS = st.integers(0, 2)
STEPS = st.lists(
    st.lists(
        st.one_of(
            st.builds(Create, PATHS, VALUES, st.booleans()),
            st.builds(Set, PATHS, VALUES, VERSIONS),
            st.builds(Check, PATHS, VERSIONS),
            st.builds(Delete, PATHS, st.none() | VERSIONS),
        ),
        min_size=1,
        max_size=3,
    ),
    max_size=12,
)


def outcome(store: VersionedStore, operations: tuple[Operation, ...]) -> str:
    """The outcome of a step: the name of its error, or `done`."""
    try:
        store.apply(operations)
    except MedusaError as error:
        return type(error).__name__
    return "done"


@pytest.mark.system
@given(steps=STEPS)
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_memory_and_zookeeper_agree_on_random_steps(
    embedded_stack: EmbeddedStack, steps: list[list[Operation]]
) -> None:
    """The same steps have the same outcomes and leave the same tree in both."""
    memory = MemoryStore(MemoryTree())
    real = zookeeper_sessions(embedded_stack)()
    try:
        for step in steps:
            assert outcome(real, tuple(step)) == outcome(memory, tuple(step))
        for path in ("/a", "/b", "/a/x", "/a/y", "/a/x/z"):
            assert real.get(path) == memory.get(path)
            assert real.children(path) == memory.children(path)
    finally:
        real.close()


def test_many_values_are_returned_in_the_order_of_the_paths(
    open_session: OpenSession,
) -> None:
    """Also for more paths than one request contains; a missing path gives None."""
    store = open_session()
    store.make_parents("/many")
    for first in range(0, 600, 100):
        store.apply(tuple(Create(f"/many/{n}", str(n).encode()) for n in range(first, first + 100)))
    numbers = [*range(599, -1, -1), 1_000]
    found = store.get_all([f"/many/{n}" for n in numbers])
    assert [one and one.value for one in found] == [*(str(n).encode() for n in numbers[:-1]), None]
    assert store.get_all([]) == ()


def test_a_value_can_be_set_at_any_version(open_session: OpenSession) -> None:
    """The version is incremented; a missing path is not created."""
    store = open_session()
    store.make_parents("/a")
    store.apply((Create("/a/b", b"0"),))
    for value in (b"1", b"2"):
        store.apply((Set("/a/b", value, None),))
    assert store.get("/a/b") == Versioned(b"2", 2)
    with pytest.raises(NoSuchPathError):
        store.apply((Set("/a/c", b"1", None),))


def test_reads_after_a_sync_are_not_stale(open_session: OpenSession) -> None:
    """A session reads every write that another session has had acknowledged."""
    one, other = open_session(), open_session()
    one.make_parents("/a")
    one.apply((Create("/a/b", b"new"),))
    other.sync()
    assert other.get("/a/b") == Versioned(b"new", 0)


def test_children_of_many_paths_are_returned_in_the_order_of_the_paths(
    open_session: OpenSession,
) -> None:
    """Also for more paths than one request contains; a missing path has none."""
    store = open_session()
    store.make_parents("/many")
    for first in range(0, 600, 100):
        store.apply(tuple(Create(f"/many/{n}", b"") for n in range(first, first + 100)))
    store.make_parents("/many/3/b")
    store.make_parents("/many/3/a")
    paths = ["/none", "/many/3", *(f"/many/{n}" for n in range(4, 600)), "/many"]
    found = store.children_all(paths)
    assert found[:3] == ((), ("a", "b"), ())
    assert (len(found), len(found[-1])) == (len(paths), 600)
    assert store.children_all([]) == ()
