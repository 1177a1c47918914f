"""Model of lanes in a chain: counts, lanes without state that pass them on, sums of these."""

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
from pipeline.network.boxes.shape import Shape, Stateless, Windowed
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
SUMS = Windowed(TumblingWindow(size_ms=LONG_MS, offset_ms=0))
STAYS_MS = 10_000
"""How long before the boundary of a lane what it has read may matter to its forks."""


def source(number: int) -> DerivedInput:
    """The stream that the lane with this number writes."""
    name = f"stream{number}"
    return DerivedInput(StreamName(name), TopicName(name), 1, f"local.n.{name}", TOPIC_ID)


def tentative_of(one: DerivedInput) -> InputPartition:
    """The partition of its tentative results."""
    return InputPartition(one.stream, TopicName(f"{one.topic}.tentative"), 0)


def as_record(one: TentativeRecord | Progress, topic: TopicName, offset: int) -> KafkaRecord:
    """A record of a tentative topic."""
    if isinstance(one, Progress):
        headers = one.headers(TOPIC_ID)
        return KafkaRecord(topic, 0, Offset(offset), Millis(1), None, None, headers)
    sent = encode(one, TOPIC_ID)
    at_ms = Millis(1) if sent.timestamp_ms is None else sent.timestamp_ms
    return KafkaRecord(topic, 0, Offset(offset), at_ms, sent.key, sent.value, sent.headers)


def row(result_id: bytes) -> bytes:
    """What a result is of, whatever was missing when it was made."""
    return b"/".join(result_id.split(b"/")[:2])


@dataclass
class Reader(Query):
    """A lane that reads results of another one, stable or a fork; each result counts once.

    Args:
        source: the stream.
        counts: its stable results.
        tentative: the records of its tentative topic.
        read: the results that were read, by what they are of.
        fresh: those of the present batch.
        parts: of each result the number of results that it is made of.
    """

    source: DerivedInput = field(default_factory=lambda: source(0))
    counts: list[Released] = field(default_factory=list)
    tentative: list[TentativeRecord | Progress] = field(default_factory=list)
    read: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    fresh: list[tuple[bytes, int, bytes]] = field(default_factory=list)
    parts: dict[bytes, int] = field(default_factory=dict)

    def progress(self, batch: Batch) -> dict[InputPartition, Millis]:
        """Read the results of a batch."""
        begin_at = {**self.marker.end, **batch.begin}
        stable, of_tentative = at(self.source, 0), tentative_of(self.source)
        found = [
            (one.id, int(one.at_ms), one.value)
            for one in self.counts[begin_at[stable] : batch.end[stable]]
        ]
        progress = dict(self.marker.progress)
        if found:
            progress[stable] = Millis(max(progress.get(stable, 0), *(ms for _, ms, _ in found)))
        if of_tentative in batch.end:
            those = self.tentative[begin_at[of_tentative] : batch.end[of_tentative]]
            results = [one for one in those if isinstance(one, TentativeResult)]
            found += [(one.id, int(one.timestamp_ms), one.value) for one in results]
        for result, ms, value in found:
            assert row(result) not in self.read, "a result counts twice"
            assert ms > (self.marker.boundary_ms or 0) - LONG_MS, "it is late"
            self.read[row(result)] = ms, value
        self.fresh = found
        return progress


@dataclass
class Passing(Reader):
    """A lane without state: a result of each record, when it reads it."""

    def released(
        self, after_ms: Millis | None, to_ms: Millis | None, end: Positions, now: int
    ) -> list[Released]:
        """Those of the batch."""
        del after_ms, to_ms, end
        return [Released(result, Millis(ms), value, now) for result, ms, value in self.fresh]


