"""Search for the rows for which a function fails, so that all others pass. Pure.

A function is pure and row by row, so its result for some rows does not depend on the others. When a
call fails, its rows are retried in parts, and in the end one by one: a row that fails alone has
failed. If the function raised for several rows and none of them fails alone, it is not pure; a
timeout or a lack of memory is no evidence of that.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pipeline.user_code.caller import CallError, RaisedError

PARTS: Final = (100, 1)
"""Numbers of rows per call when a call is retried."""
LOST_MIN_S: Final = 60.0
LOST_TIMEOUTS: Final = 16
"""Time limit for the failing calls of one task: this many timeouts, but at least a minute."""

Call = Callable[[pa.RecordBatch], pa.RecordBatch]


class FaultyError(Exception):
    """The function is faulty, not a row."""


class GaveUpError(FaultyError):
    """Failing calls have exceeded their time limit, so no more are made."""


class UnlikeAloneError(FaultyError):
    """The function fails for several rows at once, and for none of them alone."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The function's results for the rows from `first` on; `__row` counts from there."""

    first: int
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Failed:
    """A row that fails alone, and why."""

    row: int
    why: str


@dataclass(slots=True)
class FailureBudget:
    """The time limit for failing calls.

    Args:
        timeout_ms: time limit of one call.
        clock: steady time in seconds.
    """

    timeout_ms: int
    clock: Callable[[], float]
    lost_s: float = field(default=0.0, init=False)

    def call(self, call: Call, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Make a call.

        Raises:
            CallError: it failed.
            GaveUpError: failing calls have exceeded the time limit.
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


def tried(batch: pa.RecordBatch, call: Call, budget: FailureBudget) -> Iterator[Passed | Failed]:
    """The results of the rows of a batch, in order.

    Raises:
        FaultyError: failing calls took too long, or the function is not pure.
    """
    yield from _tried(batch, 0, PARTS, call, budget)


def _tried(
    batch: pa.RecordBatch, first: int, parts: tuple[int, ...], call: Call, budget: FailureBudget
) -> Iterator[Passed | Failed]:
    if not batch.num_rows:
        return
    try:
        yield Passed(first, budget.call(call, batch))
    except CallError as error:
        smaller = tuple(part for part in parts if part < batch.num_rows)
        if not smaller:
            yield Failed(first, str(error))
            return
        size, *rest = smaller
        failed = False
        for start in range(0, batch.num_rows, size):
            part = batch.slice(start, size)
            for one in _tried(part, first + start, tuple(rest), call, budget):
                failed = failed or isinstance(one, Failed)
                yield one
        if not failed and isinstance(error, RaisedError):
            raise UnlikeAloneError(
                f"it fails for {batch.num_rows} rows at once and for none of them alone, though "
                f"what it makes of a row must depend on that row only; at once: {error}"
            ) from error
