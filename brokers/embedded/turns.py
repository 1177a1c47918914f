"""Processes of one machine that take turns at the same files."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokers.embedded.progress import Progress, Step
from pipeline.errors import RetryError

_POLL_S = 1.0


@contextmanager
def one_at_a_time(lock: Path, what: str, within_s: float, progress: Progress) -> Iterator[None]:
    """Hold a lock, so that no two processes do the same together.

    Args:
        lock: a file; its folder is there.
        what: what is done meanwhile, for whoever has to wait.
        within_s: how long to wait for another process.
        progress: told when there is one.

    Raises:
        RetryError: the other process does not get done.
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
