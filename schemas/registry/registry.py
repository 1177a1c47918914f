"""The registry of one process: everybody reads and decides on one state, one thread keeps it new.

Reading asks that thread for a state that is no older than the question; all who ask while it looks
get one answer. Changing hands it a decision, which it makes on the newest state; what is decided at
the same time is written in one step. So any number of servers on one store agree, and many clients
at once cost few steps.
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
"""Questions that wait for their turn; more are turned away."""
TOGETHER_MAX: Final = 128
ATTEMPTS_MAX: Final = 100
"""Whoever loses a race loses it to somebody who got on; a hundred others at once are too many."""
_STEP_MAX: Final = MAX_STEP_BYTES - 100_000
"""Bytes of one step; the rest is left for the revision."""


Decide = Callable[[State], Decided[T]]
"""Decides on a state; raises what it refuses. It may be called several times."""


@dataclass(frozen=True, slots=True)
class _Asked:
    decide: Decide[Any] | None
    future: "Future[Any]"
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class _Made:
    asked: _Asked
    decided: Decided[Any]


class Registry:
    """Reads and changes a registry. Safe between threads."""

    def __init__(self, store: VersionedStore, root: ZnodePath) -> None:
        self._journal = Journal(store, root)
        self._waiting: queue.Queue[_Asked | None] = queue.Queue(WAITING_MAX)
        self._thread = threading.Thread(target=self._run, name="schema-registry", daemon=True)
        self._closed = False
        self._stopping = False
        self._thread.start()

    def ask(self) -> "Future[State]":
        """A state with everything that was acknowledged before; fails as `state` does."""
        return self._put(None)

    def state(self) -> State:
        """A state with everything that was acknowledged to anybody before this call.

        Raises:
            UnavailableError: the store does not answer.
            RetryError: too many others ask or change at the same time.
        """
        return _result(self.ask())

    def change(self, decide: Decide[T]) -> T:
        """Decide and write; gives the answer when it is true for everybody.

        Raises:
            MedusaError: what `decide` refuses.
            UnavailableError: the store does not answer; if it was asked to write, it may have.
            RetryError: too many others ask or change at the same time.
        """
        made = decide(self.state())  # costly parts are remembered, and not done in the one thread
        if not made.changes:
            return made.answer
        answer: T = _result(self._put(decide))
        return answer

    def close(self) -> None:
        """Answer who has asked, then stop. Closing twice does nothing."""
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
            self._waiting.put_nowait(_Asked(decide, future))
        except queue.Full:
            raise RetryError("too many requests at the same time") from None
        return future

    def _run(self) -> None:
        again: list[_Asked] = []
        while again or not self._stopping:
            asked = again or self._next()
            again = []
            try:
                again = self._answer(asked)
            except Exception as error:  # noqa: BLE001 - whoever asked must hear of it
                for one in asked:
                    _fail(one, error)

    def _next(self) -> list[_Asked]:
        """All who wait, as soon as one does, but those who no longer want to know."""
        one = self._waiting.get()
        found: list[_Asked] = []
        while one is not None:
            if one.future.set_running_or_notify_cancel():
                found.append(one)
            if len(found) == TOGETHER_MAX or self._waiting.empty():
                return found
            one = self._waiting.get()  # this thread alone takes: there is one
        self._stopping = True
        return found

    def _answer(self, asked: Sequence[_Asked]) -> list[_Asked]:
        """Answer some; gives those who lost a race and have to be decided again."""
        if not asked:
            return []
        state = newest = self._journal.newest()
        for one in asked:
            if one.decide is None:
                one.future.set_result(newest)  # what is decided below is not written yet
        made: list[_Made] = []
        left: list[_Asked] = []
        size = 0
        for one in asked:
            if one.decide is None:
                continue
            try:
                decided = one.decide(state)
                bytes_more = _size(decided.changes)
                after = state.after(decided.changes)
            except Exception as error:  # noqa: BLE001 - whoever asked must hear of it
                if state is newest:
                    _fail(one, error)
                else:  # perhaps for what is not written in the end
                    left.append(one)
                continue
            if made and size + bytes_more > _STEP_MAX:
                left.append(one)
                continue
            size += bytes_more
            made.append(_Made(one, decided))
            state = after
        return [*self._written(made), *left]

    def _written(self, made: Sequence[_Made]) -> list[_Asked]:
        changes = [change for one in made for change in one.decided.changes]
        try:
            if changes:
                self._journal.write(changes)
        except LostRaceError as error:
            return _again([one.asked for one in made], error)
        for one in made:
            one.asked.future.set_result(one.decided.answer)
        return []


def _size(changes: Sequence[Change]) -> int:
    """Bytes of changes in a step.

    Raises:
        TooLargeError: they do not fit in one.
    """
    size = sum(len(place_of(one)) + len(value_of(one) or b"") for one in changes)
    if size > _STEP_MAX:
        raise TooLargeError(f"{size} bytes at once, at most {_STEP_MAX} are possible")
    return size


def _again(asked: Sequence[_Asked], error: LostRaceError) -> list[_Asked]:
    """Those who may try again; who tried too often hears of it."""
    for one in asked:
        if one.attempts + 1 >= ATTEMPTS_MAX:
            _fail(one, error)
    return [
        _Asked(one.decide, one.future, one.attempts + 1) for one in asked if not one.future.done()
    ]


def _fail(one: _Asked, error: BaseException) -> None:
    if not one.future.done():
        one.future.set_exception(error)


def _result(future: "Future[T]") -> T:
    try:
        return future.result(WITHIN_S)
    except TimeoutError as error:
        raise RetryError(f"no answer within {WITHIN_S:g} s", place="the schema registry") from error
