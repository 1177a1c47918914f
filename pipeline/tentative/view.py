"""View: tentative and stable results of one output as a reader sees them together.

The topics may be read in any order relative to each other. A stable result counts always. A
tentative one counts from when it is read until it is confirmed, replaced or undone: at the latest
when the covered boundary passes it, that is the boundary whose positions in the stable topic were
all read. So a lost undo or done mark changes nothing of what is seen in the end.
"""

from dataclasses import dataclass
from typing import Final

from pipeline.errors import RefusedError
from pipeline.ids import Millis
from pipeline.tentative.by_time import MOST_OPEN, ByTime, is_above, later
from pipeline.tentative.generation import Generation
from pipeline.tentative.records import (
    DoneMark,
    TentativeRecord,
    TentativeResult,
    Undo,
    digest,
    undo_of,
)

MOST_GENERATIONS: Final = 10_000
"""How many generations a view remembers as done, so that each is reported once."""


class TooManyTentativeError(RefusedError):
    """A reader keeps no more tentative results."""

    code = "too-many-tentative"


@dataclass(frozen=True, slots=True)
class OnTentative:
    """A tentative result counts now, in place of an earlier one with its id."""

    result: TentativeResult


@dataclass(frozen=True, slots=True)
class OnStable:
    """A stable result counts now, for ever.

    Args:
        id: of the result; None: it has none.
        confirms: whether the tentative result with its id is equal; None: there was none.
    """

    id: bytes | None
    confirms: bool | None


@dataclass(frozen=True, slots=True)
class OnUndo:
    """A tentative result counts no more: there is no stable one with its id."""

    undo: Undo


@dataclass(frozen=True, slots=True)
class OnDone:
    """Everything of a generation is settled, and was reported."""

    generation: Generation


Event = OnTentative | OnStable | OnUndo | OnDone


@dataclass(frozen=True, slots=True)
class _Open:
    undo: Undo
    digest: bytes


class View:
    """What one reader has seen of an output.

    Args:
        covered_ms: all stable results up to this time were read before.
        most_open: how many tentative results it keeps, and how many ids that are settled above the
            covered boundary.
    """

    def __init__(self, covered_ms: Millis | None = None, most_open: int = MOST_OPEN) -> None:
        self.covered_ms = covered_ms
        self._most = most_open
        self._open: ByTime[_Open] = ByTime()
        self._settled: ByTime[bool] = ByTime()
        """Ids above the covered boundary that are stable (True) or undone."""
        self._ignored_to_ms: Millis | None = None
        self._marked: dict[Generation, Millis] = {}
        self._done: set[Generation] = set()
        self._done_to: Generation | None = None

    @property
    def open_results(self) -> int:
        """How many tentative results count."""
        return len(self._open)

    def tentative(self, record: TentativeRecord) -> tuple[Event, ...]:
        """A record of the tentative topic was read.

        Raises:
            TooManyTentativeError: it is one more open result than the view keeps.
        """
        match record:
            case TentativeResult():
                return self._result(record)
            case Undo():
                return self._undo(record)
            case DoneMark():
                return self._mark(record)

    def stable(
        self, result_id: bytes | None, value: bytes | None, timestamp_ms: Millis
    ) -> tuple[Event, ...]:
        """A record of the stable topic was read; a correction has the id of what it corrects."""
        if result_id is None:
            return (OnStable(None, None),)
        before = self._open.pop(result_id)
        self._settle(result_id, timestamp_ms, stable=True)
        confirms = None if before is None else before.digest == digest(value)
        return (OnStable(result_id, confirms),)

    def known(self, result_id: bytes, timestamp_ms: Millis) -> None:
        """A stable result was reported before, by an earlier view."""
        self._settle(result_id, timestamp_ms, stable=True)

    def promised(self, boundary_ms: Millis) -> tuple[Event, ...]:
        """All positions of a boundary of the stable topic were read."""
        self.covered_ms = later(boundary_ms, self.covered_ms)
        self._settled.take_to(self.covered_ms)
        undone = (OnUndo(one.undo) for one in self._open.take_to(self.covered_ms))
        return (*undone, *self._newly_done())

    def _result(self, record: TentativeResult) -> tuple[Event, ...]:
        found = _Open(undo_of(record), digest(record.value))
        before = self._open.get(record.id)
        if self._ignores(record) or found == before:
            return ()
        if before is not None and before.undo.generation > record.generation:
            return ()
        if before is None and len(self._open) >= self._most:
            raise TooManyTentativeError(
                f"more than {self._most} tentative results are neither stable nor undone",
                hint="read stable results only, until the output is complete again.",
            )
        self._open.put(record.id, record.timestamp_ms, found)
        return (OnTentative(record),)

    def _ignores(self, record: TentativeResult) -> bool:
        return (
            not is_above(record.timestamp_ms, self.covered_ms)
            or not is_above(record.timestamp_ms, self._ignored_to_ms)
            or record.id in self._settled
            or self._is_done(record.generation)
        )

    def _undo(self, record: Undo) -> tuple[Event, ...]:
        before = self._open.get(record.id)
        if self._settled.get(record.id):
            return ()
        if before is not None and before.undo.generation > record.generation:
            return ()
        self._open.pop(record.id)
        self._settle(record.id, record.timestamp_ms, stable=False)
        return () if before is None else (OnUndo(before.undo),)

    def _mark(self, record: DoneMark) -> tuple[Event, ...]:
        if self._is_done(record.generation):
            return ()
        before_ms = self._marked.get(record.generation, record.promised_ms)
        self._marked[record.generation] = min(before_ms, record.promised_ms)
        return self._newly_done()

    def _newly_done(self) -> tuple[OnDone, ...]:
        """Marked generations whose stable results were all read.

        The promise of a mark has passed all results of its generation, so none of them is open.
        """
        if not self._marked:
            return ()
        done = sorted(
            generation
            for generation, promised_ms in self._marked.items()
            if not is_above(promised_ms, self.covered_ms)
        )
        for generation in done:
            del self._marked[generation]
            self._done.add(generation)
        if len(self._done) > MOST_GENERATIONS:
            kept = sorted(self._done)
            self._done_to = kept[len(kept) // 2]
            self._done = {one for one in kept if one > self._done_to}
        return tuple(OnDone(generation) for generation in done)

    def _is_done(self, generation: Generation) -> bool:
        old = self._done_to is not None and generation <= self._done_to
        return old or generation in self._done

    def _settle(self, result_id: bytes, timestamp_ms: Millis, *, stable: bool) -> None:
        """Keep an id until the covered boundary has passed it.

        When there are too many, all are dropped: tentative results up to the last of them are
        ignored then, since it is not known any more which are stable.
        """
        if not is_above(timestamp_ms, self.covered_ms):
            return
        self._settled.put(result_id, timestamp_ms, stable)
        if len(self._settled) > self._most:
            self._ignored_to_ms = self._settled.clear()
