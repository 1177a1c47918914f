"""A job beside a lane's query, without a thread of its own."""

from collections.abc import Callable
from random import Random

from pipeline.errors import MedusaError
from tests.histories.turns import CrashedError, Turn


class BackgroundJob:
    """Stands in for the class of the same name: a job runs at once, or when it is waited for."""

    rng: Callable[[], Random] = staticmethod(lambda: Random(0))

    def __init__(self, _name: str) -> None:
        self._turn = Turn.current
        self._job: Callable[[], None] | None = None
        self._failed: MedusaError | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Run a job beside the caller."""
        self.wait()
        self._job = job
        if self.rng().random() < 0.7:
            self._run()

    def wait(self, _within_s: float = 0.0) -> None:
        """Let the job end; raises what it raised."""
        self._run()
        if self._failed is not None:
            raise self._failed

    def check(self) -> None:
        """Raise what the job raised; it may have ended meanwhile."""
        if self.rng().random() < 0.5:
            self._run()
        if self._failed is not None:
            raise self._failed

    def close(self) -> None:
        """Start no further job."""

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
