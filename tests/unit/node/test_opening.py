import threading
import time

import pytest

from pipeline.errors import UnavailableError
from pipeline.node.opening import unless_stopped

NEVER_S = 30.0


def test_the_result_of_the_work_is_returned() -> None:
    """Without a stop nothing differs."""
    assert unless_stopped(lambda: 7, threading.Event()) == 7


def test_an_error_of_the_work_is_raised() -> None:
    """On the thread that waits for it."""

    def fail() -> int:
        raise UnavailableError("nobody answers")

    with pytest.raises(UnavailableError, match="nobody answers"):
        unless_stopped(fail, threading.Event())


def test_a_stop_does_not_wait_for_the_work() -> None:
    """Work that hangs is abandoned."""
    stop, forever = threading.Event(), threading.Event()
    threading.Timer(0.05, stop.set).start()
    began = time.monotonic()
    assert unless_stopped(lambda: forever.wait(NEVER_S), stop) is None
    assert time.monotonic() - began < NEVER_S / 2
    forever.set()


def test_an_error_caused_by_a_stop_is_not_raised() -> None:
    """Also when it occurs a moment before the stop."""
    stop = threading.Event()

    def killed() -> int:
        threading.Timer(0.05, stop.set).start()
        raise ConnectionError("the Java process is gone")

    assert unless_stopped(killed, stop) is None
