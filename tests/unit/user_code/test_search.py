from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.user_code.caller import CallError, EndedError, RaisedError
from pipeline.user_code.search import (
    Failed,
    FailureBudget,
    GaveUpError,
    Passed,
    UnlikeAloneError,
    tried,
)


class Doubling:
    """Doubles numbers; fails for batches with some of them, and counts its calls."""

    def __init__(self, bad: set[int]) -> None:
        self.bad = bad
        self.calls = 0

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Twice each number."""
        self.calls += 1
        numbers = batch.column("n").to_pylist()
        wrong = sorted(self.bad.intersection(numbers))
        if wrong:
            raise RaisedError(f"{wrong[0]} is bad")
        return pa.record_batch({"twice": [2 * n for n in numbers]})


def ticking(seconds: float) -> Iterator[float]:
    """A clock whose reads make each call take this long."""
    now = 0.0
    while True:
        yield now
        now += seconds


def outcome(count: int, call: Doubling) -> tuple[dict[int, int], dict[int, str]]:
    """The outcome of each row: results and failures by number."""
    results: dict[int, int] = {}
    failed: dict[int, str] = {}
    budget = FailureBudget(1_000, lambda: 0.0)
    order: list[int] = []
    for one in tried(pa.record_batch({"n": list(range(count))}), call, budget):
        if isinstance(one, Passed):
            twice = one.rows.column("twice").to_pylist()
            results |= {one.first + i: value for i, value in enumerate(twice)}
            order.append(one.first)
        else:
            failed[one.row] = one.why
            order.append(one.row)
    assert order == sorted(order)
    return results, failed


@given(st.integers(0, 350), st.sets(st.integers(0, 349), max_size=20))
def test_exactly_the_rows_that_fail_are_found(count: int, bad: set[int]) -> None:
    """All others pass, in their order, for any positions of the bad ones."""
    results, failed = outcome(count, Doubling(bad))
    there = {n for n in bad if n < count}
    assert failed == {n: f"{n} is bad" for n in there}
    assert results == {n: 2 * n for n in range(count) if n not in there}


def test_one_bad_row_among_many_costs_few_calls() -> None:
    """All at once, then hundreds, then the rows of its hundred."""
    call = Doubling({4_321})
    assert outcome(10_000, call)[1] == {4_321: "4321 is bad"}
    assert call.calls == 1 + 100 + 100


def test_a_batch_without_rows_makes_no_call() -> None:
    """There are no rows to pass."""
    call = Doubling(set())
    assert outcome(0, call) == ({}, {})
    assert call.calls == 0


@pytest.mark.parametrize(("timeout_ms", "calls"), [(1_000, 60), (10_000, 160)])
def test_the_total_time_of_failures_is_bounded(timeout_ms: int, calls: int) -> None:
    """A function that hangs for everything fails with its last error."""
    clock = ticking(1.0)
    budget = FailureBudget(timeout_ms, lambda: next(clock))
    call = Doubling(set(range(10_000)))
    with pytest.raises(GaveUpError, match="the last one: "):
        list(tried(pa.record_batch({"n": list(range(10_000))}), call, budget))
    assert call.calls == calls + 1


def test_successful_calls_do_not_use_up_the_time_limit() -> None:
    """However long they take."""
    clock = ticking(1_000.0)
    budget = FailureBudget(1_000, lambda: next(clock))
    batch = pa.record_batch({"n": [1]})
    for _ in range(10):
        (one,) = tried(batch, Doubling(set()), budget)
        assert isinstance(one, Passed)
    with pytest.raises(GaveUpError):
        list(tried(batch, Doubling({1}), budget))


def test_a_row_that_fails_alone_has_the_reason() -> None:
    """The batch of one is not repeated."""
    call = Doubling({5})
    (one,) = tried(pa.record_batch({"n": [5]}), call, FailureBudget(1_000, lambda: 0.0))
    assert one == Failed(0, "5 is bad")
    assert call.calls == 1


def at_most(rows: int, error: CallError) -> Doubling:
    """Doubles at most this many numbers at once, and fails for more."""

    class OnlyFew(Doubling):
        def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
            if batch.num_rows > rows:
                raise error
            return super().__call__(batch)

    return OnlyFew({250})


@pytest.mark.parametrize(("rows", "most"), [(2, 1), (100, 1), (100, 99), (150, 100), (150, 1)])
def test_a_function_that_fails_only_for_rows_together_is_at_fault(rows: int, most: int) -> None:
    """The result of a row depends on others, which is reported before any result."""
    error = RaisedError("it returned 1 rows")
    with pytest.raises(UnlikeAloneError) as caught:
        outcome(rows, at_most(most, error))
    assert str(caught.value) == (
        f"it fails for {100 if most < 100 < rows else rows} rows at once and for none of them "
        "alone, though what it makes of a row must depend on that row only; at once: it returned 1 "
        "rows"
    )


def test_where_a_row_fails_alone_the_other_rows_are_not_at_fault() -> None:
    """They were in the same batch."""
    assert outcome(251, at_most(100, RaisedError("all")))[1] == {250: "250 is bad"}


@pytest.mark.parametrize("rows", [2, 350])
def test_fewer_rows_take_less_time_and_memory(rows: int) -> None:
    """So a call that did not return is no evidence."""
    results, failed = outcome(rows, at_most(1, EndedError("it did not return")))
    assert failed == ({250: "250 is bad"} if rows > 250 else {})
    assert len(results) + len(failed) == rows
