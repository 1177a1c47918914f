"""Work that waits for servers, so that the agent's loop does not."""

import logging
import threading
from collections.abc import Callable, Hashable

from pipeline.errors import FencedError, MedusaError

Job = Callable[[], None]

_log = logging.getLogger(__name__)


class Background:
    """Does jobs one after the other on a thread of its own.

    Of the jobs with one key only the newest waits, so that there are never more than keys. A job
    that fails is logged: the agent finds out what is still to be done when it looks again.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: dict[Hashable, Job] = {}
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def put(self, key: Hashable, job: Job) -> None:
        """Do a job soon; one with this key that still waits gives up its place in line to it."""
        with self._changed:
            self._jobs[key] = job
            self._changed.notify()

    def end(self, within_s: float) -> bool:
        """Do what waits, then end; whether that took no longer than `within_s`."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            attempt(self._name, job)

    def _next(self) -> Job | None:
        with self._changed:
            while not self._jobs and not self._ended:
                self._changed.wait()
            return self._jobs.pop(next(iter(self._jobs))) if self._jobs else None


def attempt(name: str, job: Job) -> None:
    """Do a job; if it fails, say so in the log."""
    try:
        job()
    except FencedError as error:
        _log.info("%s: %s", name, error)  # the catalog says soon whose the fragment is now
    except MedusaError as error:
        _log.warning("%s: %s", name, error)
    except Exception:  # noqa: BLE001 - the thread's top: the next job is another one
        _log.exception("%s failed", name)
