"""What follows when Spark finds that an input no longer holds what was to be read. Pure."""

from pipeline.errors import MedusaError, RefusedError, RetryError
from pipeline.lanes.start.decision import Rebuild
from pipeline.planner.state import OnChange
from pipeline.spark.run.query_runner import LostDataError


def in_batch(
    error: LostDataError, gone: RefusedError | None, choice: OnChange | None
) -> MedusaError:
    """What it means for a lane.

    Args:
        error: what Spark said.
        gone: what is gone, in words; None: all that was to be read next is there.
        choice: what was chosen for the state, and counts at the next start.
    """
    if gone is None:
        return RetryError(f"{error.message}, but now they are there", hint=error.hint)
    if choice is OnChange.EMPTY:  # removed since they were to be read: the next start passes over
        return RetryError(gone.message, place=gone.place)
    return gone


def in_rebuild(error: LostDataError, start: Rebuild) -> MedusaError:
    """What it means for a rebuild: one that was chosen takes what there is at the next start."""
    if not start.chosen:
        return error
    return RetryError(
        "records were removed from an input while the state was rebuilt from them",
        hint="nothing has to be done: it is rebuilt from what the topics hold now",
    )
