"""What Spark's Python processes do for a Python box, without Spark."""

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


def rows(*numbers: int, reasons: dict[int, str] | None = None, advance: int = -1) -> pa.RecordBatch:
    """Rows as a query hands them over; the key of a row is its place."""
    told = [(reasons or {}).get(row) for row in range(len(numbers))]
    times = [None if row == advance else AT for row in range(len(numbers))]
    return pa.record_batch(
        {
            "__key": [str(row) for row in range(len(numbers))],
            hidden.EVENT_TIME: pa.array(times, pa.timestamp("us", tz="UTC")),
            hidden.REASON: pa.array(told, pa.string()),
            "n": list(numbers),
        }
    )


def double(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Twice each number but 7, which fails; even ones, if there is a 1, say so."""
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


def made(
    batch: pa.RecordBatch, call: Call = double, *, keep: bool = False
) -> list[dict[str, object]]:
    """The rows that come out; every batch has the same schema."""
    task = FunctionTask("doubled", FUNCTION, CARRIED, keep)
    found = list(task.results(batch, call, FailureBudget(1_000, lambda: 0.0)))
    schemas = {str(one.schema) for one in found}
    assert len(schemas) <= 1
    assert all(field.nullable for one in found for field in one.schema)
    return [row for one in found for row in one.to_pylist()]


def test_hidden_columns_go_round_the_function() -> None:
    """Each result has those of its row."""
    assert made(rows(1, 2)) == [
        {"__key": "0", hidden.EVENT_TIME: AT, hidden.REASON: None, "twice": 2},
        {"__key": "1", hidden.EVENT_TIME: AT, hidden.REASON: None, "twice": 4},
    ]


def test_rows_that_are_left_out_are_gone_and_the_others_keep_their_place() -> None:
    """The function names the rows that it kept."""
    found = made(rows(1, 2, 3, 4, 5, reasons={0: "late"}), odd)
    assert [(row["__key"], row["twice"]) for row in found] == [("2", 6), ("4", 10), ("0", None)]


def test_what_was_set_aside_and_advances_are_never_seen() -> None:
    """They go on without results; 7 would fail."""
    found = made(rows(7, 7, 1, reasons={0: "undecodable"}, advance=1))
    assert [(row["__key"], row[hidden.REASON], row["twice"]) for row in found] == [
        ("2", None, 2), ("0", "undecodable", None), ("1", None, None),
    ]  # fmt: skip
    assert [row["__key"] for row in made(rows(7, advance=0))] == ["0"]


def test_a_row_that_fails_is_set_aside_with_the_reason() -> None:
    """All others pass; the box, the field and the function are named."""
    found = made(rows(1, 7, 3))
    told = "evaluation_failed:doubled:function:numbers.py:double: seven"
    assert [(row["__key"], row[hidden.REASON], row["twice"]) for row in found] == [
        ("0", None, 2), ("2", None, 6), ("1", told, None),
    ]  # fmt: skip


def test_what_a_result_was_computed_from_is_kept_when_it_fails() -> None:
    """And of no other row."""
    found = made(rows(1, 7, 3, reasons={2: "evaluation_failed"}), keep=True)
    assert [(row["__key"], row[hidden.GIVEN]) for row in found] == [
        ("0", None), ("2", None), ("1", {"n": 7}),
    ]  # fmt: skip
    assert [row[hidden.GIVEN] for row in made(rows(1), keep=True)] == [None]


def test_a_batch_without_rows_makes_none() -> None:
    """And asks nobody."""
    assert made(rows()) == []


class NoCaller:
    """A function that is not there."""

    closed: list[str] = []  # noqa: RUF012 - one for all

    def __init__(self, function: Function) -> None:
        self._name = function.name

    def call(self, _batch: pa.RecordBatch) -> pa.RecordBatch:
        """Never."""
        raise LoadError("No module named 'x'")

    def close(self) -> None:
        """Remember it."""
        self.closed.append(self._name)


@pytest.fixture
def _no_callers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(function_task, "Caller", NoCaller)
    yield
    function_task._callers.clear()
    NoCaller.closed.clear()


@pytest.mark.usefixtures("_no_callers")
def test_a_function_that_is_not_there_is_no_rows_fault() -> None:
    """The whole task fails, with a sign by which that is known."""
    task = FunctionTask("doubled", FUNCTION, CARRIED, keep_input=False)
    with pytest.raises(FunctionError) as caught:
        list(task(iter([rows(1)])))
    assert str(caught.value) == (
        f"{SIGN} box doubled: numbers.py:double: cannot be loaded on this node: No module named 'x'"
    )


def test_nothing_comes_of_a_function_that_works_for_single_rows_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole task fails, with the same sign, instead of going row by row without a word."""

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
def test_a_process_keeps_few_functions_ready() -> None:
    """The one that was unused longest goes."""
    names = [f"f{number}.py:f" for number in range(CALLERS_MAX + 2)]
    for name in (*names[:2], names[0], *names[2:]):
        function_task._caller(Function(name, "…", COLUMNS, 1_000))
    assert NoCaller.closed == [names[1], names[0]]


def test_another_version_of_medusa_makes_nothing() -> None:
    """A worker of a cluster with another one is told, with both."""
    task = FunctionTask("doubled", FUNCTION, CARRIED, keep_input=False, medusa="0.0.0")
    with pytest.raises(FunctionError, match=r"has Medusa .*, the node has 0\.0\.0"):
        next(task(iter([rows(1)])))
