"""Model of a stable lane, its forks and its partitions over steady time."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pipeline.availability import Availability, Policy
from pipeline.boundaries.deadline import Awaited, Watch, held, look
from pipeline.boundaries.ends import Answer, Ends, ends_of
from pipeline.boundaries.lane_time import (
    LaneTime,
    Steered,
    batch_finished,
    begin,
    ends_read,
)
from pipeline.boundaries.next_batch import (
    Batch,
    Decision,
    LastBatch,
    Limits,
    PassOn,
    Wait,
    next_batch,
)
from pipeline.boundaries.promise import promise, watermark_for
from pipeline.ids import BatchId, Epoch, Millis, Offset, SteadyMillis
from pipeline.lanes.fork_phases import (
    ForkEvent,
    ForkPhase,
    Measured,
    after,
    begun,
    next_event,
    reads_early,
    steered,
)
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Windowed
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.tentative.generation import Generation, following
from pipeline.tentative.progress import NOTHING_MS, HeldBoundary, Progress, held_boundaries
from pipeline.tentative.publishing import Publishing
from pipeline.tentative.records import TentativeRecord, TentativeResult, digest, done_marks
from pipeline.tentative.restoring import restored
from pipeline.tentative.settling import Settling
from tests.unit.boundaries.support import START_MS, STRICT_CARS, at, lane, marker, positions

X_MS, TICK_MS, BATCH_MS, SETTLE_MS, WINDOW_MS = 4_000, 100, 100, 500, 500
"""The bound; the pause between two looks, answers of brokers and records; the rest by its name."""
USUAL_MS = 1_500
"""The latency without a failure: a record is noticed, read after the present batch, and released;
sessions and joins move event time each quarter of a second. And what is missing is known only after
the batch that did not bring it."""
UNREAD_MS = 400
"""The time from a record until a fork does not publish without it: two batches, two looks."""
INPUT = replace(STRICT_CARS, lateness_ms=0)
BASE_MS = 1_000_000
HOW = Measured(latency_ms=BATCH_MS, ready_ms=1_000)
SHAPES: tuple[Shape, ...] = (
    Windowed(TumblingWindow(size_ms=WINDOW_MS, offset_ms=0)),
    Sessions(SessionWindow(gap_ms=100, longest_ms=400)),
    Joined(span_ms=100, behind_ms=100, waits=True),
)


@dataclass(frozen=True, slots=True)
class Away:
    """A partition stays away from a tick on, for some ticks.

    `answers`: its producer has stopped; else its broker does not answer.
    """

    partition: int
    begin: int
    ticks: int
    answers: bool


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens to the partitions.

    Args:
        shape: of the lane.
        behind: how many ticks each partition is behind.
        failures: in any order.
        policy: of the lane.
        most: offsets of a batch.
        ticks: how long it lasts.
    """

    shape: Shape
    behind: tuple[int, ...]
    failures: tuple[Away, ...] = ()
    policy: Policy = Policy.PROCESS
    most: int = 1_000
    ticks: int = 150

    def away(self, partition: int, tick: int, *, answers: bool) -> bool:
        """Whether a partition is away in this way."""
        return any(
            one.partition == partition
            and one.answers == answers
            and one.begin <= tick < one.begin + one.ticks
            for one in self.failures
        )


@dataclass(frozen=True, slots=True)
class Released:
    """A result: its id, event time and value, and when it was there (steady time)."""

    id: bytes
    at_ms: Millis
    value: bytes
    there_ms: int


