"""Exclusive file lock between processes of one machine."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokers.embedded.progress import Progress, Step
from pipeline.errors import RetryError

_POLL_S = 1.0


@contextmanager
def exclusive_lock(lock: Path, what: str, within_s: float, progress: Progress) -> Iterator[None]:
    """Hold a file lock, so that only one process does this work at a time.

    Args:
        lock: a file; its folder exists.
        what: the work, for the messages of processes that wait.
        within_s: how long to wait for another process.
        progress: called while another process holds the lock.

    Raises:
        RetryError: the other process does not release it in time.
    """
    ends_at = time.monotonic() + within_s
    with lock.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                progress(Step(f"waiting for another process that is {what}"))
                if time.monotonic() > ends_at:
                    raise RetryError(f"another process is still {what}", place=str(lock)) from None
                time.sleep(_POLL_S)
        yield
