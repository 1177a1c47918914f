"""Movement of a lane's event time: its steps, and its least interval.

A jump of event time is released in steps, so that one batch never closes unboundedly many windows;
the step adapts to the number of rows that steps emit. And event time does not move in each batch:
each movement makes Spark look through the state, and a batch without records costs as much as one
with some.
"""

from dataclasses import dataclass, replace

from pipeline.boundaries.external import StreamBoundary
from pipeline.boundaries.promise import in_force, watermark_for
from pipeline.boundaries.windows import last_end, next_end
from pipeline.ids import Millis, SteadyMillis
from pipeline.markers.commit_marker import CommitMarker
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed

LEAST_WATERMARK_MS = 2
"""Spark's watermark begins at 0, so a watermark up to 0 would never be observed in force. Spark
wakes no state before 1, so timers of the first millisecond fire with the second."""
STEP_SPANS = 64
"""A lane's first step, in windows or join spans: many enough that a lane which catches up soon runs
at full speed, few enough that 64 windows of many groups still fit one batch."""
JOIN_STEP_MIN_MS = 1_000
"""A join over an instant needs a first step too, and one that emits rows without a partner never
has a step so small that it cannot keep up."""
WAITING_STEP_MAX_MS = 60_000
"""The first step of a join that emits waiting rows is its span, but at most this: an entry of a
table may be valid for years, while the waiting rows arrived within a second."""
STEP_MAX_MS = 3_650 * 24 * 3_600_000
"""Upper limit of the step: ten years, which limits nothing in practice."""
STEP_ROWS = 40_000
"""Target number of rows per step: a tenth of a full batch, so a step never delays the input much.
With fewer, a lane that catches up would scan its state more often than it emits anything."""
STEP_GROWTH_MAX = 16
"""Maximum growth factor: a step that emitted nothing predicts little about a much larger one."""
STATELESS_INTERVAL_MS = 100
"""A stateless lane passes event time on in a transaction of its own if no batch carries it. At ten
a second these stay a small part of its load, and a window downstream closes at most a tenth of a
second later."""
STATE_INTERVAL_MS = 250
"""A join emits a pair when both rows are there, and a session ends a whole gap after its last
record: a quarter of a second more is little."""
CLOCK_INTERVAL_MIN_MS, CLOCK_INTERVAL_MAX_MS = 1_000, 60_000
"""When only the clock moves event time, it moves once in a part of the silence, so that a quiet
lane rests."""
CLOCK_PART, SPENT_CLOCK_PART = 16, 4
"""The part of the silence; the second one in a lane with state that has nothing to release: its
readers alone wait, and each movement costs it a batch."""


@dataclass(frozen=True, slots=True)
class Release:
    """Event time in force in a lane, and its present step.

    Args:
        in_force_ms: by the marker of the last finished batch; None: none yet.
        moved_at_ms: when this process last planned a movement (steady time).
        step_ms: how far beyond `in_force_ms` event time may move at once.
        cut: whether the step limited the last movement.
        catches_up: whether a step limited a movement since event time was last at its target.
        begins_ms: where the first step begins, at least 0; None: the first movement is unlimited.
    """

    in_force_ms: Millis | None
    moved_at_ms: SteadyMillis | None
    step_ms: int
    cut: bool = False
    catches_up: bool = False
    begins_ms: Millis | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """Silence of all inputs, in which only the clock moves event time.

    Args:
        ms: its duration when event time last moved.
        is_spent: whether the lane can emit nothing more without a new record.
    """

    ms: int
    is_spent: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """A movement of event time.

    Args:
        to_ms: the event time that comes into force: above the present one, at most the target.
        cut: whether the step limits it.
    """

    to_ms: Millis
    cut: bool


def begin(shape: Shape, marker: CommitMarker) -> Release:
    """Initial state of a lane that continues from a marker."""
    return Release(in_force(shape, marker), None, _first_step_ms(shape))


