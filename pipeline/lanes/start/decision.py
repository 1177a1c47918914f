"""Decision of a lane's start from its last marker and its checkpoint. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from brokers.records import MADE_AGAIN
from pipeline.errors import FencedError, RefusedError
from pipeline.ids import BatchId, Epoch, Millis, Offset
from pipeline.lanes.batch_size import too_many
from pipeline.lanes.new_partitions import no_beginning
from pipeline.lanes.start.facts import (
    CheckpointFacts,
    CommittedState,
    PlannedBatch,
    StartRequest,
    Unusable,
)
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker
from pipeline.markers.positions import InputPartition, Positions
from pipeline.planner.digest import same_format
from pipeline.planner.state import OnChange

OTHER_DIGEST = "another version of Medusa made the state"
"""Its digest is not comparable. That the state belongs to this plan is certain all the same: a
deploy of a changed plan is refused until the user chooses. Its state's format is unknown."""
_ASKED = "it was asked for at deploy"
_FOLLOWED = "this node has followed or copied the state"


@dataclass(frozen=True, slots=True)
class FirstStart:
    """First start: choose an incarnation and start positions, write the first marker."""


@dataclass(frozen=True, slots=True)
class BeginAt:
    """Start without state: make a new checkpoint that begins at `marker.end`."""

    marker: CommitMarker
    why: str


