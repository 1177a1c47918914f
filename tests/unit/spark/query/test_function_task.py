"""Processing of a Python box in Spark's Python processes, without Spark."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.network import type_text
from pipeline.spark.query import function_task, hidden
from pipeline.spark.query.function_task import CALLERS_MAX, SIGN, FunctionError, FunctionTask
from pipeline.user_code.caller import CallError, LoadError, RaisedError
from pipeline.user_code.contract import ROW
from pipeline.user_code.function import Function
from pipeline.user_code.search import FailureBudget

AT = datetime(2024, 1, 31, 12, tzinfo=UTC)
COLUMNS = (type_text.read_column("twice", "BIGINT NOT NULL"),)
FUNCTION = Function("numbers.py:double", "…", COLUMNS, 1_000)
CARRIED = ("__key", hidden.EVENT_TIME, hidden.REASON)
Call = Callable[[pa.RecordBatch], pa.RecordBatch]


def rows(*numbers: int, reasons: dict[int, str] | None = None) -> pa.RecordBatch:
    """Rows as a query passes them; the key of a row is its place."""
    row_reasons = [(reasons or {}).get(row) for row in range(len(numbers))]
    return pa.record_batch(
        {
            "__key": [str(row) for row in range(len(numbers))],
            hidden.EVENT_TIME: pa.array([AT] * len(numbers), pa.timestamp("us", tz="UTC")),
            hidden.REASON: pa.array(row_reasons, pa.string()),
            "n": list(numbers),
        }
    )


def double(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Twice each number but 7, which fails; even ones have a note, if there is a 1."""
    assert batch.schema.names == ["n"], "no hidden column is handed over"
    numbers = batch.column("n")
    if 7 in numbers.to_pylist():
        raise CallError("seven")
    return pa.record_batch({"twice": pc.add(numbers, numbers)})


def odd(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Only odd numbers, doubled."""
    kept = [row for row, n in enumerate(batch.column("n").to_pylist()) if n % 2]
    numbers = batch.column("n").take(pa.array(kept, pa.int64()))
    return pa.record_batch({"twice": pc.add(numbers, numbers), ROW: pa.array(kept, pa.int32())})


def results(
    batch: pa.RecordBatch, call: Call = double, *, keep: bool = False
) -> list[dict[str, object]]:
    """The resulting rows; every batch has the same schema."""
    task = FunctionTask("doubled", FUNCTION, CARRIED, keep)
    found = list(task.results(batch, call, FailureBudget(1_000, lambda: 0.0)))
    schemas = {str(one.schema) for one in found}
    assert len(schemas) <= 1
    assert all(field.nullable for one in found for field in one.schema)
    return [row for one in found for row in one.to_pylist()]


def test_hidden_columns_are_copied_around_the_function() -> None:
    """Each result has those of its row."""
    assert results(rows(1, 2)) == [
        {"__key": "0", hidden.EVENT_TIME: AT, hidden.REASON: None, "twice": 2},
        {"__key": "1", hidden.EVENT_TIME: AT, hidden.REASON: None, "twice": 4},
    ]


def test_dropped_rows_are_removed_and_the_others_keep_their_place() -> None:
    """The function returns the indices of the kept rows."""
    found = results(rows(1, 2, 3, 4, 5, reasons={0: "late"}), odd)
    assert [(row["__key"], row["twice"]) for row in found] == [("2", 6), ("4", 10), ("0", None)]


def test_failed_rows_are_not_passed_to_the_function() -> None:
    """They are passed on without results; 7 would fail."""
    found = results(rows(7, 1, reasons={0: "undecodable"}))
    assert [(row["__key"], row[hidden.REASON], row["twice"]) for row in found] == [
        ("1", None, 2), ("0", "undecodable", None),
    ]  # fmt: skip
    assert [row["__key"] for row in results(rows(7, reasons={0: "undecodable"}))] == ["0"]


def test_a_row_that_fails_has_the_reason() -> None:
    """All others pass; the box, the field and the function are named."""
    found = results(rows(1, 7, 3))
    reason = "evaluation_failed:doubled:function:numbers.py:double: seven"
    assert [(row["__key"], row[hidden.REASON], row["twice"]) for row in found] == [
        ("0", None, 2), ("2", None, 6), ("1", reason, None),
    ]  # fmt: skip


def test_the_inputs_of_a_failed_result_are_kept() -> None:
    """And of no other row."""
    found = results(rows(1, 7, 3, reasons={2: "evaluation_failed"}), keep=True)
    assert [(row["__key"], row[hidden.GIVEN]) for row in found] == [
        ("0", None), ("2", None), ("1", {"n": 7}),
    ]  # fmt: skip
    assert [row[hidden.GIVEN] for row in results(rows(1), keep=True)] == [None]


def test_a_batch_without_rows_makes_no_call() -> None:
    """And has no results."""
    assert results(rows()) == []


class NoCaller:
    """A function that does not exist."""

    closed: list[str] = []  # noqa: RUF012 - one for all

    def __init__(self, function: Function) -> None:
        self._name = function.name

    def call(self, _batch: pa.RecordBatch) -> pa.RecordBatch:
        """Never."""
        raise LoadError("No module named 'x'")

    def close(self) -> None:
        """Record the call."""
        self.closed.append(self._name)


@pytest.fixture
def _no_callers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(function_task, "Caller", NoCaller)
    yield
    function_task._callers.clear()
    NoCaller.closed.clear()


@pytest.mark.usefixtures("_no_callers")
def test_a_missing_function_is_no_failure_of_a_row() -> None:
    """The whole task fails, with a marker in its error."""
    task = FunctionTask("doubled", FUNCTION, CARRIED, keep_input=False)
    with pytest.raises(FunctionError) as caught:
        list(task(iter([rows(1)])))
    assert str(caught.value) == (
        f"{SIGN} box doubled: numbers.py:double: cannot be loaded on this node: No module named 'x'"
    )


def test_a_function_of_single_rows_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole task fails, with the same marker, instead of silently processing row by row."""

    class First:
        """A function that returns the first row alone."""

        def call(self, batch: pa.RecordBatch) -> pa.RecordBatch:
            if batch.num_rows > 1:
                raise RaisedError("it returned 1 rows for several")
            return double(batch)

    monkeypatch.setattr(function_task, "_caller", lambda _function: First())
    task = FunctionTask("doubled", FUNCTION, CARRIED, keep_input=False)
    assert len(list(task(iter([rows(1)])))) == 1
    with pytest.raises(FunctionError) as caught:
        next(task(iter([rows(1, 2)])))
    assert str(caught.value) == (
        f"{SIGN} box doubled: numbers.py:double: it fails for 2 rows at once and for none of them "
        "alone, though what it makes of a row must depend on that row only; at once: it returned 1 "
        "rows for several"
    )


@pytest.mark.usefixtures("_no_callers")
def test_a_process_caches_few_functions() -> None:
    """The least recently used one is evicted."""
    names = [f"f{number}.py:f" for number in range(CALLERS_MAX + 2)]
    for name in (*names[:2], names[0], *names[2:]):
        function_task._caller(Function(name, "…", COLUMNS, 1_000))
    assert NoCaller.closed == [names[1], names[0]]


def test_another_version_of_medusa_is_refused() -> None:
    """The error of a worker with another one contains both versions."""
    task = FunctionTask("doubled", FUNCTION, CARRIED, keep_input=False, medusa="0.0.0")
    with pytest.raises(FunctionError, match=r"has Medusa .*, the node has 0\.0\.0"):
        next(task(iter([rows(1)])))
