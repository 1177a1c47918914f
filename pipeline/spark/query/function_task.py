"""Execution of a Python box in Spark's Python processes: a batch of rows in, the results out.

Rows have hidden columns. The function receives none of them, and no row that is set aside. Runs
without a session, so it does not use PySpark.
"""

import functools
import socket
import sys
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.spark.query import hidden
from pipeline.spark.query.hidden import Failed
from pipeline.user_code.arrow import arrow_schema
from pipeline.user_code.caller import Caller, LoadError
from pipeline.user_code.contract import ROW
from pipeline.user_code.function import Function
from pipeline.user_code.search import Call, FailureBudget, FaultyError, Passed, tried
from pipeline.user_code.search import Failed as FailedRow

FIELD: Final = "function"
"""The key of the document that a failure reports."""
SIGN: Final = "[function]"
"""Prefix of errors of a function as a whole, in Spark's message about a failed task."""
CALLERS_MAX: Final = 4
"""Maximum number of function processes that one of Spark's Python processes keeps."""

_callers: OrderedDict[Function, Caller] = OrderedDict()


@functools.cache
def own_version() -> str:
    """The Medusa version of this process."""
    return version("medusa-streams")


class FunctionError(Exception):
    """A function cannot be called at all, hangs too often, or is not pure: not caused by a row."""


@dataclass(frozen=True, slots=True)
class FunctionTask:
    """Runs a function over the rows of a partition.

    Args:
        box: the box's name.
        function: what it calls.
        hidden_columns: columns of a row besides those of the box's input; passed through.
        keep_input: whether a failed row keeps the input columns as `hidden.GIVEN`.
        medusa: the version that created it; another version might compute other rows.
    """

    box: str
    function: Function
    hidden_columns: tuple[str, ...]
    keep_input: bool
    medusa: str = field(default_factory=own_version)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Results in the order of their rows, followed by rows that are set aside."""
        if self.medusa != own_version():
            there = f"{sys.executable} on {socket.gethostname()} has Medusa {own_version()}"
            raise self._trouble(f"spark.python: {there}, the node has {self.medusa}")
        budget = FailureBudget(self.function.timeout_ms, time.monotonic)
        try:
            for batch in batches:
                yield from self.results(batch, _caller(self.function).call, budget)
        except LoadError as error:
            raise self._trouble(f"cannot be loaded on this node: {error}") from error
        except FaultyError as error:
            raise self._trouble(str(error)) from error

    def _trouble(self, what: str) -> FunctionError:
        return FunctionError(f"{SIGN} box {self.box}: {self.function.name}: {what}")

    def results(
        self, batch: pa.RecordBatch, call: Call, budget: FailureBudget
    ) -> Iterator[pa.RecordBatch]:
        """Call the function for one batch."""
        carried = batch.select(list(self.hidden_columns))
        given = batch.select([n for n in batch.schema.names if n not in self.hidden_columns])
        wanted = pc.and_(
            pc.is_null(carried.column(hidden.REASON)),
            pc.is_valid(carried.column(hidden.EVENT_TIME)),
        )
        good = pc.indices_nonzero(wanted)
        asked = given if len(good) == batch.num_rows else given.take(good)
        passed: list[Passed] = []
        failed: list[FailedRow] = []
        for one in tried(asked, call, budget):
            (passed if isinstance(one, Passed) else failed).append(one)  # type: ignore[arg-type]
        if passed:
            rows, results = _together(passed, good)
            # Rows keep their order, so an equal number means all of them.
            kept = carried if len(rows) == batch.num_rows else carried.take(rows)
            yield self._batch(kept, results.columns, given.slice(0, 0), len(rows))
        if failed or len(good) < batch.num_rows:
            yield self._set_aside(carried, given, good, failed)

    def _set_aside(
        self,
        carried: pa.RecordBatch,
        given: pa.RecordBatch,
        good: pa.Array,
        failed: list[FailedRow],
    ) -> pa.RecordBatch:
        """The failed rows, after those that were not passed to the function."""
        asked = set(good.to_pylist())
        before = [row for row in range(carried.num_rows) if row not in asked]
        rows = [*before, *(good[one.row].as_py() for one in failed)]
        reasons = carried.column(hidden.REASON).take(pa.array(before, pa.int64())).to_pylist()
        reasons += [str(Failed(self.box, FIELD, f"{self.function.name}: {f.why}")) for f in failed]
        taken = carried.take(pa.array(rows, pa.int64()))
        at = taken.schema.get_field_index(hidden.REASON)
        marked = taken.set_column(at, taken.schema.field(at), pa.array(reasons, pa.string()))
        kept = given.take(pa.array([None] * len(before) + rows[len(before) :], pa.int64()))
        columns = [pa.nulls(len(rows), field.type) for field in arrow_schema(self.function.columns)]
        return self._batch(marked, columns, kept, len(rows), failed=len(failed))

    def _batch(
        self,
        carried: pa.RecordBatch,
        columns: list[pa.Array],
        given: pa.RecordBatch,
        count: int,
        failed: int = 0,
    ) -> pa.RecordBatch:
        """Rows in the declared schema; `given` are the input columns of the last `failed` rows."""
        declared = arrow_schema(self.function.columns)
        fields = [*carried.schema, *(field.with_nullable(True) for field in declared)]
        arrays = [*carried.columns, *columns]
        if self.keep_input:
            of = pa.struct(list(given.schema))
            absent = pa.array([row < count - failed for row in range(count)], pa.bool_())
            fields.append(pa.field(hidden.GIVEN, of))
            arrays.append(
                pa.StructArray.from_arrays(given.columns, fields=list(of), mask=absent)
                if failed
                else pa.nulls(count, of)
            )
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _together(passed: list[Passed], asked: pa.Array) -> tuple[pa.Array, pa.RecordBatch]:
    """The results of several calls, and the row in `asked` that each was computed from."""
    rows, results = [], []
    for one in passed:
        own = one.rows
        if ROW in own.schema.names:
            rows.append(asked.slice(one.first).take(own.column(ROW)))
            own = own.drop_columns(ROW)
        else:
            rows.append(asked.slice(one.first, own.num_rows))
        results.append(own)
    return pa.concat_arrays(rows), pa.concat_batches(results)


def _caller(function: Function) -> Caller:
    """The process of a function, kept between tasks in an LRU cache."""
    caller = _callers.pop(function, None) or Caller(function)
    _callers[function] = caller
    if len(_callers) > CALLERS_MAX:
        _callers.popitem(last=False)[1].close()
    return caller
