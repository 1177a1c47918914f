"""`Registry`: one thread that reads, decides and writes for all callers."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial

import pytest

from brokers.versioned_store import Operation, VersionConflictError
from pipeline.errors import InputError, MedusaError, RetryError, UnavailableError
from pipeline.ids import ZnodePath
from schemas.registry.config import Config, Mode
from schemas.registry.prepare import Sent
from schemas.registry.refused import TooLargeError
from schemas.registry.register import register
from schemas.registry.registry import WAITING_MAX, Decide, Registry
from schemas.registry.state import Change, ConfigPut, Decided, ModePut, State
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.schemas.registry.making import NAME, record

ROOT = ZnodePath("/registry")


class Gate(MemoryStore):
    """A store that fails or blocks when the test requires it."""

    def __init__(self, tree: MemoryTree) -> None:
        super().__init__(tree)
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Event()
        self.refusals = 0
        self.refusal: MedusaError = VersionConflictError("too late")
        self.steps = 0

    def sync(self) -> None:
        """Wait at the gate."""
        self.entered.set()
        self.open.wait(30)
        super().sync()

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Lose the compare-and-set, as often as required."""
        self.steps += 1
        if self.refusals:
            self.refusals -= 1
            raise self.refusal
        super().apply(operations)

    def close(self) -> None:
        """Close the gate."""
        self.entered.clear()
        self.open.clear()


@pytest.fixture
def store() -> Gate:
    """A store."""
    return Gate(MemoryTree())


@pytest.fixture
def registry(store: Gate) -> Iterator[Registry]:
    """A registry on it."""
    made = Registry(store, ROOT)
    yield made
    store.open.set()
    made.close()


def adds(subject: str, text: str) -> Decide[tuple[int, int]]:
    """Registers a schema."""

    def decide(state: State) -> Decided[tuple[int, int]]:
        made = register(state, NAME(subject), Sent(text), normal=False, now_ms=1)
        return Decided((made.version.id, made.version.number), made.changes)

    return decide


def puts(*changes: Change) -> Decide[str]:
    """Changes a value."""
    return lambda _: Decided("done", changes)


