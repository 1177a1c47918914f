"""Background job of a lane, such as committing a finished batch, on its own thread."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from pipeline.errors import MedusaError, RetryError

JOB_WITHIN_S: Final = 300.0
"""Upper limit; every job has shorter deadlines of its own."""


class BackgroundJob:
    """Runs one job at a time; the next call raises the error of a failed job.

    Only one thread starts jobs; others may call `wait` and `check`.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._job: Future[None] | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Run a job after the previous one has succeeded.

        Raises:
            MedusaError: the error of the previous job; this one is not started.
        """
        self.wait()
        self._job = self._pool.submit(_run, job)

    def follow(self, job: Callable[[], None]) -> None:
        """Run a job after the previous one; does not wait for it.

        If the previous one fails, this one does not run, and has its error.
        """
        before = self._job

        def run() -> None:
            if before is not None:
                before.result()
            job()

        self._job = self._pool.submit(_run, run)

    def wait(self, within_s: float = JOB_WITHIN_S) -> None:
        """Wait until the last job, if any, has ended.

        Raises:
            MedusaError: the error of the job; every further call raises it again. RetryError: it
            did not end in time, or raised an unexpected error.
        """
        job = self._job
        if job is None:
            return
        try:
            job.result(within_s)
        except TimeoutError as error:
            raise RetryError(f"writing a batch took more than {within_s:g} s") from error

    def check(self) -> None:
        """Raise the error of the last job, if it has ended with one.

        Raises:
            MedusaError: the error of the job.
        """
        job = self._job
        if job is not None and job.done():
            job.result()

    def close(self) -> None:
        """Reject further jobs; the thread ends after the current one."""
        self._pool.shutdown(wait=False)


def _run(job: Callable[[], None]) -> None:
    """Run a job; unexpected errors become a RetryError, which ends the lane."""
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
