"""Classification of Spark's data-loss errors. Pure."""

from pipeline.errors import MedusaError, RefusedError, RetryError
from pipeline.lanes.start.decision import Rebuild
from pipeline.planner.state import OnChange
from pipeline.spark.run.spark_errors import LostDataError


def in_batch(
    error: LostDataError, gone: RefusedError | None, choice: OnChange | None
) -> MedusaError:
    """The error for a lane.

    Args:
        error: Spark's error.
        gone: error with the lost records; None: all records to be read next exist.
        choice: the user's choice for the state, valid at the next start.
    """
    if gone is None:
        return RetryError(f"{error.message}, but now they are there", hint=error.hint)
    if choice is OnChange.EMPTY:  # removed before they were read: the next start passes over them
        return RetryError(gone.message, place=gone.place)
    return gone


def in_rebuild(error: LostDataError, start: Rebuild) -> MedusaError:
    """The error for a rebuild: a chosen one uses the existing records at the next start."""
    if not start.chosen:
        return error
    return RetryError(
        "records were removed from an input while the state was rebuilt from them",
        hint="nothing has to be done: it is rebuilt from what the topics hold now",
    )