@dataclass(frozen=True, slots=True)
class Continue:
    """Continue with the unmodified checkpoint.

    `planned`: the batch that runs first, since the checkpoint contains its ends but not its commit;
    None if the next batch is planned anew. If it is the marker's, it runs for its state only.
    `withdrawn`: the next batch, whose plan in the checkpoint does not fit and is removed first;
    nothing of it is in the state. None: there is no such plan.
    """

    marker: CommitMarker
    planned: BatchId | None
    withdrawn: BatchId | None = None


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Rebuild the state from the log, up to `marker.end`, without publishing.

    Args:
        marker: the progress of the lane.
        begin: first offsets to read; None: the begin of each input.
        eviction_ms: the watermark that must be in force afterwards; None: none.
        why: problem of the checkpoint.
        not_before: begins of sources as decided by a deploy; records before them do not count.
        chosen: whether the user chose it at a deploy, so that its records are judged anew. Else
            every record that was accepted before must be accepted again.
        since: the state of an older checkpoint, to begin from instead; None: there is none.
    """

    marker: CommitMarker
    begin: Positions | None
    eviction_ms: Millis | None
    why: str
    not_before: Positions = field(default_factory=dict)
    chosen: bool = False
    since: CommittedState | None = None


@dataclass(frozen=True, slots=True)
class SkipToEnd:
    """Begin with an empty state at the newest offsets; what is before them is in no later result.

    `why`: why the state cannot be continued.
    """

    marker: CommitMarker
    why: str


Start = FirstStart | BeginAt | Continue | Rebuild | SkipToEnd


def decide_start(
    marker: CommitMarker | None, checkpoint: CheckpointFacts | Unusable, request: StartRequest
) -> Start:
    """Decide how a lane starts.

    Args:
        marker: the fragment's last commit marker; None if there is none.
        checkpoint: the lane's copy of the newest checkpoint of the marker's incarnation; without a
            marker, of any incarnation.
        request: the lane.

    Raises:
        FencedError: the marker's epoch is not older than the lane's. RefusedError: starting would
        lose, repeat or change output.
    """
    if marker is None:
        return _first(checkpoint, request)
    check_owner(marker, request.epoch, request.place)
    if marker.nothing_read:
        return BeginAt(marker, "nothing has run yet")
    if not request.stateful:
        return _without_state(marker, checkpoint, request)
    comparable = same_format(marker.state, request.state)
    if request.on_change is not None or (comparable and not request.fits(marker)):
        return _chosen(marker, request)
    problem = _problem(marker, checkpoint, request) if comparable else OTHER_DIGEST
    if problem is None:
        return _continued(marker, checkpoint, request.most)
    since = _since(marker, checkpoint, request) if comparable else None
    return _not_continued(marker, since, request, problem)


def check_owner(marker: CommitMarker, epoch: Epoch, place: str) -> None:
    """Check that an earlier owner has written the last commit marker.

    The marker may be of another plan, so this precedes every comparison with the lane's plan. An
    epoch is claimed once, above that of the last marker. It is claimed twice only if ZooKeeper was
    reset to an older state in between; the first to write a marker under it then owns the fragment.

    Raises:
        FencedError: the marker's epoch is newer, or another owner has the same.
    """
    if marker.epoch >= epoch:
        raise FencedError(
            f"epoch {marker.epoch} wrote the last commit marker, this lane has epoch {epoch}",
            place=place,
        )


def _first(checkpoint: CheckpointFacts | Unusable, request: StartRequest) -> Start:
    if request.ran_before:
        raise RefusedError(
            "the catalog says that the fragment has run, but its marker topic holds no commit "
            "marker: what it has read and written is not known any more",
            place=request.place,
            hint="restore the marker topic; or destroy the network and deploy it again to start "
            "over, and see that cleanup.policy of the new topic is compact",
        )
    if isinstance(checkpoint, Unusable):
        return FirstStart()
    raise RefusedError(
        "there is a checkpoint, but no commit marker says what it has written",
        place=request.place,
        hint="if the fragment's topics were deleted on purpose, remove the checkpoint folder "
        "as well; otherwise the topics are lost or this is another Kafka cluster",
    )


def _without_state(
    marker: CommitMarker, checkpoint: CheckpointFacts | Unusable, request: StartRequest
) -> Start:
    """Start of a stateless lane: its only progress is the positions in the marker.

    The checkpoint of another plan may have other inputs, or a state; its batch is not repeated.
    """
    if request.on_change is OnChange.EMPTY:
        return BeginAt(marker, _ASKED)
    changed = not request.fits(marker) or marker.plan != request.plan
    problem = "its plan has changed" if changed else _problem(marker, checkpoint, request)
    if problem is not None:
        return BeginAt(marker, problem)
    return _continued(marker, checkpoint, request.most)


def _not_continued(
    marker: CommitMarker, since: CommittedState | None, request: StartRequest, problem: str
) -> Rebuild | SkipToEnd:
    """Start with a state that is not in the checkpoint, or not all of it.

    A lane that has run no batch, as one that takes an output over, has lost nothing: it begins
    where its deploy has decided.
    """
    is_level = since is not None and _is_at(since, marker)
    lacks_letters = not is_level and _lacks_letters(marker, request)
    has_lost = lacks_letters or not _lacks_little(since, marker, request.most)
    if request.amnesia and marker.batch != NO_BATCH and has_lost:
        return SkipToEnd(marker, problem)
    if lacks_letters:
        raise _letters_unknown(request, problem)
    return Rebuild(marker, marker.needed, marker.eviction_ms, problem, since=since)


def _continued(marker: CommitMarker, checkpoint: CheckpointFacts | Unusable, most: int) -> Continue:
    """Continue from a checkpoint at the marker's batch, or at the one before it."""
    if isinstance(checkpoint, Unusable) or checkpoint.planned is None:
        return Continue(marker, planned=None)
    planned = checkpoint.planned
    if planned.batch == checkpoint.committed:
        return Continue(marker, planned=None)
    if planned.batch != marker.batch and _is_unfit(marker, planned, most):
        return Continue(marker, planned=None, withdrawn=planned.batch)
    return Continue(marker, planned=planned.batch)


def _lacks_letters(marker: CommitMarker, request: StartRequest) -> bool:
    """Whether the dead letters are gone that an exact rebuild has to leave out."""
    return bool(marker.letters_from) and marker.letters != request.dead_letter_topic_id


def _letters_unknown(request: StartRequest, problem: str) -> RefusedError:
    return RefusedError(
        f"{problem}; its state cannot be rebuilt exactly from the log, since the dead-letter "
        f"topic {MADE_AGAIN}: which records were left out is not known any more",
        place=request.place,
        hint="deploy it with `--state rebuild` (what was left out is judged anew) or `--state "
        "empty` (what was read before counts in no later result)",
    )