def together(calls: Sequence[Callable[[], object]]) -> None:
    """Call all at the same time."""
    start = threading.Barrier(len(calls))

    def one(call: Callable[[], object]) -> None:
        start.wait(30)
        call()

    threads = [threading.Thread(target=one, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_two_registries_agree_at_once() -> None:
    """A change acknowledged by one is visible in the other."""
    tree = MemoryTree()
    one, other = (Registry(MemoryStore(tree), ROOT) for _ in range(2))
    assert one.change(adds("s", record())) == (1, 1)
    assert other.state() == one.state()
    assert other.change(adds("s", record())) == (1, 1)
    assert other.change(adds("t", record("T"))) == (2, 1)
    assert one.state().contexts == (".",)
    assert one.ask().result(30) == other.ask().result(30)
    one.close()
    other.close()


def test_racing_threads_of_two_registries_agree() -> None:
    """Every content has one id, every subject its versions without a gap."""
    tree = MemoryTree()
    registries = [Registry(MemoryStore(tree), ROOT) for _ in range(2)]
    decisions = [(f"s{n % 3}", record("R", *(f"a{m}=" for m in range(n % 4)))) for n in range(24)]
    answers: list[tuple[int, int]] = [(0, 0)] * len(decisions)

    def ask(index: int) -> None:
        answers[index] = registries[index % 2].change(adds(*decisions[index]))

    together([partial(ask, index) for index in range(len(decisions))])
    by_text: dict[str, set[int]] = {}
    for (_, text), (number, _) in zip(decisions, answers, strict=True):
        by_text.setdefault(text, set()).add(number)
    assert sorted(by_text.values(), key=min) == [{1}, {2}, {3}, {4}]
    state = registries[0].state()
    assert state == registries[1].state()
    for versions in state.subjects.values():
        assert [one.number for one in versions] == [1, 2, 3, 4]
    for one in registries:
        one.close()


def test_concurrent_requests_are_one_step(registry: Registry, store: Gate) -> None:
    """Requests that arrive while others are served are served together."""
    registry.change(puts(ModePut(NAME("s"), Mode.IMPORT)))
    store.close()
    first = registry.ask()
    store.entered.wait(30)
    before, requests = (
        store.steps,
        [registry._put(adds(f"s{n}", record(f"R{n}"))) for n in range(9)],
    )
    store.open.set()
    first.result(30)
    assert [one.result(30) for one in requests] == [(n + 1, 1) for n in range(9)]
    assert store.steps == before + 1


def test_a_failing_decision_fails_alone(registry: Registry, store: Gate) -> None:
    """A refusal, an exception, or a change that cannot be written."""

    def refuses(_: State) -> Decided[str]:
        raise InputError("no")

    def breaks(_: State) -> Decided[str]:
        raise ZeroDivisionError

    store.close()
    first = registry.ask()
    store.entered.wait(30)
    odd = puts(ConfigPut(NAME("s"), Config(alias="\ud800")))
    large = puts(ConfigPut(NAME("s"), Config(alias="x" * 900_000)))
    requests = [registry._put(one) for one in (refuses, breaks, odd, large, adds("s", record()))]
    store.open.set()
    first.result(30)
    errors = [type(one.exception(30)) for one in requests[:4]]
    assert errors == [InputError, ZeroDivisionError, UnicodeEncodeError, TooLargeError]
    assert requests[4].result(30) == (1, 1)
    with pytest.raises(InputError, match="no"):
        registry.change(refuses)


def test_a_too_large_step_is_split(registry: Registry, store: Gate) -> None:
    """Each of them fits separately."""
    store.close()
    first = registry.ask()
    store.entered.wait(30)
    requests = [
        registry._put(puts(ConfigPut(NAME(f"s{n}"), Config(alias="x" * 300_000)))) for n in range(5)
    ]
    store.open.set()
    first.result(30)
    assert [one.result(30) for one in requests] == ["done"] * 5
    assert store.steps == 3
    assert len(registry.state().configs) == 5


def test_a_lost_compare_and_set_is_retried(registry: Registry, store: Gate) -> None:
    """On the newest state; after too many attempts it fails."""
    store.refusals = 5
    assert registry.change(adds("s", record())) == (1, 1)
    store.refusals = 1000
    with pytest.raises(RetryError, match="first"):
        registry.change(adds("s", record("R", "a=")))
    store.refusals = 0
    assert registry.change(adds("s", record("R", "a="))) == (2, 2)


def test_an_unavailable_store_is_reported(registry: Registry, store: Gate) -> None:
    """To every caller, and requests succeed when it responds again."""
    registry.change(adds("s", record()))
    store.suspend()
    with pytest.raises(UnavailableError):
        registry.state()
    with pytest.raises(UnavailableError):
        registry.change(adds("s", record("R", "a=")))
    store.resume()
    assert registry.change(adds("s", record("R", "a="))) == (2, 2)


def test_unwritten_changes_are_never_visible(registry: Registry, store: Gate) -> None:
    """Also to concurrent reads while a change fails; nor is a request refused for it."""
    store.refusal = UnavailableError("away")
    read_only = puts(ModePut(NAME("s"), Mode.READONLY))
    seen: list[bool] = []
    for _ in range(20):
        store.refusals = 1
        failed = threading.Event()

        def change(failed: threading.Event = failed) -> None:
            try:
                registry.change(read_only)
            except UnavailableError:
                failed.set()

        def look(failed: threading.Event = failed) -> None:
            for _ in range(1_000):
                seen.append(bool(registry.state().modes))
                if failed.is_set():
                    return

        together([change, *[look] * 4])
        assert failed.is_set()
    assert seen
    assert not any(seen)


def test_reads_do_not_wait_for_decisions(registry: Registry, store: Gate) -> None:
    """Reads of the same time, and later ones, are first."""
    store.close()
    first = registry.ask()
    store.entered.wait(30)
    read: list[bool] = []

    def decide(_: State) -> Decided[str]:
        read.append(request.done())
        return Decided("done")

    decided = registry._put(decide)
    request = registry.ask()
    store.open.set()
    assert (first.result(30), decided.result(30)) == (State(), "done")
    assert read == [True]


def test_a_change_without_effect_writes_nothing(registry: Registry, store: Gate) -> None:
    """A repeated request costs a read."""
    registry.change(adds("s", record()))
    before = store.steps
    assert registry.change(adds("s", record())) == (1, 1)
    assert store.steps == before


def test_requests_above_the_limit_are_refused(registry: Registry, store: Gate) -> None:
    """Rather than wait beyond every timeout; waiting ones get responses."""
    store.close()
    first = registry.ask()
    store.entered.wait(30)
    waiting: list[Future[State]] = [registry.ask() for _ in range(WAITING_MAX)]
    with pytest.raises(RetryError, match="too many requests"):
        registry.ask()
    store.open.set()
    assert all(one.result(30) == State() for one in (first, *waiting))


def test_a_cancelled_request_has_no_effect(registry: Registry, store: Gate) -> None:
    """Of a disconnected client; its change is not made."""
    store.close()
    first = registry.ask()
    store.entered.wait(30)
    gone, request = registry._put(adds("gone", record())), registry.ask()
    assert gone.cancel()
    store.open.set()
    first.result(30)
    assert request.result(30) == State()
    assert not registry.state().subjects


def test_closing_completes_pending_requests(store: Gate) -> None:
    """And refuses the others; closing twice does nothing."""
    registry = Registry(store, ROOT)
    store.close()
    first = registry.ask()
    store.entered.wait(30)
    requests = [registry._put(adds(f"s{n}", record(f"R{n}"))) for n in range(3)]
    closing = threading.Thread(target=registry.close)
    closing.start()
    store.open.set()
    closing.join(30)
    assert first.done()
    assert [one.result(0) for one in requests] == [(1, 1), (2, 1), (3, 1)]
    registry.close()
    with pytest.raises(UnavailableError, match="stopped"):
        registry.state()
