"""Background jobs that wait for servers, so that the agent's loop does not."""

import logging
import threading
from collections.abc import Callable, Hashable

from pipeline.errors import FencedError, MedusaError

Job = Callable[[], None]

_log = logging.getLogger(__name__)


class Background:
    """A worker thread that runs jobs in order, at most one waiting job per key.

    A newer job replaces the waiting job of its key, so the queue is bounded by the number of keys.
    A job that fails is logged: the agent's next poll shows what is still to be done.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: dict[Hashable, Job] = {}
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def put(self, key: Hashable, job: Job) -> None:
        """Queue a job; it takes the place in the queue of a waiting job with this key."""
        with self._changed:
            self._jobs[key] = job
            self._changed.notify()

    def end(self, within_s: float) -> bool:
        """Run the waiting jobs, then end; returns whether that took no longer than `within_s`."""
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
    """Run a job and log its failure."""
    try:
        job()
    except FencedError as error:
        _log.info("%s: %s", name, error)  # the next catalog read shows the new owner
    except MedusaError as error:
        _log.warning("%s: %s", name, error)
    except Exception:  # noqa: BLE001 - the thread's top: the next job must still run
        _log.exception("%s failed", name)