def _chosen(marker: CommitMarker, request: StartRequest) -> Start:
    """Start with a state that does not fit, by the user's choice. Promises stay in effect."""
    eviction_ms = marker.settled_ms
    match request.on_change:
        case OnChange.REBUILD:
            return Rebuild(marker, None, eviction_ms, _ASKED, chosen=True)
        case OnChange.EMPTY:
            return Rebuild(marker, marker.end, eviction_ms, _ASKED, chosen=True)
        case None:
            raise RefusedError(
                "another version of the network made the state",
                place=request.place,
                hint="deploy it with `--state rebuild` (from what the input topics still hold) or "
                "`--state empty` (what was read before counts in no later result), or deploy the "
                "version that made it",
            )


def _problem(
    marker: CommitMarker, checkpoint: CheckpointFacts | Unusable, request: StartRequest
) -> str | None:
    """Why a checkpoint cannot be continued; None when it can."""
    if isinstance(checkpoint, Unusable):
        return checkpoint.why
    if checkpoint.followed:
        return _FOLLOWED
    committed = NO_BATCH if checkpoint.committed is None else checkpoint.committed
    planned = NO_BATCH if checkpoint.planned is None else checkpoint.planned.batch
    progress = f"batch {committed} is committed and {planned} planned"
    problem: str | None = None
    if checkpoint.incarnation != marker.incarnation:
        problem = (
            f"the checkpoint belongs to incarnation {checkpoint.incarnation}, the last commit "
            f"marker to {marker.incarnation}"
        )
    elif checkpoint.foreign:
        problem = checkpoint.foreign
    elif planned not in (committed, committed + 1):
        problem = f"the checkpoint is damaged: {progress}"
    elif committed > marker.batch:
        problem = f"the checkpoint is ahead of the marker of batch {marker.batch}: {progress}"
    elif committed < marker.batch:
        problem = _behind(marker, checkpoint.planned, progress)
    problem = problem or _unlike(marker, checkpoint.state, stateful=request.stateful)
    return problem or no_beginning(marker.end, request.positions)


def _since(
    marker: CommitMarker, checkpoint: CheckpointFacts | Unusable, request: StartRequest
) -> CommittedState | None:
    """The state that a rebuild may begin from; None: from the log alone."""
    if isinstance(checkpoint, Unusable) or checkpoint.incarnation != marker.incarnation:
        return None
    if checkpoint.foreign:
        return None
    if not checkpoint.followed and _unlike(marker, checkpoint.state, stateful=True):
        return None
    found = _followed if checkpoint.followed else _older
    return found(marker, checkpoint, request)


def _lacks_little(since: CommittedState | None, marker: CommitMarker, most: int) -> bool:
    """Whether a state lacks no more than one batch may read, as that of a follower."""
    if since is None:
        return False
    return sum(max(0, n - since.end.get(at, Offset(0))) for at, n in marker.end.items()) <= most


def _older(
    marker: CommitMarker, checkpoint: CheckpointFacts, request: StartRequest
) -> CommittedState | None:
    """The state of an older checkpoint that a rebuild may begin from; None: from the log alone.

    It is of the same incarnation, so its batches are those of the marker's lane, up to one before
    the marker's. It contains no record that a later batch has read, and the dead letters that a
    rebuild needs name every record beyond it that was left out.
    """
    state, planned = checkpoint.state, checkpoint.planned
    if state is None or planned is None or marker.judged is None:
        return None
    if state.batch >= marker.batch or planned.batch not in (state.batch, state.batch + 1):
        return None
    return _preceding(state, marker, request)


def _followed(
    marker: CommitMarker, checkpoint: CheckpointFacts, request: StartRequest
) -> CommittedState | None:
    """The state of a follower that a rebuild may begin from; None: from the log alone.

    It has repeated the batches of the marker's lane up to one of them, so it contains no record
    that a later batch has read either; nor if it was stopped while it read what was missing, in
    pieces of these batches. A marker without a judged batch is that of a rebuilt state, which
    has to be exactly its own.
    """
    if checkpoint.state is None:
        return None
    state = _preceding(checkpoint.state, marker, request)
    if state is None:
        return None
    has_judged = marker.judged is not None
    return state if has_judged or _is_at(state, marker) else None


