"""Slow steps of a node's start, interruptible by a request to stop."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.05
STOP_MAY_FOLLOW_S = 0.3
"""A signal to a whole process group ends Java too, and its end may be observed before the stop."""


def unless_stopped(work: Callable[[], T], stop: threading.Event) -> T | None:
    """The result of `work`; None as soon as `stop` is set, without waiting for `work`.

    It runs on a thread of its own, so that this one receives signals. After a stop it may continue
    until the process ends, and its errors are ignored.

    Raises:
        Exception: what `work` raises, if there is no stop.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            outcome.set_exception(error)

    if stop.is_set():
        return None
    threading.Thread(target=run, name="opening", daemon=True).start()
    while not stop.is_set():
        if wait((outcome,), POLL_S).done:
            break
    if not outcome.done():
        return None
    if outcome.exception() is not None and stop.wait(STOP_MAY_FOLLOW_S):
        return None
    return outcome.result()
