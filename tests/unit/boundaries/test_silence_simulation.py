"""Silence of an external stream, compared with a model that evaluates the whole history each time.

Producers append, a lane reads in batches, its node requests the ends, sometimes without a response,
sometimes not at all. The boundary must always be that of the rules applied to the whole history,
and the boundary of the lane only rises.
"""

from dataclasses import dataclass, field, replace

from hypothesis import event, given, settings
from hypothesis import strategies as st

from pipeline.boundaries.ends import ENDS_FRESH_MS, Ends
from pipeline.boundaries.external import StreamBoundary
from pipeline.boundaries.lane_time import batch_finished, begin, ends_read, input_times, observe
from pipeline.boundaries.profile import ExternalInput
from pipeline.boundaries.release import next_move
from pipeline.ids import Millis, Offset, SteadyMillis
from pipeline.network.model import Silence
from tests.profiles import examples
from tests.unit.boundaries.support import CARS, START_MS, at, lane, marker, positions

BASE_MS = 50_000


@dataclass(frozen=True)
class Requested:
    """A request of the ends; None: no response."""

    at_ms: int
    ends: tuple[int, int] | None
    position: tuple[int, int]
    """What was finished by then."""


@dataclass
class History:
    """All events in order."""

    stream: ExternalInput
    requests: list[Requested] = field(default_factory=list)
    read: list[list[tuple[int, int]]] = field(
        default_factory=lambda: [[(0, START_MS)], [(0, START_MS)]]
    )
    """Per partition: (step, time) of its records."""
    bounds: list[tuple[int, int]] = field(default_factory=list)
    """(step, boundary) of every evaluation."""
    position: tuple[int, int] = (0, 0)
    progress: list[int | None] = field(default_factory=lambda: [None, None])

    def batch(self, step: int, now: int, position: tuple[int, int]) -> None:
        """A batch finished."""
        for p in (0, 1):
            if position[p] > self.position[p]:
                self.read[p].append((step, now))
        self.position = position

    def request(self, step: int, now: int, ends: tuple[int, int] | None) -> None:
        """The ends were requested."""
        before = self.requests[-1] if self.requests else None
        for p in (0, 1):
            if ends is None:
                continue
            hole = before is None or before.ends is None or now - before.at_ms > ENDS_FRESH_MS
            grew = before is not None and before.ends is not None and before.ends[p] != ends[p]
            if hole or grew or ends[p] > self.position[p]:
                self.read[p].append((step, now))
        self.requests.append(Requested(now, ends, self.position))

    def idle(self, p: int, now: int) -> bool:
        """Reachable, finished up to the end, and silent for long enough while it was watched."""
        last = self.requests[-1] if self.requests else None
        if last is None or last.ends is None or now - last.at_ms > ENDS_FRESH_MS:
            return False
        silent_ms = last.at_ms - max(then for _, then in self.read[p])
        at_end = self.position[p] >= last.ends[p]
        return self.stream.silence is Silence.IDLE and at_end and silent_ms >= 10_000

    def boundary(self, step: int, now: int) -> StreamBoundary | None:
        """The boundary by the rules."""
        found = self._boundary(now)
        if found is not None:
            self.bounds.append((step, found.at_ms))
        return found

    def _boundary(self, now: int) -> StreamBoundary | None:
        active = [p for p in (0, 1) if not self.idle(p, now)]
        behind = [None if t is None else t - 5_000 - 1 for t in self.progress]
        if active:
            least = [behind[p] for p in active]
            bounds = [t for t in least if t is not None]
            return StreamBoundary(Millis(min(bounds))) if len(bounds) == len(least) else None
        started = [t for t in behind if t is not None]
        if not started:
            return None
        last_step, last_read = max(read for p in (0, 1) for read in self.read[p])
        earlier = [bound for step, bound in self.bounds if step < last_step]
        silent_ms = self.requests[-1].at_ms - last_read
        return StreamBoundary(Millis(max(*started, *earlier, -(2**60)) + silent_ms), by_clock=True)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 1), st.integers(0, 40_000)),
        st.tuples(st.just("batch"), st.integers(0, 2), st.integers(0, 2)),
        st.tuples(st.just("wait"), st.sampled_from([0, 1, 500, 2_000, 4_000, 6_000]), st.just(0)),
        st.tuples(st.just("request"), st.just(1), st.just(0)),
        st.tuples(st.just("no answer"), st.just(0), st.just(0)),
        # A quarter of a minute without records while the node polls: the stream becomes idle.
        st.tuples(st.just("watch"), st.integers(1, 8), st.just(0)),
        # The node does not poll in the middle of a silence.
        st.tuples(st.just("hole"), st.integers(1, 4), st.just(0)),
        # Records that are read at once, as most of the time.
        st.tuples(st.just("traffic"), st.integers(0, 1), st.integers(0, 40_000)),
    ),
    min_size=3,
    max_size=40,
)


def expanded(steps: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """The steps, with each watch and all traffic as single steps."""
    found: list[tuple[str, int, int]] = []
    for step in steps:
        if step[0] == "watch":
            found.extend([("wait", 2_000, 0), ("request", 1, 0)] * step[1])
        elif step[0] == "hole":
            watch = [("wait", 2_000, 0), ("request", 1, 0)] * step[1]
            found.extend([*watch, ("wait", 6_000, 0), *watch])
        elif step[0] == "traffic":
            found.extend([("write", step[1], step[2]), ("batch", 9, 9), ("request", 1, 0)])
        else:
            found.append(step)
    return found


@given(STEPS, st.sampled_from([CARS, replace(CARS, silence=Silence.MISSING)]))
@settings(max_examples=examples(400))
def test_the_boundary_equals_the_rules_applied_to_the_whole_history(
    steps: list[tuple[str, int, int]], stream: ExternalInput
) -> None:
    """Idle and unreachable are distinct; the boundary of a lane only rises."""
    log: tuple[list[int], list[int]] = ([], [])
    history, now = History(stream), START_MS
    last, ends = marker(positions(stream, 0, 0)), None
    time = begin(lane(stream), last, {}, now)
    moves: list[int] = []
    for number, (what, one, two) in enumerate(expanded(steps), start=1):
        if what == "write":
            log[one].append(BASE_MS + two)
        elif what == "wait":
            now = SteadyMillis(now + one)
        elif what == "batch":
            start = history.position
            end = (min(len(log[0]), start[0] + one), min(len(log[1]), start[1] + two))
            for p in (0, 1):
                history.progress[p] = max(log[p][: end[p]], default=None)
            progress = {at(stream, p): t for p, t in enumerate(history.progress) if t is not None}
            last = marker(positions(stream, *end), batch=number, progress=progress)
            time = batch_finished(time, last, 0, now)
            history.batch(number, now, end)
        else:
            answer = (len(log[0]), len(log[1])) if what == "request" else None
            found = {0: Offset(len(log[0])), 1: Offset(len(log[1]))}
            before, ends = ends, Ends(now, {stream.topic: found} if answer else {})
            time = ends_read(time, before, ends)
            history.request(number, now, answer)
        expected = history.boundary(number, now)
        assert input_times(time, ends, now)[stream.stream].boundary == expected
        time, target = observe(time, ends, now)
        assert target == expected
        move = None if target is None else next_move(time.profile.shape, time.release, target)
        if move is not None and target is not None:
            assert move.to_ms == target.at_ms
            assert not moves or move.to_ms > moves[-1]
            moves.append(move.to_ms)
            passed = replace(last, boundary_ms=move.to_ms)
            time = batch_finished(time, passed, 0, now)
            event("by clock" if target.by_clock else "by progress")
