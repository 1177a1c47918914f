"""Lag of a follower, from markers and a checkpoint."""

import doctest
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from benchmarks import following
from benchmarks.following import Commits, Reached, lags_ms, newest_checkpoint

TIMES = st.lists(st.integers(1, 10_000), min_size=1, max_size=20, unique=True).map(sorted)


def plan(checkpoint: Path, batch: int, end: int, *, commit: bool = True) -> None:
    """Write a batch as Spark does."""
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True, exist_ok=True)
    text = f'v1\n{{"batchWatermarkMs":0}}\n{{"in":{{"0":{end}}}}}'
    (checkpoint / "offsets" / str(batch)).write_text(text)
    if commit:
        (checkpoint / "commits" / str(batch)).write_text("v1\n{}")


def test_examples_in_docstrings_hold() -> None:
    """The doctests of the module pass."""
    assert doctest.testmod(following).failed == 0


def test_the_newest_checkpoint_is_the_one_that_was_written_last(tmp_path: Path) -> None:
    """Not the one with the last name, nor one without batches."""
    for name, at_s in (("a", 20), ("b", 10)):
        plan(tmp_path / "network" / name, 0, 1)
        os.utime(tmp_path / "network" / name / "offsets", (at_s, at_s))
    (tmp_path / "network" / "c").mkdir()
    assert newest_checkpoint(tmp_path) == tmp_path / "network" / "a"
    assert newest_checkpoint(tmp_path / "network" / "c") is None


def test_committed_batches_are_seen_once_though_spark_removes_them(tmp_path: Path) -> None:
    """A batch that is only planned is not committed; neither is a checksum a batch."""
    plan(tmp_path, 0, 5)
    plan(tmp_path, 1, 9, commit=False)
    (tmp_path / "commits" / ".0.crc").write_text("")
    commits = Commits(tmp_path, "in")
    commits.sample()
    (tmp_path / "commits" / "0").unlink()
    plan(tmp_path, 1, 9)
    commits.sample()
    assert [one.ends for one in commits.found.values()] == [{0: 5}, {0: 9}]


def test_a_batch_is_repeated_by_the_first_that_contains_it() -> None:
    """One batch of the follower has two of the owner; the last is not repeated yet."""
    written = [Reached(at, {0: end, 1: 1}) for at, end in ((100, 10), (200, 20), (300, 30))]
    repeated = [Reached(250, {0: 20, 1: 1}), Reached(90, {0: 5, 1: 1}), Reached(400, {0: 29, 1: 1})]
    assert lags_ms(written, repeated) == [150, 50]


@given(TIMES, st.integers(0, 500))
def test_a_follower_that_repeats_each_batch_has_one_lag(times_ms: list[int], lag_ms: int) -> None:
    """However long the batches take."""
    written = [Reached(at, {0: number}) for number, at in enumerate(times_ms)]
    repeated = [Reached(one.at_ms + lag_ms, one.ends) for one in written]
    assert lags_ms(written, repeated) == [lag_ms] * len(written)