def took_effect(
    shape: Shape, release: Release, marker: CommitMarker, rows_out: int, offsets: int = 0
) -> Release:
    """Update the event time in force from a finished batch's marker, and adapt the step.

    A fully used step that emitted few rows grows to the size that would have emitted the target, at
    least to its double; one that emitted too many halves. A movement that was not cut does not
    change the step.

    Args:
        shape: what the lane computes.
        release: the state before.
        marker: the batch's.
        rows_out: how many results the batch emitted.
        offsets: number of offsets read. A join emits about as many pairs as it read rows; rows
            beyond that were emitted by the step.
    """
    now = in_force(shape, marker)
    before = release.in_force_ms
    if now is None or (before is not None and now <= before):
        return release
    step_ms = release.step_ms
    emitted = rows_out - offsets if isinstance(shape, Joined) else rows_out
    if emitted > STEP_ROWS:
        step_ms = max(_least_step_ms(shape), step_ms // 2)
    elif release.cut and emitted < STEP_ROWS:
        growth = STEP_ROWS // max(1, emitted)
        step_ms = min(STEP_MAX_MS, step_ms * max(2, min(STEP_GROWTH_MAX, growth)))
    return replace(release, in_force_ms=now, step_ms=step_ms, cut=False, catches_up=release.cut)


def next_move(shape: Shape, release: Release, target: StreamBoundary) -> Move | None:
    """The next movement towards a target, within the step; None: there is none.

    The first movement of an incarnation is unlimited if there is no start to measure a jump from.
    """
    if isinstance(shape, Stateless):
        move = Move(target.at_ms, cut=False)
    else:
        move = _within_step(shape, release, target.at_ms)
        if watermark_for(shape, move.to_ms) < LEAST_WATERMARK_MS:
            return None
    before_ms = release.in_force_ms
    return move if before_ms is None or move.to_ms > before_ms else None


def due_ms(
    shape: Shape, release: Release, move: Move, silence: Silence | None
) -> SteadyMillis | None:
    """The steady time from which a movement may be planned; None: at once.

    Args:
        shape: what the lane computes.
        release: its state.
        move: the movement.
        silence: of all inputs, if only the clock moves event time.
    """
    if move.cut:  # a jump in steps, in a silence too: each one is as large as a batch may be
        return None
    interval_ms = _interval_ms(shape)
    if silence is not None:
        rests = silence.is_spent and not isinstance(shape, Stateless)
        part_ms = silence.ms // (SPENT_CLOCK_PART if rests else CLOCK_PART)
        part_ms = min(CLOCK_INTERVAL_MAX_MS, max(CLOCK_INTERVAL_MIN_MS, part_ms))
        interval_ms = max(interval_ms, part_ms)
    if release.moved_at_ms is None or not interval_ms:
        return None
    return SteadyMillis(release.moved_at_ms + interval_ms)


def planned(release: Release, move: Move, now_ms: SteadyMillis) -> Release:
    """The state when a batch was planned with a movement."""
    catches_up = release.catches_up or move.cut
    return replace(release, moved_at_ms=now_ms, cut=move.cut, catches_up=catches_up)


def rest_ms(shape: Shape, release: Release, target: StreamBoundary) -> int | None:
    """How far event time is behind a target that it reaches in steps, the last included."""
    if isinstance(shape, Stateless) or release.in_force_ms is None:
        return None
    cut = _within_step(shape, release, target.at_ms).cut
    if not cut and not release.catches_up:
        return None
    return _closing(shape, target.at_ms) - release.in_force_ms


def _within_step(shape: Shape, release: Release, target: Millis) -> Move:
    """The movement to a target, limited by the step; for windows to just before an end."""
    begins_ms = release.begins_ms if release.in_force_ms is None else release.in_force_ms
    if begins_ms is None:
        return Move(_closing(shape, target), cut=False)
    limit = Millis(begins_ms + release.step_ms)
    goal, value = _closing(shape, target), _closing(shape, min(target, limit))
    if isinstance(shape, Windowed) and value <= begins_ms < goal:
        # A step that began inside a window and reaches no end still has to close one.
        value = Millis(next_end(shape.window, Millis(begins_ms + 1)) - 1)
    return Move(value, cut=value < goal)


def _closing(shape: Shape, at_ms: Millis) -> Millis:
    """The least event time that closes the same windows; for other shapes the same."""
    if isinstance(shape, Windowed):
        return Millis(last_end(shape.window, Millis(at_ms + 1)) - 1)
    return at_ms


def _interval_ms(shape: Shape) -> int:
    match shape:
        case Stateless():
            return STATELESS_INTERVAL_MS
        case Windowed():  # it moves only to ends of windows
            return 0
        case Sessions() | Joined():
            return STATE_INTERVAL_MS


def _first_step_ms(shape: Shape) -> int:
    match shape:
        case Windowed(window):
            return STEP_SPANS * window.slide_ms
        case Sessions(window):
            return STEP_SPANS * window.gap_ms
        case Joined(span_ms, waits=waits):
            if waits:
                return min(max(JOIN_STEP_MIN_MS, span_ms), WAITING_STEP_MAX_MS)
            return max(JOIN_STEP_MIN_MS, STEP_SPANS * span_ms)
        case Stateless():
            return STEP_MAX_MS


def _least_step_ms(shape: Shape) -> int:
    """Lower limit of the step: one window, or one gap of sessions.

    The step of a join of pairs alone never shrinks below its first: its rows per batch come from
    the rows it read, not from the step, and a smaller step would only let state grow in a catch-up.
    """
    match shape:
        case Windowed(window):
            return window.slide_ms
        case Sessions(window):
            return window.gap_ms
        case Joined(waits=True):
            return JOIN_STEP_MIN_MS
        case Joined() | Stateless():
            return _first_step_ms(shape)
