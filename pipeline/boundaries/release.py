"""Step size and rate limit of a lane's advances.

Two limits. A jump of event time is released in steps, so that one batch never closes unboundedly
many windows: the advances that are not yet in force span at most one step, and the step adapts to
the number of rows that steps emit. And advances are rate limited, since each one costs a batch that
may contain nothing else.
"""

from dataclasses import dataclass, replace

from pipeline.boundaries.external import StreamBoundary
from pipeline.boundaries.promise import advance_in_force, watermark_for
from pipeline.boundaries.windows import last_end, next_end
from pipeline.ids import Millis, SteadyMillis
from pipeline.markers.commit_marker import CommitMarker
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed

LEAST_WATERMARK_MS = 2
"""Spark's watermark begins at 0, so a watermark up to 0 would never be observed in force, and a
lane that waits for its first advance would wait for ever. Spark wakes no state before 1, so timers
of the first millisecond fire with the second."""
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
STATELESS_PACE_MS = 100
"""A stateless lane only forwards event time. At ten advances a second the extra batches stay a
small part of its load, and a window downstream closes at most a tenth of a second later."""
JOIN_PACE_MS = 250
"""A join emits a pair when both rows are there; an advance only frees state and moves event time
downstream. A no-data batch over state costs more than a stateless one, hence fewer."""
SESSION_PACE_MS = 250
"""A session ends a whole gap after its last record; a quarter of a second more is little."""
CLOCK_PACE_MS = 1_000
"""When only the clock moves event time, latency does not matter: without this limit, every quiet
lane would run ten empty batches a second for ever."""

SENT_AGAIN_MS = 30_000
"""An advance that has not taken effect for so long is sent again; twice has no other effect."""


@dataclass(frozen=True, slots=True)
class Release:
    """Advances of a lane: the largest sent, the one in force, and the present step.

    Args:
        in_force_ms: the advance in force by the marker of a finished batch.
        released_ms: the largest advance sent; never below `in_force_ms`.
        released_at_ms: steady time at which this process sent it.
        step_ms: how far beyond `in_force_ms` event time may be released.
        cut: whether the step limited the last advance.
        begins_ms: where the first step begins, at least 0; None: the first advance is unlimited.
    """

    in_force_ms: Millis | None
    released_ms: Millis | None
    released_at_ms: SteadyMillis | None
    step_ms: int
    cut: bool = False
    begins_ms: Millis | None = None


def begin(shape: Shape, marker: CommitMarker) -> Release:
    """Initial state of a lane that continues from a marker."""
    in_force = advance_in_force(shape, marker)
    return Release(in_force, in_force, None, _first_step_ms(shape))