@dataclass
class Query:
    """A lane, stable or a fork: plans batches, executes each for `BATCH_MS`."""

    logs: list[list[int]]
    marker: CommitMarker
    time: LaneTime
    most: int
    ends: Ends | None = None
    last: LastBatch = field(default_factory=lambda: LastBatch({}))
    running: tuple[Batch, int] | None = None
    decisions: list[tuple[int, Decision]] = field(default_factory=list)
    passed_on: int = 0

    def answer(self, ends: Ends) -> None:
        """The brokers have answered."""
        left_out = frozenset((one.topic, one.partition) for one in self.time.steered.without)
        ends = ends.without(left_out)
        self.time, self.ends = ends_read(self.time, self.ends, ends), ends

    def steer(self, found: Steered) -> None:
        """As a planner."""
        left_out = frozenset((one.topic, one.partition) for one in found.without)
        self.ends = None if self.ends is None else self.ends.without(left_out)
        self.time = replace(self.time, steered=found)

    def step(self, now: int) -> list[Released]:
        """Finish the batch that is over, and begin the next one."""
        released: list[Released] = []
        if self.running is not None:
            if now < self.running[1]:
                return []
            released = self._finish(self.running[0], now)
        limits = Limits(self.most)
        self.time, decision = next_batch(self.time, self.last, self.ends, limits, SteadyMillis(now))
        if isinstance(decision, Batch):
            self.running = decision, now + BATCH_MS
            self.last = LastBatch(decision.end, SteadyMillis(now))
        if isinstance(decision, PassOn):
            self.marker = replace(self.marker, boundary_ms=decision.event_ms)
            self.time = batch_finished(self.time, self.marker, 0, SteadyMillis(now))
            self.passed_on += 1
        if not isinstance(decision, Wait):
            self.decisions.append((now, decision))
        return released

    def _finish(self, batch: Batch, now: int) -> list[Released]:
        before, shape = self.marker, self.time.profile.shape
        eviction_ms = before.eviction_ms
        if batch.event_ms is not None:
            eviction_ms = watermark_for(shape, batch.event_ms)
        progress = self.progress(batch)
        boundary_ms = promise(
            shape,
            eviction_ms=eviction_ms,
            passed_ms=batch.event_ms,
            previous_ms=before.boundary_ms,
        )
        self.marker = replace(
            before,
            batch=BatchId(before.batch + 1),
            start=before.end,
            end=batch.end,
            progress=progress,
            late_ms=before.eviction_ms,
            eviction_ms=eviction_ms,
            boundary_ms=boundary_ms,
        )
        found = self.released(before.eviction_ms, eviction_ms, batch.end, now)
        time = batch_finished(self.time, self.marker, len(found), SteadyMillis(now))
        self.time = replace(time, read_until_ms=self.last.at_ms)
        self.running = None
        return found

    def progress(self, batch: Batch) -> dict[InputPartition, Millis]:
        """The largest event times after a batch, which reads its records."""
        progress = dict(self.marker.progress)
        for n, log in enumerate(self.logs):
            if batch.end[at(INPUT, n)] > 0:
                progress[at(INPUT, n)] = Millis(log[batch.end[at(INPUT, n)] - 1])
        return progress

    def released(
        self, after_ms: Millis | None, to_ms: Millis | None, end: Positions, now: int
    ) -> list[Released]:
        """What event time has released: of a fork with the records that it has read alone."""
        if to_ms is None or to_ms == after_ms:
            return []
        read = [log[: end[at(INPUT, n)]] for n, log in enumerate(self.logs)]
        shape = self.time.profile.shape
        low, high = (after_ms or 0) - shape.behind_ms, to_ms - shape.behind_ms
        found: dict[bytes, Released] = {}
        for n, times in enumerate(read):
            for time in times[bisect_left(times, low - WINDOW_MS) :]:
                at_ms = result_ms(shape, time)
                if low < at_ms <= high:
                    one = self._result(read, n, time, at_ms, now)
                    found[one.id] = one
        return list(found.values())

    def _result(
        self, read: list[list[int]], n: int, time: int, at_ms: Millis, now: int
    ) -> Released:
        if isinstance(self.time.profile.shape, Windowed):
            count = sum(
                bisect_left(one, at_ms) - bisect_left(one, at_ms - WINDOW_MS) for one in read
            )
            return Released(b"%d" % at_ms, at_ms, b"%d" % count, now)
        near = sum(bisect_left(one, time + 1) - bisect_left(one, time - 100) for one in read)
        if isinstance(self.time.profile.shape, Joined):  # another match is another id
            return Released(b"%d/%d/%d" % (n, time, near), at_ms, b"", now)
        return Released(b"%d/%d" % (n, time), at_ms, b"%d" % near, now)


