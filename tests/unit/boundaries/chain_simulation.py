"""Model of two lanes in a chain: counts in windows, and sums of these in windows twice as long."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from brokers.records import KafkaRecord
from pipeline.availability import Availability
from pipeline.boundaries.deadline import Awaited
from pipeline.boundaries.derived import PendingBoundary, WriterSeen, with_boundary
from pipeline.boundaries.ends import Answer, Ends, ends_of
from pipeline.boundaries.lane_time import Steered, begin, boundary_read, writer_of
from pipeline.boundaries.next_batch import Batch, LastBatch
from pipeline.boundaries.profile import DerivedInput
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis, StreamName, TopicId, TopicName
from pipeline.lanes.fork_phases import TRANSITIONS, ForkEvent
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.shape import Windowed
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.tentative.progress import Progress
from pipeline.tentative.records import TentativeRecord, TentativeResult, encode
from pipeline.tentative.upstream import Upstream
from tests.unit.boundaries.fork_simulation import (
    SETTLE_MS,
    TICK_MS,
    WINDOW_MS,
    X_MS,
    Forks,
    Query,
    Released,
    Run,
    Scenario,
)
from tests.unit.boundaries.support import START_MS, at, lane, marker, positions

LONG_MS = 2 * WINDOW_MS
TOPIC_ID = TopicId("counts-1")
COUNTS = DerivedInput(StreamName("counts"), TopicName("counts"), 1, "local.n.counts", TOPIC_ID)
TENTATIVE = TopicName("counts.tentative")
SHAPE = Windowed(TumblingWindow(size_ms=LONG_MS, offset_ms=0))
OF_TENTATIVE = InputPartition(COUNTS.stream, TENTATIVE, 0)


def as_record(one: TentativeRecord | Progress, offset: int) -> KafkaRecord:
    """A record of the tentative topic."""
    if isinstance(one, Progress):
        headers = one.headers(TOPIC_ID)
        return KafkaRecord(TENTATIVE, 0, Offset(offset), Millis(1), None, None, headers)
    sent = encode(one, TOPIC_ID)
    at_ms = Millis(1) if sent.timestamp_ms is None else sent.timestamp_ms
    return KafkaRecord(TENTATIVE, 0, Offset(offset), at_ms, sent.key, sent.value, sent.headers)


@dataclass
class Sums(Query):
    """The second lane, stable or a fork; `read`: counts by event time, each only once."""

    counts: list[Released] = field(default_factory=list)
    tentative: list[TentativeRecord | Progress] = field(default_factory=list)
    read: dict[int, int] = field(default_factory=dict)
    parts: dict[bytes, int] = field(default_factory=dict)

    def progress(self, batch: Batch) -> dict[InputPartition, Millis]:
        """Read the counts of a batch."""
        begin_at = {**self.marker.end, **batch.begin}
        stable = at(COUNTS, 0)
        found = [
            (one.at_ms, one.value) for one in self.counts[begin_at[stable] : batch.end[stable]]
        ]
        progress = dict(self.marker.progress)
        if found:
            progress[stable] = max(ms for ms, _ in found)
        if OF_TENTATIVE in batch.end:
            those = self.tentative[begin_at[OF_TENTATIVE] : batch.end[OF_TENTATIVE]]
            results = [one for one in those if isinstance(one, TentativeResult)]
            found += [(one.timestamp_ms, one.value) for one in results]
        for ms, value in found:
            assert ms not in self.read, "a window counts twice"
            assert ms > (self.marker.boundary_ms or 0) - LONG_MS, "it is late"
            self.read[ms] = int(value)
        return progress

    def released(
        self, after_ms: Millis | None, to_ms: Millis | None, end: Positions, now: int
    ) -> list[Released]:
        """The sums that event time has released."""
        del end
        sums: dict[int, list[int]] = {}
        for ms, value in self.read.items():
            sums.setdefault(ms // LONG_MS * LONG_MS + LONG_MS, []).append(value)
        low, high = after_ms or 0, 0 if to_ms is None else to_ms
        due = {ms: values for ms, values in sums.items() if low < ms <= high}
        self.parts |= {b"%d" % ms: len(values) for ms, values in due.items()}
        return [
            Released(b"%d" % ms, Millis(ms), b"%d" % sum(values), now) for ms, values in due.items()
        ]


@dataclass
class SumsForks(Forks):
    """The forks of the second lane, which read tentative counts."""

    upstream: Upstream = field(default_factory=lambda: Upstream(COUNTS, TENTATIVE, 1))
    news: WriterSeen = field(default_factory=WriterSeen)
    parts: dict[bytes, int] = field(default_factory=dict)
    """How many counts each of their results is made of."""
    outdated: int = 0
    taken: int = 0

    def awaited(self) -> Awaited:
        """What the first lane holds back."""
        return {COUNTS.stream: self.upstream.awaited} if self.upstream.awaited else {}

    def offered(self) -> ForkEvent | None:
        """As `Upstreams` and `LaneForks` do it."""
        fork, seen = self.fork, self.stable.time.writers[COUNTS.stream]
        if seen.covered_ms is not None:
            self.upstream.forget(seen.covered_ms)
        if fork is None:
            return None
        newest = seen.pending[-1].boundary_ms if seen.pending else seen.covered_ms or 0
        taken = fork.time.taken.get(COUNTS.stream)
        if taken is None:
            found = self.upstream.offer(fork.time.writers[COUNTS.stream].covered_ms)
            if found is None or found.complete.boundary_ms <= newest:
                return None
        else:
            found = self.upstream.renewed(taken)
            if found is None or newest >= found.complete.boundary_ms:
                self.outdated += 1
                is_running = (self.phase, ForkEvent.OUTDATED) in TRANSITIONS
                return ForkEvent.OUTDATED if is_running else None
        fork.time = replace(fork.time, steered=replace(fork.time.steered, tentative=(found,)))
        self.taken += taken is None
        return None

    def started(self, steered_by: Steered, now: int) -> Query:
        """With the state of the stable lane, and no tentative record."""
        stable = self.stable
        assert isinstance(stable, Sums)
        first = replace(stable.marker, end={**stable.marker.end, OF_TENTATIVE: Offset(0)})
        writers = {writer_of(COUNTS): self.news}
        time = begin(stable.time.profile, first, writers, SteadyMillis(now))
        fork = Sums([], first, replace(time, steered=steered_by), stable.most)
        fork.parts = self.parts
        fork.counts, fork.tentative = stable.counts, stable.tentative
        fork.read = {
            ms: n for ms, n in stable.read.items() if ms > (stable.marker.boundary_ms or 0) - 10_000
        }
        return fork


@dataclass
class Chain:
    """Two lanes; `restarts`: ticks at which the owner of the first one begins anew."""

    scenario: Scenario
    with_forks: bool = True
    restarts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Two lanes at the beginning of their topics."""
        self.first = Run(self.scenario)
        self.sums: list[Released] = []
        start = marker(positions(COUNTS, 0))
        time = begin(lane(COUNTS, shape=SHAPE), start, {}, START_MS)
        self.stable = Sums([], start, time, self.scenario.most)
        self.stable.counts = self.first.results
        self.stable.tentative = self.first.forks.topic
        self.stable.last = LastBatch(start.end)
        self.forks = SumsForks(self.stable, Availability(X_MS, self.scenario.policy))
        self.ends: Ends | None = None
        self.added = 0
        self.promised: Millis | None = None

    def go(self) -> "Chain":
        """All ticks; afterwards nothing is away or behind, until all is settled."""
        for tick in range(self.scenario.ticks):
            self.tick(tick)
        first = self.first
        was = first.scenario
        first.scenario = replace(was, failures=(), behind=(0,) * len(first.logs))
        for tick in range(was.ticks, was.ticks + 150):
            self.tick(tick)
        first.scenario = was
        return self

    def tick(self, tick: int) -> None:
        """The first lane, then the second one."""
        if tick in self.restarts:
            self.first.forks.restart()
        self.first.tick(tick)
        now = START_MS + TICK_MS * tick
        self._boundary()
        ends = {COUNTS.topic: {0: Offset(len(self.first.results))}}
        self.ends = ends_of(self.ends, SteadyMillis(now), Answer(ends, ends))
        self.stable.answer(self.ends)
        self.sums += self.stable.step(now)
        for record in self._new():
            self.forks.upstream.add(record, SteadyMillis(now))
        if not self.with_forks:
            return
        if self.forks.fork is not None:
            self.forks.fork.answer(self.ends)
        self.forks.look(now, self.ends)
        self.forks.step(now)
        if tick % (SETTLE_MS // TICK_MS) == 0:
            self.forks.settle(self.sums)

    def _boundary(self) -> None:
        """The boundary of the first lane, with the end of its results."""
        promised = self.first.stable.marker.boundary_ms
        if promised is None or promised == self.promised:
            return
        self.promised = promised
        found = PendingBoundary(promised, {0: Offset(len(self.first.results))})
        self.forks.news = with_boundary(self.forks.news, Epoch(1), found)
        for one in (self.stable, self.forks.fork):
            if one is not None:
                one.time = boundary_read(one.time, writer_of(COUNTS), Epoch(1), found)

    def _new(self) -> Iterator[KafkaRecord]:
        topic = self.first.forks.topic
        for offset in range(self.added, len(topic)):
            yield as_record(topic[offset], offset)
        self.added = len(topic)
