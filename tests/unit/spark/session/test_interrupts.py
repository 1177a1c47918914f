"""Ctrl-C while a command computes, with other children than Java."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from pipeline.spark.session.interrupts import Interrupts

Child = subprocess.Popen[bytes]
_ENDS_WITHIN_S = 60


@contextmanager
def child() -> Iterator[Child]:
    """A process that goes on until it is ended."""
    with subprocess.Popen(["sleep", "600"]) as started:
        try:
            yield started
        finally:
            started.kill()


def _is_killed(process: Child) -> bool:
    return process.wait(_ENDS_WITHIN_S) == -signal.SIGKILL


def test_what_still_starts_is_ended() -> None:
    """And what ran before is left alone."""
    before = signal.getsignal(signal.SIGINT)
    with child() as other:
        with pytest.raises(KeyboardInterrupt):
            _interrupted_while_it_starts(other)
        assert other.poll() is None
    assert signal.getsignal(signal.SIGINT) is before


def _interrupted_while_it_starts(other: Child) -> None:
    with Interrupts(), child() as ours:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            assert _is_killed(ours)
            assert other.poll() is None


def test_what_was_started_later_is_left_alone() -> None:
    """A test may have children of its own."""
    with Interrupts() as interrupts, child() as ours:
        interrupts.opened()
        with child() as other:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            assert _is_killed(ours)
            assert other.poll() is None
        interrupts.happened = False


def test_who_listens_meanwhile_is_not_asked() -> None:
    """PySpark, for one, would call a process that is gone by then."""
    asked: list[int] = []
    with Interrupts() as interrupts:
        signal.signal(signal.SIGINT, lambda number, _frame: asked.append(number))
        interrupts.opened()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        interrupts.happened = False
    assert not asked


def test_what_fails_because_of_it_is_no_error_of_its_own() -> None:
    """Whatever it raises; without a Ctrl-C an error stays what it is."""
    with pytest.raises(KeyboardInterrupt), Interrupts(tuple):
        _cut_off()
    with pytest.raises(Py4JNetworkError), Interrupts(tuple):
        raise Py4JNetworkError


def _cut_off() -> None:
    """A call that hears of its interrupt as of a lost connection."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as error:
        raise Py4JNetworkError from error