def took_effect(
    shape: Shape, release: Release, marker: CommitMarker, rows_out: int, offsets: int = 0
) -> Release:
    """Update the advance in force from a finished batch's marker, and adapt the step.

    A fully used step that emitted few rows grows to the size that would have emitted the target, at
    least to its double; one that emitted too many halves. An advance that was not cut does not
    change the step.

    Args:
        shape: what the lane computes.
        release: the state before.
        marker: the batch's.
        rows_out: how many results the batch emitted.
        offsets: number of offsets read. A join emits about as many pairs as it read rows; rows
            beyond that were emitted by the step.
    """
    now = advance_in_force(shape, marker)
    before = release.in_force_ms
    if now is None or (before is not None and now <= before):
        return release
    released = now if release.released_ms is None else max(now, release.released_ms)
    step_ms, cut = release.step_ms, release.cut
    emitted = rows_out - offsets if isinstance(shape, Joined) else rows_out
    if emitted > STEP_ROWS:
        step_ms = max(_least_step_ms(shape), step_ms // 2)
    elif cut and now >= released and emitted < STEP_ROWS:
        growth = STEP_ROWS // max(1, emitted)
        step_ms = min(STEP_MAX_MS, step_ms * max(2, min(STEP_GROWTH_MAX, growth)))
    return replace(
        release,
        in_force_ms=now,
        released_ms=released,
        step_ms=step_ms,
        cut=cut and now < released,
    )


def next_advance(
    shape: Shape, release: Release, target: StreamBoundary, now_ms: SteadyMillis
) -> tuple[Release, Millis | None]:
    """Compute the next advance, within the step and the rate limit.

    The first advance of an incarnation is unlimited if there is no start to measure a jump from: it
    is sent as soon as a batch was read.

    Returns:
        The new state, and the advance to send if there is one: above every earlier one, at or
        below the target.
    """
    if isinstance(shape, Stateless):
        value, cut = target.at_ms, False
    else:
        if _must_wait(shape, release):
            return _sent_again(release, now_ms)
        value, cut = _within_step(shape, release, target.at_ms)
        if watermark_for(shape, value) < LEAST_WATERMARK_MS:
            return release, None
    if release.released_ms is not None and value <= release.released_ms:
        return release, None
    if not cut and not _in_pace(shape, release, target, now_ms):
        return release, None
    sent = replace(release, released_ms=value, released_at_ms=now_ms, cut=cut)
    return sent, value


def _sent_again(release: Release, now_ms: SteadyMillis) -> tuple[Release, Millis | None]:
    """The advance that has not taken effect for long, once more: its record may be lost."""
    at_ms = release.released_at_ms
    if at_ms is None or now_ms - at_ms < SENT_AGAIN_MS:
        return release, None
    return replace(release, released_at_ms=now_ms), release.released_ms


def rest_ms(shape: Shape, release: Release, target: StreamBoundary) -> int | None:
    """How far the released event time is behind a target that it reaches in steps; None: in one."""
    base_ms = release.in_force_ms if release.released_ms is None else release.released_ms
    if isinstance(shape, Stateless) or base_ms is None:
        return None
    _, cut = _within_step(shape, release, target.at_ms)
    return _closing(shape, target.at_ms) - base_ms if cut else None


def _must_wait(shape: Shape, release: Release) -> bool:
    """Whether the last advance has to take effect first.

    Always for windows: one batch per closed window is enough. For sessions and joins only the first
    one, since later ones are measured from what is in force, and one that the step limited: its
    rows decide on the next step.
    """
    if release.released_ms is None or release.released_ms == release.in_force_ms:
        return False
    return isinstance(shape, Windowed) or release.cut or release.in_force_ms is None


def _within_step(shape: Shape, release: Release, target: Millis) -> tuple[Millis, bool]:
    """The target limited by the step, for windows to just before an end; and whether it was cut."""
    begins_ms = release.begins_ms if release.in_force_ms is None else release.in_force_ms
    if begins_ms is None:
        return _closing(shape, target), False
    limit = Millis(begins_ms + release.step_ms)
    goal, value = _closing(shape, target), _closing(shape, min(target, limit))
    if isinstance(shape, Windowed) and value <= begins_ms < goal:
        # A step that began inside a window and reaches no end still has to close one.
        value = Millis(next_end(shape.window, Millis(begins_ms + 1)) - 1)
    return value, value < goal


def _closing(shape: Shape, advance: Millis) -> Millis:
    """The smallest advance that closes the same windows; for other shapes the advance itself."""
    if isinstance(shape, Windowed):
        return Millis(last_end(shape.window, Millis(advance + 1)) - 1)
    return advance


def _in_pace(shape: Shape, release: Release, target: StreamBoundary, now_ms: SteadyMillis) -> bool:
    if release.released_at_ms is None or isinstance(shape, Windowed):
        return True
    pace_ms = STATELESS_PACE_MS
    if isinstance(shape, Sessions):
        pace_ms = SESSION_PACE_MS
    elif isinstance(shape, Joined):
        pace_ms = JOIN_PACE_MS
    if target.by_clock:
        pace_ms = max(pace_ms, CLOCK_PACE_MS)
    return now_ms - release.released_at_ms >= pace_ms


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
