"""Background job without a thread."""

from collections.abc import Callable
from random import Random

from pipeline.errors import MedusaError
from tests.histories.turns import CrashedError, Turn


class BackgroundJob:
    """Replaces the class of the same name: a job runs at once, or at the next wait."""

    rng: Callable[[], Random] = staticmethod(lambda: Random(0))

    def __init__(self, _name: str) -> None:
        self._turn = Turn.current
        self._job: Callable[[], None] | None = None
        self._failed: MedusaError | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Start a job."""
        self.wait()
        self._job = job
        if self.rng().random() < 0.7:
            self._run()

    def follow(self, job: Callable[[], None]) -> None:
        """Start a job after the previous one, unless that fails."""
        before = self._job

        def both() -> None:
            if before is not None:
                before()
            if self._failed is None:
                job()

        self._job = both
        if self.rng().random() < 0.5:
            self._run()

    def wait(self, _within_s: float = 0.0) -> None:
        """Complete the job; raises its error."""
        self._run()
        if self._failed is not None:
            raise self._failed

    def check(self) -> None:
        """Raise the job's error, if it has ended."""
        if self.rng().random() < 0.5:
            self._run()
        if self._failed is not None:
            raise self._failed

    def close(self) -> None:
        """Accept no further jobs."""

    def _run(self) -> None:
        if self._turn is not None and self._turn.dead:
            raise CrashedError
        job, self._job = self._job, None
        if job is None:
            return
        try:
            job()
        except MedusaError as error:
            self._failed = error