@dataclass
class Sums(Reader):
    """A lane that adds counts up in windows."""

    def released(
        self, after_ms: Millis | None, to_ms: Millis | None, end: Positions, now: int
    ) -> list[Released]:
        """The sums that event time has released."""
        del end
        sums: dict[int, list[int]] = {}
        for ms, value in self.read.values():
            sums.setdefault(ms // LONG_MS * LONG_MS + LONG_MS, []).append(int(value or b"1"))
        low, high = after_ms or 0, 0 if to_ms is None else to_ms
        due = {ms: values for ms, values in sums.items() if low < ms <= high}
        self.parts |= {b"%d" % ms: len(values) for ms, values in due.items()}
        return [
            Released(b"%d" % ms, Millis(ms), b"%d" % sum(values), now) for ms, values in due.items()
        ]


def new_reader(shape: Shape, number: int, most: int) -> Reader:
    """A stable lane at the beginning of the results of the lane before it."""
    of = source(number - 1)
    start = marker(positions(of, 0))
    time = begin(lane(of, shape=shape), start, {}, START_MS)
    kind = Passing if isinstance(shape, Stateless) else Sums
    found = kind([], start, time, most, source=of)
    found.last = LastBatch(start.end)
    return found


@dataclass
class ReadersForks(Forks):
    """The forks of a lane that reads tentative results of another one."""

    source: DerivedInput = field(default_factory=lambda: source(0))
    news: WriterSeen = field(default_factory=WriterSeen)
    parts: dict[bytes, int] = field(default_factory=dict)
    """How many results each of theirs is made of."""
    outdated: int = 0
    taken: int = 0

    def __post_init__(self) -> None:
        """Read the tentative topic from its beginning."""
        self.upstream = Upstream(self.source, tentative_of(self.source).topic, 1)

    def awaited(self) -> Awaited:
        """What the lane before holds back."""
        return {self.source.stream: self.upstream.awaited} if self.upstream.awaited else {}

    def offered(self) -> ForkEvent | None:
        """As `Upstreams` and `LaneForks` do it."""
        fork, seen = self.fork, self.stable.time.writers[self.source.stream]
        if seen.covered_ms is not None:
            self.upstream.forget(seen.covered_ms)
        if fork is None:
            return None
        newest = seen.pending[-1].boundary_ms if seen.pending else seen.covered_ms or 0
        taken = fork.time.taken.get(self.source.stream)
        if taken is None:
            found = self.upstream.offer(fork.time.writers[self.source.stream].covered_ms)
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
        assert isinstance(stable, Reader)
        unread = {tentative_of(self.source): Offset(0)}
        first = replace(stable.marker, end={**stable.marker.end, **unread})
        writers = {writer_of(self.source): self.news}
        time = begin(stable.time.profile, first, writers, SteadyMillis(now))
        time = replace(time, steered=steered_by)
        since_ms = (stable.marker.boundary_ms or 0) - STAYS_MS
        return type(stable)(
            [],
            first,
            time,
            stable.most,
            source=self.source,
            counts=stable.counts,
            tentative=stable.tentative,
            read={name: one for name, one in stable.read.items() if one[0] > since_ms},
            parts=self.parts,
        )


@dataclass
class Link:
    """A lane that reads another one, and its forks."""

    stable: Reader
    forks: ReadersForks
    results: list[Released] = field(default_factory=list)
    ends: Ends | None = None
    added: int = 0
    promised: Millis | None = None

    def tick(
        self, now: int, promised_ms: Millis | None, read: int, *, with_forks: bool, settles: bool
    ) -> None:
        """Run; the lane before has promised this, and so many of its results are there."""
        self._boundary(promised_ms, read)
        ends = {self.stable.source.topic: {0: Offset(read)}}
        self.ends = ends_of(self.ends, SteadyMillis(now), Answer(ends, ends))
        self.stable.answer(self.ends)
        self.results += self.stable.step(now)
        for record in self._new():
            self.forks.upstream.add(record, SteadyMillis(now))
        if not with_forks:
            return
        if self.forks.fork is not None:
            self.forks.fork.answer(self.ends)
        self.forks.look(now, self.ends)
        self.forks.step(now)
        if settles:
            self.forks.settle(self.results)

    def _boundary(self, promised_ms: Millis | None, read: int) -> None:
        """The boundary of the lane before, with the end of its results."""
        if promised_ms is None or promised_ms == self.promised:
            return
        self.promised, of = promised_ms, self.stable.source
        found = PendingBoundary(promised_ms, {0: Offset(read)})
        self.forks.news = with_boundary(self.forks.news, Epoch(1), found)
        for one in (self.stable, self.forks.fork):
            if one is not None:
                one.time = boundary_read(one.time, writer_of(of), Epoch(1), found)

    def _new(self) -> Iterator[KafkaRecord]:
        topic, name = self.stable.tentative, tentative_of(self.stable.source).topic
        for offset in range(self.added, len(topic)):
            yield as_record(topic[offset], name, offset)
        self.added = len(topic)


@dataclass
class Chain:
    """Lanes in a chain.

    Args:
        scenario: what happens to the partitions of the first one.
        with_forks: whether there are any.
        restarts: ticks at which the owner of a lane begins anew, with the number of the lane.
        passing: how many lanes without state there are between the first and the last one.
    """

    scenario: Scenario
    with_forks: bool = True
    restarts: tuple[tuple[int, int], ...] = ()
    passing: int = 0

    def __post_init__(self) -> None:
        """Lanes at the beginning of their topics."""
        self.first = Run(self.scenario)
        self.links: list[Link] = []
        counts, topic = self.first.results, self.first.forks.topic
        shapes: tuple[Shape, ...] = (*[Stateless()] * self.passing, SUMS)
        for number, shape in enumerate(shapes, start=1):
            stable = new_reader(shape, number, self.scenario.most)
            stable.counts, stable.tentative = counts, topic
            bound = Availability(X_MS, self.scenario.policy)
            link = Link(stable, ReadersForks(stable, bound, source=stable.source))
            self.links.append(link)
            counts, topic = link.results, link.forks.topic

    @property
    def last(self) -> Link:
        """The sums."""
        return self.links[-1]

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
        """One lane after the other."""
        forks = (self.first.forks, *(one.forks for one in self.links))
        for at_tick, number in self.restarts:
            if at_tick == tick:
                forks[number].restart()
        self.first.tick(tick)
        now, settles = START_MS + TICK_MS * tick, tick % (SETTLE_MS // TICK_MS) == 0
        stable, results = self.first.stable, self.first.results
        for link in self.links:
            there = len(results), stable.marker.boundary_ms
            link.tick(now, there[1], there[0], with_forks=self.with_forks, settles=settles)
            stable, results = link.stable, link.results