def _is_at(state: CommittedState, marker: CommitMarker) -> bool:
    """Whether a state is that of a marker, whatever partitions without a record it has besides."""
    end = {at: offset for at, offset in state.end.items() if at in marker.end}
    return replace(state, end=end).is_at(marker.end, marker.eviction_ms)


def _preceding(
    state: CommittedState, marker: CommitMarker, request: StartRequest
) -> CommittedState | None:
    """A state with all partitions, if none of its positions is ahead of a marker; else None.

    The lane may have got partitions since: it has begun them at 0, as Spark does again, and
    the state has no record of them. So it is the same state with them at 0.
    """
    wanted = {**request.positions, **marker.end}
    new = {at: Offset(0) for at in wanted if at not in state.end}
    if any(request.positions.get(at, 0) for at in new if at not in marker.end):
        return None
    end = {**state.end, **new}
    if end.keys() != wanted.keys() or marker.end.keys() != marker.needed.keys():
        return None
    in_between = all(marker.needed[at] <= end[at] <= to for at, to in marker.end.items())
    if not in_between or (state.watermark_ms or 0) > (marker.eviction_ms or 0):
        return None
    return replace(state, end=end)


def _is_unfit(marker: CommitMarker, planned: PlannedBatch, most: int) -> bool:
    """Whether the next batch cannot run as planned: other partitions, or too many records."""
    if planned.end.keys() != marker.end.keys():
        return True
    return too_many(marker.end, planned.end, most)


def _unlike(marker: CommitMarker, state: CommittedState | None, *, stateful: bool) -> str | None:
    """How a state differs from the one that the marker's lane had; None: it does not.

    The next batch begins where the checkpoint ends: at the end of the marker's batch, or at its
    begin if that is executed once more. Nothing says where earlier batches ended. A partition that
    the checkpoint lacks begins at 0.
    """
    if state is None or state.batch not in (marker.batch - 1, marker.batch):
        return None
    is_last = state.batch == marker.batch
    end, watermark_ms = (
        (marker.end, marker.eviction_ms) if is_last else (marker.start, marker.late_ms)
    )
    ends, there = ({at: n for at, n in one.items() if n} for one in (end, state.end))
    if differing := _difference(there, ends):
        return f"batch {state.batch} of the checkpoint is not the one that was written: {differing}"
    if stateful and max(0, state.watermark_ms or 0) != max(0, watermark_ms or 0):
        return (
            f"batch {state.batch} of the checkpoint was executed under watermark "
            f"{state.watermark_ms}, the one that was written under {watermark_ms}"
        )
    return None


def _behind(marker: CommitMarker, planned: PlannedBatch | None, progress: str) -> str | None:
    """Why a checkpoint behind the marker cannot be continued; None if it can.

    It can if it is one batch behind, and that batch is planned exactly as it was written. The batch
    of a rebuild cannot be repeated: only the rebuild has the list of records it left out.
    """
    if planned is None or planned.batch != marker.batch:
        return f"the checkpoint is older than the marker of batch {marker.batch}: {progress}"
    differing = _difference(planned.end, marker.end)
    if differing:
        return f"batch {planned.batch} is planned otherwise than it was written: {differing}"
    if marker.judged is None:
        return f"batch {planned.batch} rebuilt the state, and was not finished: {progress}"
    return None


def _difference(planned: Positions, written: Positions) -> str:
    """Describe the first partition whose ends differ; empty if there is none."""
    for key in sorted({*planned, *written}):
        if planned.get(key) != written.get(key):
            where = f"input {key.input}, topic {key.topic}, partition {key.partition}"
            return f"{where} ends at {_end(planned, key)} there and at {_end(written, key)} here"
    return ""


def _end(positions: Mapping[InputPartition, int], key: InputPartition) -> str:
    return str(positions[key]) if key in positions else "no position"
