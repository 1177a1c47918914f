from collections.abc import Callable, Sequence

import pytest

from brokers.versioned_store import Operation, Versioned
from pipeline.errors import RetryError, UnavailableError
from pipeline.ids import ZnodePath
from schemas.registry.config import Config, Mode
from schemas.registry.journal import Journal, LostRaceError
from schemas.registry.prepare import Sent
from schemas.registry.records import STEPS_MAX
from schemas.registry.register import register
from schemas.registry.state import ConfigPut, ModePut, State, SubjectPut
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.schemas.registry.making import INT, LONG, NAME

ROOT = ZnodePath("/registry")


class ConcurrentlyChanged(MemoryStore):
    """A store that is changed before values are read."""

    def __init__(self, tree: MemoryTree) -> None:
        super().__init__(tree)
        self.before: Callable[[], None] | None = None

    def get_all(self, paths: Sequence[str]) -> tuple[Versioned | None, ...]:
        """Change the store, then return the values."""
        if self.before is not None:
            self.before()
        return super().get_all(paths)


class ResponseLost(MemoryStore):
    """A store that executes a step and loses its response."""

    lost = False

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Execute it and fail."""
        super().apply(operations)
        if self.lost:
            raise UnavailableError("no answer")


def _add(journal: Journal, subject: str, text: str) -> State:
    """Register a schema without a compatibility check."""
    state = journal.newest().after([ConfigPut(NAME(":.__GLOBAL:"), Config())])
    made = register(state, NAME(subject), Sent(text), normal=False, now_ms=1)
    return journal.write(made.changes)


def test_an_empty_store_is_an_empty_registry() -> None:
    """Reading writes nothing."""
    store = MemoryStore(MemoryTree())
    assert Journal(store, ROOT).newest() == State()
    assert store.children("/") == ()


def test_two_journals_of_one_tree_agree() -> None:
    """At once, and a later one reads everything."""
    tree = MemoryTree()
    one, other = (Journal(MemoryStore(tree), ROOT) for _ in range(2))
    written = _add(one, "s", INT)
    assert other.newest() == written == one.newest()
    _add(other, "a/b", LONG)
    other.write([ModePut(NAME(""), Mode.IMPORT), ConfigPut(NAME("s"), Config(group="g"))])
    other.write([ModePut(NAME(""), None)])
    assert one.newest() == other.newest() == Journal(MemoryStore(tree), ROOT).newest()
    assert not one.newest().modes


def test_a_journal_far_behind_reads_everything() -> None:
    """More steps than the revision contains; removed places are removed."""
    tree = MemoryTree()
    one, other = (Journal(MemoryStore(tree), ROOT) for _ in range(2))
    one.newest()
    one.write([ModePut(NAME("gone"), Mode.IMPORT)])
    other.newest()
    one.write([ModePut(NAME("gone"), None)])
    for number in range(STEPS_MAX + 1):
        one.write([ModePut(NAME(f"s{number}"), Mode.IMPORT)])
    assert other.newest() == one.newest()
    assert len(other.newest().modes) == STEPS_MAX + 1


@pytest.mark.parametrize("first", [True, False])
def test_of_two_concurrent_decisions_one_is_first(first: bool) -> None:  # noqa: FBT001 - of the table
    """The other gets an error, nothing is changed, and it can be retried."""
    tree = MemoryTree()
    one, other = (Journal(MemoryStore(tree), ROOT) for _ in range(2))
    if not first:
        one.newest()
        one.write([ModePut(NAME("s"), Mode.READONLY)])
    one.newest()
    other.newest()
    one.write([ModePut(NAME("s"), Mode.IMPORT)])
    with pytest.raises(LostRaceError):
        other.write([ModePut(NAME("s"), Mode.FORWARD)])
    assert other.newest().modes[NAME("s")] is Mode.IMPORT
    other.write([ModePut(NAME("s"), Mode.FORWARD)])
    assert one.newest().modes[NAME("s")] is Mode.FORWARD


def test_removing_a_missing_place_changes_nothing() -> None:
    """And a place that changes twice in a step has its last value."""
    journal = Journal(MemoryStore(MemoryTree()), ROOT)
    journal.newest()
    journal.write([ModePut(NAME("s"), None), SubjectPut(NAME("s"), ())])
    journal.write([ModePut(NAME("s"), Mode.IMPORT), ModePut(NAME("s"), Mode.FORWARD)])
    assert dict(journal.newest().modes) == {NAME("s"): Mode.FORWARD}


@pytest.mark.parametrize("fresh", [True, False])
def test_writes_during_a_read_are_consistent(fresh: bool) -> None:  # noqa: FBT001 - of the table
    """A subject is read with a schema that was added after its places were listed."""
    tree = MemoryTree()
    writer, store = Journal(MemoryStore(tree), ROOT), ConcurrentlyChanged(tree)
    reader = Journal(store, ROOT)
    _add(writer, "s", INT)
    if not fresh:
        reader.newest()
        writer.write(
            [ModePut(NAME("s"), None), SubjectPut(NAME("s"), writer.newest().versions(NAME("s")))]
        )

    def meddle() -> None:
        store.before = None
        _add(writer, "s", LONG)

    store.before = meddle
    assert reader.newest() == writer.newest()
    assert len(reader.newest().versions(NAME("s"))) == 2


def test_endless_changes_are_an_error() -> None:
    """Reading fails, rather than never end or return an inconsistent state."""
    tree = MemoryTree()
    writer, store = Journal(MemoryStore(tree), ROOT), ConcurrentlyChanged(tree)
    writer.newest()
    reader = Journal(store, ROOT)
    store.before = lambda: void(writer.write([ModePut(NAME("s"), Mode.IMPORT)]))
    with pytest.raises(RetryError, match="faster than it can be read"):
        reader.newest()
    store.before = None
    assert reader.newest() == writer.newest()


def void(_: object) -> None:
    """Nothing."""


def test_a_step_without_a_response_is_resolved_by_the_next_read() -> None:
    """It may have been executed."""
    store = ResponseLost(MemoryTree())
    journal = Journal(store, ROOT)
    journal.newest()
    journal.write([ModePut(NAME("s"), Mode.IMPORT)])
    store.lost = True
    with pytest.raises(UnavailableError):
        journal.write([ModePut(NAME("s"), Mode.FORWARD)])
    store.lost = False
    assert journal.newest().modes[NAME("s")] is Mode.FORWARD
    journal.write([ModePut(NAME("s"), None)])
    assert not journal.newest().modes
