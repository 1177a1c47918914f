"""Cut of a lane's next batch: what it reads, fixed before any of its results is visible.

A lane with rollback recovery writes results outside of a transaction. A copy of its last commit
marker contains the cut of the next batch before that, so that whoever executes the batch again
reads the same records under the same event time.
"""

from dataclasses import dataclass

from pipeline.ids import BatchId, Epoch, Millis
from pipeline.markers.positions import Positions


@dataclass(frozen=True, slots=True)
class Cut:
    """The batch after the one of its commit marker; it begins where that ended.

    Args:
        id: another one for each cut of a fragment; part of the ids of the batch's results.
        end: where it ends, of every partition.
        event_ms: the event time that comes into force in it; None: that of the batch before.
        partitions: number of partitions of the output that it is written to.
    """

    id: str
    end: Positions
    event_ms: Millis | None
    partitions: int


def cut_id(epoch: Epoch, batch: BatchId) -> str:
    """The id of a cut: a lane has an epoch of its own, and cuts a batch once."""
    return f"{epoch}.{batch}"
