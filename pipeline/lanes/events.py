"""Lane events: messages of a lane to the agent that runs it."""

from dataclasses import dataclass

from pipeline.boundaries.lane_time import LaneTime
from pipeline.boundaries.usual_waits import UsualWaits
from pipeline.errors import BrokenInvariantError, FencedError, InputError, MedusaError
from pipeline.ids import Epoch, LaneId, RunNumber, SteadyMillis
from pipeline.lanes.tentative_state import TentativeState
from pipeline.markers.commit_marker import CommitMarker


@dataclass(frozen=True, slots=True)
class LaneStarted:
    """A lane's query is about to run its first batch; precedes every `BatchFinished` of it.

    `marker` is the one it continues from; `time` is its event time; `fenced_ms`: steady time since
    which no earlier owner can write.
    """

    lane: LaneId
    run: RunNumber
    epoch: Epoch
    marker: CommitMarker
    time: LaneTime
    fenced_ms: SteadyMillis


@dataclass(frozen=True, slots=True)
class LaneTimed:
    """The event time of a running lane, as it is now; only the latest counts."""

    lane: LaneId
    run: RunNumber
    time: LaneTime


@dataclass(frozen=True, slots=True)
class LaneWaited:
    """How long results of a running lane usually wait for input; about once a minute."""

    lane: LaneId
    run: RunNumber
    waits: UsualWaits


@dataclass(frozen=True, slots=True)
class LaneTentative:
    """What there is to say of the tentative results of a running lane; replaces what was said."""

    lane: LaneId
    run: RunNumber
    state: TentativeState


@dataclass(frozen=True, slots=True)
class LaneRebuilding:
    """A starting lane rebuilds its state from the log; sent again with its progress.

    Args:
        offsets: number of offsets to read; there may be fewer records.
        read: number of records read, if known; of several batches those of finished ones, with
            offsets that contain none.
        batches: number of batches that it is divided into.
        batches_done: number of those that are done.
    """

    lane: LaneId
    run: RunNumber
    epoch: Epoch
    offsets: int
    read: int = 0
    batches: int = 1
    batches_done: int = 0


@dataclass(frozen=True, slots=True)
class BatchFinished:
    """A batch's transaction is committed (or it was executed but not written again).

    `duration_ms`: from the batch's start until its transaction was committed. `bytes_out`: keys and
    values of its results.
    """

    lane: LaneId
    run: RunNumber
    marker: CommitMarker
    rows_out: int
    duration_ms: int
    bytes_out: int = 0


@dataclass(frozen=True, slots=True)
class LaneStopped:
    """A lane's query ended, or its start failed; sent once for every `StartLane`.

    `error` is None when it was asked to stop. `retry`: whether starting again can help. `fenced`:
    another epoch owns the fragment. `external`: as of `MedusaError`; such a failure counts towards
    no limit. `epoch` is 0 if a start failed before it had an epoch.
    """

    lane: LaneId
    run: RunNumber
    epoch: Epoch
    error: str | None
    retry: bool
    fenced: bool
    external: bool = False


def stopped_by(lane: LaneId, run: RunNumber, epoch: Epoch, error: MedusaError) -> LaneStopped:
    """Build the event for a run that ended by an error; the error's type decides `retry`."""
    lasting = isinstance(error, InputError | BrokenInvariantError) and not error.external
    fenced = isinstance(error, FencedError)
    return LaneStopped(
        lane, run, epoch, str(error), retry=not lasting, fenced=fenced, external=error.external
    )


LaneEvent = (
    LaneRebuilding
    | LaneStarted
    | LaneTimed
    | LaneWaited
    | LaneTentative
    | BatchFinished
    | LaneStopped
)