def result_ms(shape: Shape, time: int) -> Millis:
    """The event time of the result of a record."""
    if isinstance(shape, Windowed):
        return Millis(time // WINDOW_MS * WINDOW_MS + WINDOW_MS)
    return Millis(time + 100 if isinstance(shape, Sessions) else time)


@dataclass
class Forks:
    """The forks of a lane, as `LaneForks` runs them."""

    stable: Query
    availability: Availability
    watch: Watch = field(default_factory=lambda: Watch(X_MS))
    phase: ForkPhase = ForkPhase.ABSENT
    fork: Query | None = None
    own: Watch = field(default_factory=lambda: Watch(X_MS))
    generation: Generation | None = None
    ready_ms: int = 0
    settling: Settling = field(default_factory=Settling)
    begun: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    published: list[tuple[Generation, Released]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    undone: list[bytes] = field(default_factory=list)
    done: list[Generation] = field(default_factory=list)
    topic: list[TentativeRecord | Progress] = field(default_factory=list)
    """The tentative topic, of one partition."""
    epoch: Epoch = field(default_factory=lambda: Epoch(1))
    publishing: Publishing = field(default_factory=lambda: Publishing(waits=True))
    refused_ms: Millis = NOTHING_MS

    def look(self, now: int, ends: Ends) -> None:
        """Do what is due."""
        at_ms = SteadyMillis(now)
        self.watch = look(self.watch, self.stable.time, self.stable.ends, at_ms, self.awaited())
        found = held(self.watch)
        happened = self.offered() if reads_early(self.phase, by_time=self._waits) else None
        if happened is None:
            happened = next_event(self.phase, self.watch, found, self.availability, HOW)
        if self.phase is ForkPhase.PREPARING and now >= self.ready_ms:
            happened = ForkEvent.PREPARED
        if happened is not None:
            self.phase = after(self.phase, happened, "here")
        if happened is ForkEvent.DUE:
            assert found is not None
            self.begun.append((now, frozenset(one.partition for one in found.causes)))
            self._begin(now, ends)
        if happened in (ForkEvent.OVER, ForkEvent.OUTDATED):
            assert self.generation is not None
            self.fork = None
            if self.generation in self.settling.unsettled:
                self.settling.end(self.generation)
        if self.fork is not None:
            self._steer(self.fork, happened, at_ms)

    @property
    def _waits(self) -> bool:
        return self.stable.time.profile.shape.waits

    def _steer(self, fork: Query, happened: ForkEvent | None, at_ms: SteadyMillis) -> None:
        if happened is ForkEvent.EXPIRED:
            offers = fork.time.steered.tentative
            fork.steer(replace(begun(self.watch, self.availability, HOW), tentative=offers))
        elif self.phase is ForkPhase.READY:
            self.own = look(self.own, fork.time, fork.ends, at_ms)
        elif self.phase is ForkPhase.PUBLISHING:
            self.own = look(self.own, fork.time, fork.ends, at_ms)
            before, bound = fork.time.steered, self.availability
            found_now = steered(self.watch, self.own, before, bound, HOW)
            found_now = replace(found_now, tentative=before.tentative)
            if found_now != before:
                fork.steer(found_now)

    def restart(self) -> None:
        """The owner of the lane begins anew: its fork is gone, what it has written is there."""
        self.fork, self.phase, self.watch = None, ForkPhase.ABSENT, Watch(X_MS)
        left = [one for one in self.topic if not isinstance(one, Progress)]
        self.settling, self.epoch = restored(left, 1).settling, Epoch(self.epoch + 1)

    def awaited(self) -> Awaited:
        """What the writers of inputs hold back."""
        return {}

    def offered(self) -> ForkEvent | None:
        """Offer tentative records of inputs to the fork."""
        return None

    def started(self, steered_by: Steered, now: int) -> Query:
        """A fork that begins at the marker of the stable lane."""
        stable = self.stable
        time = begin(stable.time.profile, stable.marker, {}, SteadyMillis(now))
        return Query(stable.logs, stable.marker, replace(time, steered=steered_by), stable.most)

    def _begin(self, now: int, ends: Ends) -> None:
        in_force_ms = self.stable.time.release.in_force_ms
        waiting = Steered(most_ms=Millis(0) if in_force_ms is None else in_force_ms)
        self.fork = self.started(waiting, now)
        self.fork.last = LastBatch(self.fork.marker.end)
        self.fork.answer(ends)
        self.publishing, self.refused_ms = Publishing(waits=self._waits), NOTHING_MS
        self.ready_ms, self.own = now + HOW.ready_ms, Watch(X_MS)
        self.generation = following(self.settling.newest, self.epoch)

    def step(self, now: int) -> None:
        """Let the fork run."""
        if self.fork is None or now < self.ready_ms or self.generation is None:
            self._announce(now)
            return
        before = self.fork.marker
        released = self.fork.step(now)
        boundary_ms = self.fork.marker.boundary_ms
        if self.phase is not ForkPhase.PUBLISHING:
            self.publishing.early(boundary_ms)
            self._announce(now)
            return
        if self.fork.marker == before:
            return
        made = [
            TentativeResult(one.id, one.value, one.at_ms, 0, one.id, self.generation)
            for one in released
        ]
        cut_ms = max((one.cut_ms for one in self.fork.time.taken.values()), default=None)
        limit_ms = None if self._waits else boundary_ms or NOTHING_MS
        due = self.publishing.due(made, limit_ms, cut_ms)
        registered = self.settling.register(due)
        self.topic += registered.accepted
        refused = (one.timestamp_ms for one in registered.refused)
        self.refused_ms = max(refused, default=self.refused_ms)
        begins_ms = self.publishing.begins_ms
        found = Progress(self.generation, 1, held=self._held(now))
        if begins_ms is not None and boundary_ms is not None:
            begins_ms = max(begins_ms, self.refused_ms)
            found = replace(found, begins_ms=begins_ms, complete_ms=boundary_ms)
        self.topic.append(found)
        self.published += [
            (self.generation, Released(one.id, one.timestamp_ms, one.value, now))
            for one in registered.accepted
        ]
        self.outcomes["published"] += len(registered.accepted)

    def _announce(self, now: int) -> None:
        if self.generation is not None and self.phase in (ForkPhase.PREPARING, ForkPhase.READY):
            self.topic.append(Progress(self.generation, 1, held=self._held(now)))

    def _held(self, now: int) -> tuple[HeldBoundary, ...]:
        shape = self.stable.time.profile.shape
        return held_boundaries(self.watch, shape, SteadyMillis(now))

    def settle(self, stable: list[Released]) -> None:
        """Read these stable results, and settle up to the promise."""
        promised_ms = self.stable.marker.boundary_ms
        if not self.settling.unsettled or promised_ms is None:
            return
        for one in stable:
            self.settling.stable(one.id, digest(one.value), one.at_ms)
        settled = self.settling.settle(promised_ms)
        self.outcomes["confirmed"] += settled.confirmed
        self.outcomes["replaced"] += settled.replaced
        self.outcomes["superseded"] += settled.superseded
        self.undone += [one.id for one in settled.undone]
        self.done += settled.done
        self.topic += settled.undone
        for generation in settled.done:
            self.topic += done_marks(generation, settled.promised_ms, 1)


@dataclass
class Run:
    """One scenario, tick by tick."""

    scenario: Scenario
    with_forks: bool = True

    def __post_init__(self) -> None:
        """A lane at the beginning of its topic."""
        count = len(self.scenario.behind)
        self.logs: list[list[int]] = [[] for _ in range(count)]
        self.visible = [0] * count
        start = marker(positions(INPUT, *(0 for _ in range(count))))
        profile = lane(INPUT, shape=self.scenario.shape)
        time = begin(profile, start, {}, START_MS)
        self.stable = Query(self.logs, start, time, self.scenario.most)
        self.stable.last = LastBatch(start.end)
        self.forks = Forks(self.stable, Availability(X_MS, self.scenario.policy))
        self.ends: Ends | None = None
        self.results: list[Released] = []
        self.seen: list[tuple[int, int]] = []
        """Steady times, and the largest event time that could be read by then."""
        self.passed_at: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.level: list[tuple[int, int | None]] = []
        self.kept: list[list[int]] = [[] for _ in range(count)]

    def go(self) -> "Run":
        """All ticks; afterwards no partition is away or behind, until all is settled."""
        for tick in range(self.scenario.ticks):
            self.tick(tick)
        self.finish()
        return self

    def finish(self) -> None:
        """Some ticks more, in which no partition is away or behind."""
        last = self.scenario.ticks
        quiet = replace(self.scenario, failures=(), behind=(0,) * len(self.logs))
        self.scenario, was = quiet, self.scenario
        for tick in range(last, last + 120):
            self.tick(tick)
        self.scenario = was

    def tick(self, tick: int) -> None:
        """Records come, brokers answer, lanes run, and the forks are looked at."""
        now = START_MS + TICK_MS * tick
        for n, behind in enumerate(self.scenario.behind):
            self.kept[n].append(BASE_MS + TICK_MS * (tick - behind))
            if not self.scenario.away(n, tick, answers=True):
                self.logs[n] += self.kept[n]
                self.kept[n] = []
        found = {
            n: Offset(len(log))
            for n, log in enumerate(self.logs)
            if not self.scenario.away(n, tick, answers=False)
        }
        missing = frozenset((INPUT.topic, n) for n in range(len(self.logs)) if n not in found)
        ends: Mapping[int, Offset] = found
        there = {INPUT.topic: ends}
        self.ends = ends_of(self.ends, SteadyMillis(now), Answer(there, there, missing=missing))
        for n, end in found.items():
            self.passed_at[n].append((now, self.logs[n][end - 1] if end else 0))
        newest = max((self.logs[n][end - 1] for n, end in found.items() if end), default=0)
        self.seen.append((now, max(newest, self.seen[-1][1] if self.seen else 0)))
        self.stable.answer(self.ends)
        released = self.stable.step(now)
        self.results += released
        if not self.with_forks:
            return
        if self.forks.fork is not None:
            self.forks.fork.answer(self.ends)
        self.forks.look(now, self.ends)
        self.forks.step(now)
        self.level.append((now, self.forks.watch.level_ms))
        if tick % (SETTLE_MS // TICK_MS) == 0:
            self.forks.settle(self.results)

    def missing_for(self, now: int) -> int:
        """How long what the slowest partition has not passed has been wanted.

        What has come just now is not read yet: it counts as missing.
        """
        moments = range(now - UNREAD_MS, now + 1, TICK_MS)
        since = (self._missing_since(n, then) for n in range(len(self.logs)) for then in moments)
        return max((now - at_ms for at_ms in since if at_ms is not None), default=0)

    def _missing_since(self, partition: int, now: int) -> int | None:
        passed = self.passed_at[partition]
        known = max((ms for then, ms in passed if then <= now), default=0)
        since = next((then for then, newest in self.seen if newest > known), None)
        return since if since is not None and since <= now else None

    @property
    def alive(self) -> list[int]:
        """The partitions that are neither away nor behind."""
        failed = {one.partition for one in self.scenario.failures}
        behind = enumerate(self.scenario.behind)
        return [n for n, ticks in behind if ticks <= 1 and n not in failed]
