"""Registry of one process: a queue of requests and one thread that reads and writes the store.

A read returns a state that is not older than the request; all requests that wait meanwhile share
one read of the store. A change enqueues a decision, which the thread makes on the newest state;
decisions that wait together are written in one step (group commit). So any number of servers on one
store agree, and many concurrent clients need few steps.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from brokers.versioned_store import MAX_STEP_BYTES, VersionedStore
from pipeline.errors import RetryError, UnavailableError
from pipeline.ids import ZnodePath
from schemas.registry.journal import Journal, LostRaceError
from schemas.registry.records import place_of, value_of
from schemas.registry.refused import TooLargeError
from schemas.registry.state import Change, Decided, State

T = TypeVar("T")
WITHIN_S: Final = 30.0
WAITING_MAX: Final = 1_000
"""Size of the queue; further requests are rejected."""
TOGETHER_MAX: Final = 128
ATTEMPTS_MAX: Final = 100
"""Of one request. Each lost compare-and-set is a success of another server; 100 are overload."""
_STEP_MAX: Final = MAX_STEP_BYTES - 100_000
"""Bytes of one step; the rest is reserved for the revision."""


Decide = Callable[[State], Decided[T]]
"""A decision on a state; raises if it refuses. It may be called several times."""


@dataclass(frozen=True, slots=True)
class _Request:
    decide: Decide[Any] | None
    future: "Future[Any]"
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class _Decision:
    request: _Request
    decided: Decided[Any]


class Registry:
    """Reads and changes of a registry. Thread-safe."""

    def __init__(self, store: VersionedStore, root: ZnodePath) -> None:
        self._journal = Journal(store, root)
        self._waiting: queue.Queue[_Request | None] = queue.Queue(WAITING_MAX)
        self._thread = threading.Thread(target=self._run, name="schema-registry", daemon=True)
        self._closed = False
        self._stopping = False
        self._thread.start()

    def ask(self) -> "Future[State]":
        """Request a state, as `state` returns it; the future fails as `state` does."""
        return self._put(None)

    def state(self) -> State:
        """A state with every change that any client got acknowledged before this call.

        Raises:
            UnavailableError: the store does not answer.
            RetryError: there are too many concurrent requests or changes.
        """
        return _result(self.ask())

    def change(self, decide: Decide[T]) -> T:
        """Decide and write; returns the answer once the changes are visible to all clients.

        Raises:
            MedusaError: `decide` refuses.
            UnavailableError: the store does not answer; a write may have been executed.
            RetryError: there are too many concurrent requests or changes.
        """
        made = decide(self.state())  # caches costly results, so that the one thread does not wait
        if not made.changes:
            return made.answer
        answer: T = _result(self._put(decide))
        return answer

    def close(self) -> None:
        """Answer pending requests, then stop. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._waiting.put(None)
            self._thread.join(WITHIN_S)

    # --- the one thread -----------------------------------------------------------------------

    def _put(self, decide: Decide[Any] | None) -> "Future[Any]":
        future: Future[Any] = Future()
        if self._closed:
            raise UnavailableError("the schema registry has stopped")
        try:
            self._waiting.put_nowait(_Request(decide, future))
        except queue.Full:
            raise RetryError("too many requests at the same time") from None
        return future

    def _run(self) -> None:
        again: list[_Request] = []
        while again or not self._stopping:
            requests = again or self._next()
            again = []
            try:
                again = self._answer(requests)
            except Exception as error:  # noqa: BLE001 - the future must fail with it
                for one in requests:
                    _fail(one, error)

    def _next(self) -> list[_Request]:
        """Wait for a request, then take all pending ones that are not cancelled."""
        one = self._waiting.get()
        found: list[_Request] = []
        while one is not None:
            if one.future.set_running_or_notify_cancel():
                found.append(one)
            if len(found) == TOGETHER_MAX or self._waiting.empty():
                return found
            one = self._waiting.get()  # does not block: only this thread takes requests
        self._stopping = True
        return found

    def _answer(self, requests: Sequence[_Request]) -> list[_Request]:
        """Answer requests; returns those that have to be decided again."""
        if not requests:
            return []
        state = newest = self._journal.newest()
        for one in requests:
            if one.decide is None:
                one.future.set_result(newest)  # without the decisions below, not written yet
        made: list[_Decision] = []
        left: list[_Request] = []
        size = 0
        for one in requests:
            if one.decide is None:
                continue
            try:
                decided = one.decide(state)
                bytes_more = _size(decided.changes)
                after = state.after(decided.changes)
            except Exception as error:  # noqa: BLE001 - the future must fail with it
                if state is newest:
                    _fail(one, error)
                else:  # perhaps due to a change that is not written in the end
                    left.append(one)
                continue
            if made and size + bytes_more > _STEP_MAX:
                left.append(one)
                continue
            size += bytes_more
            made.append(_Decision(one, decided))
            state = after
        return [*self._written(made), *left]

    def _written(self, made: Sequence[_Decision]) -> list[_Request]:
        changes = [change for one in made for change in one.decided.changes]
        try:
            if changes:
                self._journal.write(changes)
        except LostRaceError as error:
            return _again([one.request for one in made], error)
        for one in made:
            one.request.future.set_result(one.decided.answer)
        return []


def _size(changes: Sequence[Change]) -> int:
    """Size of changes in bytes.

    Raises:
        TooLargeError: they do not fit in one step.
    """
    size = sum(len(place_of(one)) + len(value_of(one) or b"") for one in changes)
    if size > _STEP_MAX:
        raise TooLargeError(f"{size} bytes at once, at most {_STEP_MAX} are possible")
    return size


def _again(requests: Sequence[_Request], error: LostRaceError) -> list[_Request]:
    """Requests to retry after a lost compare-and-set; fails those with ATTEMPTS_MAX attempts."""
    for one in requests:
        if one.attempts + 1 >= ATTEMPTS_MAX:
            _fail(one, error)
    return [
        _Request(one.decide, one.future, one.attempts + 1)
        for one in requests
        if not one.future.done()
    ]


def _fail(one: _Request, error: BaseException) -> None:
    if not one.future.done():
        one.future.set_exception(error)


def _result(future: "Future[T]") -> T:
    try:
        return future.result(WITHIN_S)
    except TimeoutError as error:
        raise RetryError(f"no answer within {WITHIN_S:g} s", place="the schema registry") from error
