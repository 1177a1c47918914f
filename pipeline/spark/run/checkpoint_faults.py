"""What a lane does about a checkpoint that it cannot go on from."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import MedusaError, RefusedError, RetryError
from pipeline.ids import Epoch
from pipeline.lanes.batch import RepeatedOtherwiseError
from pipeline.spark.run.batch_loop import LaneSink
from pipeline.spark.run.checkpoints import Checkpoints
from pipeline.spark.run.lane_copies import LaneCopies
from pipeline.spark.run.rebuild import UnlikeError
from pipeline.spark.run.spark_errors import DamagedCheckpointError, OutsideBatchError


@dataclass(frozen=True, slots=True)
class CheckpointFaults:
    """Sets checkpoints aside, so that the next start decides without them.

    Args:
        checkpoints: of the lane.
        copies: of its checkpoint.
        epoch: of the lane.
        sink: its last marker has the incarnation of the checkpoint.
    """

    checkpoints: Checkpoints
    copies: LaneCopies
    epoch: Epoch
    sink: LaneSink

    @contextmanager
    def of_query(self, folder: Path) -> Iterator[None]:
        """Set the checkpoint of a query in a folder aside if that fails by it.

        If it fails for an unknown cause, only when the next one does so as well: the cause may be
        the process, and a state is lost with its checkpoint.
        """
        try:
            yield
        except (DamagedCheckpointError, RepeatedOtherwiseError):
            self._set_aside(folder)
            raise
        except OutsideBatchError:
            if self._is_known():
                self._set_aside(folder)
            raise

    @contextmanager
    def of_addition(self, folder: Path) -> Iterator[None]:
        """Set an older checkpoint aside if what it lacks cannot be added to its state.

        For a lane that does not build its state from the log: without that checkpoint it begins
        with an empty one. What ends by itself, and a broken invariant, are no such cause.

        Raises:
            RetryError: the next start decides without the checkpoint.
        """
        try:
            yield
        except OutsideBatchError as error:
            if not self._is_known():
                raise
            raise self._given_up(error, folder) from error
        except (DamagedCheckpointError, RefusedError, UnlikeError) as error:
            if error.external:
                raise
            raise self._given_up(error, folder) from error

    def _given_up(self, error: MedusaError, folder: Path) -> RetryError:
        self._set_aside(folder)
        what = f"what its checkpoint lacks cannot be added: {error.message}"
        return RetryError(what, place=error.place, hint="the lane begins without that checkpoint")

    def _is_known(self) -> bool:
        return self.checkpoints.suspected(self.epoch, self.sink.marker.incarnation)

    def _set_aside(self, folder: Path) -> None:
        self.checkpoints.set_aside(self.epoch, self.sink.marker.incarnation)
        self.copies.discard(folder, self.sink.marker)
