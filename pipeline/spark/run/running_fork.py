"""A fork that runs on a thread of its own."""

import threading
from dataclasses import dataclass, field

from pipeline.boundaries.deadline import Watch
from pipeline.boundaries.lane_time import Steered
from pipeline.errors import BrokenInvariantError, MedusaError
from pipeline.ids import Millis, SteadyMillis
from pipeline.spark.run.fork import Fork
from pipeline.tentative.generation import Generation


@dataclass(slots=True)
class RunningFork:
    """A fork that runs.

    Args:
        generation: of its results.
        fork: the fork.
        begun_ms: when it was begun (steady time).
        watch: of its event time.
        steered: how that moves.
        begins_ms: the boundary after which it publishes; None: there is none yet.
        is_prepared: whether its query has executed a batch.
        error: it has failed; None: it has not.
        has_ended: whether it has.
    """

    generation: Generation
    fork: Fork
    begun_ms: SteadyMillis
    watch: Watch
    steered: Steered
    begins_ms: Millis | None = None
    is_prepared: bool = False
    error: MedusaError | None = None
    has_ended: threading.Event = field(default_factory=threading.Event)

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
