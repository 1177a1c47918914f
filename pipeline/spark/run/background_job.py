"""One background job of a lane at a time, such as writing a finished batch, on its own thread."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from pipeline.errors import MedusaError, RetryError

JOB_WITHIN_S: Final = 300.0
"""Every job has deadlines of its own, which end long before."""


class BackgroundJob:
    """Runs one job beside its caller, who hears of its failure when it next asks.

    One caller starts jobs; others may ask as well.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._job: Future[None] | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Run a job when the one before it has ended well.

        Raises:
            MedusaError: what the job before raised; this one is not started.
        """
        self.wait()
        self._job = self._pool.submit(_run, job)

    def wait(self, within_s: float = JOB_WITHIN_S) -> None:
        """Wait until the last job, if there is one, has ended.

        Raises:
            MedusaError: what the job raised; every further call raises it again.
            RetryError: it did not end in time, or raised what nobody expected.
        """
        job = self._job
        if job is None:
            return
        try:
            job.result(within_s)
        except TimeoutError as error:
            raise RetryError(f"writing a batch took more than {within_s:g} s") from error

    def check(self) -> None:
        """Raise what the last job raised, if it has ended.

        Raises:
            MedusaError: what the job raised.
        """
        job = self._job
        if job is not None and job.done():
            job.result()

    def close(self) -> None:
        """Start no further job; the thread ends with the one that runs."""
        self._pool.shutdown(wait=False)


def _run(job: Callable[[], None]) -> None:
    """Run a job; whatever goes wrong in it is an error of ours, which ends a lane."""
    try:
        job()
    except MedusaError:
        raise
    except Exception as error:
        raise RetryError(
            f"writing a batch failed unexpectedly: {type(error).__name__}: {error}",
            hint="nothing of it was published, and it is written again; if it fails again, report "
            "the error with the log of the node",
        ) from error
