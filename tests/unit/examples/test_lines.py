"""What a cut closes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.errors import RetryError, UnavailableError
from pipeline.examples.lines import ANSWERS_WITHIN_S, HeldFeed, SuspendedBroker
from tests.unit.examples.test_cutting import SteppedClock


def test_the_feed_is_held_by_a_file(tmp_path: Path) -> None:
    """It may be released twice."""
    line = HeldFeed(tmp_path / "cut")
    line.cut()
    assert line.file.exists()
    for _ in range(2):
        line.heal()
        assert not line.file.exists()


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that waits for its input."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield child
    child.kill()
    child.communicate()


def state(pid: int) -> int:
    """How a process has changed: stopped, or continued."""
    _, status = os.waitpid(pid, os.WUNTRACED | os.WCONTINUED)
    return status


def test_a_broker_is_suspended_until_it_answers_again(process: "subprocess.Popen[bytes]") -> None:
    """Its process continues, and is asked until it answers."""
    asked: list[int] = []

    def ask() -> None:
        asked.append(1)
        if len(asked) < 3:
            raise UnavailableError("no answer")

    line = SuspendedBroker(process.pid, ask, SteppedClock())
    line.cut()
    assert os.WSTOPSIG(state(process.pid)) == signal.SIGSTOP
    line.heal()
    assert os.WIFCONTINUED(state(process.pid))
    assert len(asked) == 3


def test_a_broker_that_never_answers_is_an_error(process: "subprocess.Popen[bytes]") -> None:
    """After a while; its process has continued."""

    def ask() -> None:
        raise UnavailableError("no answer")

    clock = SteppedClock()
    with pytest.raises(RetryError, match="answers of the broker"):
        SuspendedBroker(process.pid, ask, clock).heal()
    assert clock.seconds >= ANSWERS_WITHIN_S


def test_a_broker_that_has_ended_is_no_error() -> None:
    """At the end of a run it may have."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    SuspendedBroker(child.pid, lambda: None, SteppedClock()).go_on()
