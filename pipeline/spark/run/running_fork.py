"""A fork that runs on a thread of its own."""

import threading
from dataclasses import dataclass, field

from pipeline.boundaries.deadline import Watch
from pipeline.boundaries.lane_time import Steered
from pipeline.errors import BrokenInvariantError, MedusaError
from pipeline.ids import Millis, SteadyMillis
from pipeline.spark.run.fork import Fork
from pipeline.tentative.generation import Generation
from pipeline.tentative.publishing import Publishing


@dataclass(slots=True)
class RunningFork:
    """A fork that runs.

    Args:
        generation: of its results.
        fork: the fork.
        begun_ms: when it was begun (steady time).
        watch: of its event time.
        steered: how that moves.
        publishing: which of its results are published, and when.
        is_prepared: whether its query has executed a batch.
        error: it has failed; None: it has not.
        has_ended: whether it has.
    """

    generation: Generation
    fork: Fork
    begun_ms: SteadyMillis
    watch: Watch
    steered: Steered
    publishing: Publishing
    is_prepared: bool = False
    error: MedusaError | None = None
    has_ended: threading.Event = field(default_factory=threading.Event)

    @property
    def cut_ms(self) -> Millis | None:
        """The event time after which it reads tentative records of its inputs; None: it reads none.

        Of several inputs with different cuts the last one.
        """
        observed = self.fork.observed
        taken = {} if observed is None else observed[0].taken
        return max((one.cut_ms for one in taken.values()), default=None)

    def run(self) -> None:
        """Run the fork to its end; an error is kept."""
        try:
            self.fork.run()
        except MedusaError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - an unexpected one must not end the lane
            self.error = unexpected(error)
        finally:
            self.has_ended.set()


def unexpected(error: Exception) -> MedusaError:
    """An error of a fork that is none of ours."""
    return BrokenInvariantError(f"a fork failed: {type(error).__name__}: {error}")
