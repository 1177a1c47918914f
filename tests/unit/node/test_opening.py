import threading
import time

import pytest

from pipeline.errors import UnavailableError
from pipeline.node.opening import unless_stopped

NEVER_S = 30.0


def test_what_the_work_gives_is_given() -> None:
    """Without a stop nothing is different."""
    assert unless_stopped(lambda: 7, threading.Event()) == 7


def test_what_the_work_raises_is_raised() -> None:
    """On the thread that waits for it."""

    def fail() -> int:
        raise UnavailableError("nobody answers")

    with pytest.raises(UnavailableError, match="nobody answers"):
        unless_stopped(fail, threading.Event())


def test_a_stop_does_not_wait_for_the_work() -> None:
    """Work that hangs is left behind."""
    stop, forever = threading.Event(), threading.Event()
    threading.Timer(0.05, stop.set).start()
    began = time.monotonic()
    assert unless_stopped(lambda: forever.wait(NEVER_S), stop) is None
    assert time.monotonic() - began < NEVER_S / 2
    forever.set()


def test_an_error_that_a_stop_brings_about_is_quiet() -> None:
    """Also when it is seen a moment before the stop."""
    stop = threading.Event()

    def killed() -> int:
        threading.Timer(0.05, stop.set).start()
        raise ConnectionError("the Java process is gone")

    assert unless_stopped(killed, stop) is None
