"""Ctrl-C during a computation of a command, with other children than Java."""

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
    """A process that runs until it is ended."""
    with subprocess.Popen(["sleep", "600"]) as started:
        try:
            yield started
        finally:
            started.kill()


def _is_killed(process: Child) -> bool:
    return process.wait(_ENDS_WITHIN_S) == -signal.SIGKILL


def test_children_started_during_the_call_are_ended() -> None:
    """And earlier ones are unchanged."""
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


def test_children_started_later_are_unchanged() -> None:
    """A test may have its own children."""
    with Interrupts() as interrupts, child() as ours:
        interrupts.opened()
        with child() as other:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            assert _is_killed(ours)
            assert other.poll() is None
        interrupts.happened = False


def test_other_signal_handlers_are_not_called_meanwhile() -> None:
    """PySpark's, for example, would call a process that is gone by then."""
    signals: list[int] = []
    with Interrupts() as interrupts:
        signal.signal(signal.SIGINT, lambda number, _frame: signals.append(number))
        interrupts.opened()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        interrupts.happened = False
    assert not signals


def test_a_consequential_error_is_replaced_by_the_interrupt() -> None:
    """Whatever it is; without a Ctrl-C an error stays what it is."""
    with pytest.raises(KeyboardInterrupt), Interrupts(tuple):
        _cut_off()
    with pytest.raises(Py4JNetworkError), Interrupts(tuple):
        raise Py4JNetworkError


def _cut_off() -> None:
    """A call whose interrupt appears as a lost connection."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as error:
        raise Py4JNetworkError from error
