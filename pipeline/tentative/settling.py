"""Settling: which tentative results are confirmed, replaced or undone, and what is done.

A settler registers results before they are sent, and reads the stable topic. When it has read all
stable results up to a promise, those tentative ones up to it that are open have no stable one: they
are undone. A generation is done when its fork has ended and the promise has passed the newest of
its results: the undos are flushed before the done mark is sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis
from pipeline.tentative.by_time import MOST_OPEN, ByTime, is_above, later
from pipeline.tentative.generation import Generation
from pipeline.tentative.records import (
    TentativeResult,
    Undo,
    digest,
    undo_of,
)


@dataclass(frozen=True, slots=True)
class Registered:
    """Results that are to be sent, and those that are not.

    Args:
        accepted: to be sent, in the given order.
        refused: settled already, or of a fork that has ended, or older than what was sent.
    """

    accepted: tuple[TentativeResult, ...]
    refused: tuple[TentativeResult, ...]


@dataclass(frozen=True, slots=True)
class Settled:
    """What a promise has settled, since the settlement before.

    Args:
        confirmed: number of results with an equal stable one.
        replaced: number of results with a different stable one.
        superseded: number of results that one of a newer generation has replaced.
        undone: results without a stable one, by event time.
        done: generations of which everything is settled, the oldest first.
        promised_ms: the promise of their done marks.
    """

    confirmed: int
    replaced: int
    superseded: int
    undone: tuple[Undo, ...]
    done: tuple[Generation, ...]
    promised_ms: Millis


@dataclass(frozen=True, slots=True)
class OpenResult:
    """A result that was sent, and is not settled: its undo, and the digest of its value."""

    undo: Undo
    digest: bytes


@dataclass(frozen=True, slots=True)
class Left:
    """What earlier settlers have left.

    Args:
        open_results: those that are not settled, at most as many as a settler keeps.
        last_ms: of each generation that is not done, the last event time of its results.
        promised_ms: the stable boundary has passed at least this time.
        newest: the newest generation.
    """

    open_results: Iterable[OpenResult]
    last_ms: Mapping[Generation, Millis]
    promised_ms: Millis | None
    newest: Generation | None


@dataclass(slots=True)
class _Counted:
    confirmed: int = 0
    replaced: int = 0
    superseded: int = 0


class Settling:
    """State of the settler of one output.

    A generation begins with its first result, and no older one begins after it.

    Args:
        most_open: the number of open results, and of stable ones above the promise, that it keeps.
    """

    def __init__(self, most_open: int = MOST_OPEN) -> None:
        self._most = most_open
        self._open: ByTime[OpenResult] = ByTime()
        self._stable: ByTime[bytes] = ByTime()
        self._last_ms: dict[Generation, Millis | None] = {}
        self._ended: set[Generation] = set()
        self._counted = _Counted()
        self._refused_to_ms: Millis | None = None
        self.promised_ms: Millis | None = None
        self.newest: Generation | None = None

    @classmethod
    def resumed(cls, left: Left, most_open: int = MOST_OPEN) -> Self:
        """A settler that continues what others have left; all of their forks have ended."""
        found = cls(most_open)
        for one in left.open_results:
            found._open.put(one.undo.id, one.undo.timestamp_ms, one)
        found._last_ms = dict(left.last_ms)
        found._ended = set(left.last_ms)
        found.promised_ms, found.newest = left.promised_ms, left.newest
        return found

    @property
    def room(self) -> int:
        """How many more ids may be open."""
        return max(0, self._most - len(self._open))

    def added(self, results: Sequence[TentativeResult]) -> int:
        """How many ids these would add; others take the place of open ones."""
        return sum(one.id not in self._open for one in results)

    @property
    def open_results(self) -> int:
        """How many results are sent, and not settled."""
        return len(self._open)

    @property
    def first_open_ms(self) -> Millis | None:
        """The first event time of an open result; None: there is none."""
        return self._open.first_ms

    @property
    def unsettled(self) -> tuple[Generation, ...]:
        """The generations that are not done, the oldest first."""
        return tuple(sorted(self._last_ms))

    def register(self, results: Sequence[TentativeResult]) -> Registered:
        """Register results before they are sent.

        Raises:
            BrokenInvariantError: there are more of them than there is room for.
        """
        if (added := self.added(results)) > self.room:
            raise BrokenInvariantError(f"{added} tentative results, but room for {self.room}")
        accepted, refused = [], []
        for result in results:
            if self._accepts(result):
                self._put(result)
                accepted.append(result)
            else:
                refused.append(result)
        return Registered(tuple(accepted), tuple(refused))

    def stable(self, result_id: bytes, value_digest: bytes, timestamp_ms: Millis) -> None:
        """A stable result was read; it settles the open one with its id."""
        found = self._open.pop(result_id)
        if found is not None and found.digest == value_digest:
            self._counted.confirmed += 1
        elif found is not None:
            self._counted.replaced += 1
        if is_above(timestamp_ms, self.promised_ms):
            self._keep(result_id, value_digest, timestamp_ms)

    def settle(self, promised_ms: Millis) -> Settled:
        """All stable results up to a promise were read; a lower promise than before is that one."""
        self.promised_ms = promised_ms = later(promised_ms, self.promised_ms)
        self._stable.take_to(promised_ms)
        undone = tuple(found.undo for found in self._open.take_to(promised_ms))
        done = tuple(
            generation
            for generation in sorted(self._ended)
            if not is_above(self._last_ms[generation], promised_ms)
        )
        for generation in done:
            self._ended.discard(generation)
            del self._last_ms[generation]
        counted, self._counted = self._counted, _Counted()
        return Settled(
            confirmed=counted.confirmed,
            replaced=counted.replaced,
            superseded=counted.superseded,
            undone=undone,
            done=done,
            promised_ms=promised_ms,
        )

    def end(self, generation: Generation) -> None:
        """A fork has ended: it has no more results. One without any result is done, too."""
        if self._knows(generation):
            self._ended.add(generation)

    def has_ended(self, generation: Generation) -> bool:
        """Whether a generation that has had results has no more: it has ended, or is done."""
        begun = self.newest is not None and generation <= self.newest
        return begun and (generation in self._ended or generation not in self._last_ms)

    def _knows(self, generation: Generation) -> bool:
        """Whether a generation is not done; a newer one than all others begins here."""
        if self.newest is None or generation > self.newest:
            self.newest = generation
            self._last_ms[generation] = None
        return generation in self._last_ms

    def _accepts(self, result: TentativeResult) -> bool:
        generation = result.generation
        if not self._knows(generation) or generation in self._ended:
            return False
        if not is_above(result.timestamp_ms, self.promised_ms):
            return False
        if not is_above(result.timestamp_ms, self._refused_to_ms) or result.id in self._stable:
            return False
        before = self._open.get(result.id)
        return before is None or before.undo.generation <= generation

    def _put(self, result: TentativeResult) -> None:
        before = self._open.get(result.id)
        if before is not None and before.undo.generation < result.generation:
            self._counted.superseded += 1
        found = OpenResult(undo_of(result), digest(result.value))
        self._open.put(result.id, result.timestamp_ms, found)
        last_ms = self._last_ms[result.generation]
        self._last_ms[result.generation] = later(result.timestamp_ms, last_ms)

    def _keep(self, result_id: bytes, value_digest: bytes, timestamp_ms: Millis) -> None:
        """Keep a stable id until the promise has passed it.

        When there are too many, all are dropped: tentative results up to the last of them are
        refused then, since it is not known any more which are stable.
        """
        self._stable.put(result_id, timestamp_ms, value_digest)
        if len(self._stable) > self._most:
            self._refused_to_ms = self._stable.clear()
