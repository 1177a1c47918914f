"""Finds the rows for which a function fails, so that all others pass. Pure: calls are handed in.

A function is row by row pure, so what it says about some rows does not depend on the others. When a
call fails, its rows are tried again in parts, and in the end one by one: a row that fails alone is
what failed. If it was raised for several rows and none of them fails alone, the function is not
pure; a call that took too long, or too much memory, says nothing of the kind.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pipeline.user_code.caller import CallError, RaisedError

PARTS: Final = (100, 1)
"""How many rows are tried at once after a call has failed."""
LOST_MIN_S: Final = 60.0
LOST_TIMEOUTS: Final = 16
"""How long the calls of one task that fail may take: so many timeouts, but at least a minute."""

Call = Callable[[pa.RecordBatch], pa.RecordBatch]


class FaultyError(Exception):
    """It is the function that is at fault, and no row."""


class GaveUpError(FaultyError):
    """So many calls have failed, or for so long, that no more are made."""


class UnlikeAloneError(FaultyError):
    """The function fails for several rows at once, and for none of them alone."""


@dataclass(frozen=True, slots=True)
class Passed:
    """What a function made of the rows from `first` on; `__row` counts from there."""

    first: int
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Failed:
    """A row that fails alone, and why."""

    row: int
    why: str


@dataclass(slots=True)
class Patience:
    """How much time calls that fail may still take.

    Args:
        timeout_ms: how long one call may take.
        clock: steady time in seconds.
    """

    timeout_ms: int
    clock: Callable[[], float]
    lost_s: float = field(default=0.0, init=False)

    def call(self, call: Call, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Make a call.

        Raises:
            CallError: it failed.
            GaveUpError: so did others before it, for too long.
        """
        most = max(LOST_MIN_S, LOST_TIMEOUTS * self.timeout_ms / 1000)
        since = self.clock()
        try:
            return call(batch)
        except CallError as error:
            self.lost_s += self.clock() - since
            if self.lost_s > most:
                raise GaveUpError(
                    f"calls that fail have taken more than {most:g} s in one batch; the last one: "
                    f"{error}"
                ) from error
            raise


def tried(batch: pa.RecordBatch, call: Call, patience: Patience) -> Iterator[Passed | Failed]:
    """What becomes of the rows of a batch, in their order.

    Raises:
        FaultyError: too much time was lost, or the function is not pure.
    """
    yield from _tried(batch, 0, PARTS, call, patience)


def _tried(
    batch: pa.RecordBatch, first: int, parts: tuple[int, ...], call: Call, patience: Patience
) -> Iterator[Passed | Failed]:
    if not batch.num_rows:
        return
    try:
        yield Passed(first, patience.call(call, batch))
    except CallError as error:
        smaller = tuple(part for part in parts if part < batch.num_rows)
        if not smaller:
            yield Failed(first, str(error))
            return
        size, *rest = smaller
        failed = False
        for start in range(0, batch.num_rows, size):
            part = batch.slice(start, size)
            for one in _tried(part, first + start, tuple(rest), call, patience):
                failed = failed or isinstance(one, Failed)
                yield one
        if not failed and isinstance(error, RaisedError):
            raise UnlikeAloneError(
                f"it fails for {batch.num_rows} rows at once and for none of them alone, though "
                f"what it makes of a row must depend on that row only; at once: {error}"
            ) from error
