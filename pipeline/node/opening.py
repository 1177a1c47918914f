"""What may take long while a node starts, done so that a request to stop is heard at once."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.05
STOP_MAY_FOLLOW_S = 0.3
"""Who ends a whole process group ends our Java process with us, and its end may be seen first."""


def unless_stopped(work: Callable[[], T], stop: threading.Event) -> T | None:
    """What `work` gives; None as soon as `stop` is set, whatever `work` does then.

    It runs on a thread of its own, so that this one hears signals. After a stop it may go on until
    the process ends, and what it raises then is nobody's concern.

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
