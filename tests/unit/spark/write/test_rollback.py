"""Crashes of a lane with rollback recovery at each point, and owners that go on."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.memory_kafka.writers import MemoryProducer, MemoryTransactions
from brokers.records import Headers, KafkaRecord
from pipeline.boundaries.next_batch import Batch as Planned
from pipeline.clock import Deadline
from pipeline.errors import FencedError
from pipeline.ids import Epoch, Millis, Offset, TopicName
from pipeline.lanes.marker_invariants import violations
from pipeline.lanes.result_headers import RESULT_ID
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import boundaries_topic
from pipeline.planner.plan import Fragment
from pipeline.spark.write.results_first import ResultsFirst
from pipeline.spark.write.sink import Sink
from pipeline.spark.write.transactions import InTransactions
from tests.unit.kafka import records
from tests.unit.spark.support import fragment
from tests.unit.spark.write.sink_twins import (
    AT,
    NOW,
    Batch,
    Log,
    Plans,
    facts,
    first,
    sink_context,
    stateless,
)

MINUTE_MS = 60_000
STATELESS, STATEFUL = stateless(), fragment("tolls")


class CrashedError(BaseException):
    """The process has ended."""


@dataclass
class Fuse:
    """Crashes at the n-th call to Kafka that writes: a result, a flush, a commit, or after it."""

    left: int

    def burn(self) -> None:
        """One call less."""
        self.left -= 1
        if self.left == 0:
            raise CrashedError


class Transactions(MemoryTransactions):
    """A writer that crashes."""

    def __init__(self, log: Log, planned: Fragment, fuse: Fuse) -> None:
        super().__init__(log.kafka, planned.names.stable.transactional_id)
        self._fuse = fuse

    def commit(self, deadline: Deadline) -> None:
        """Crash before it is committed, or right after."""
        self._fuse.burn()
        super().commit(deadline)
        self._fuse.burn()


class Results(MemoryProducer):
    """A producer that crashes; what a zombie still has in its queue is sent when it wakes up."""

    def __init__(self, log: Log, fuse: Fuse, asleep: list["Sent"]) -> None:
        super().__init__(log.kafka)
        self._fuse, self._asleep, self._crashed = fuse, asleep, False

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        headers: Headers = (),
        timestamp_ms: Millis | None = None,
        partition: int = -1,
    ) -> None:
        """Write it, or crash before: then the record is delivered later, or never."""
        try:
            self._fuse.burn()
        except CrashedError:
            self._asleep.append(Sent(topic, key, value, headers, timestamp_ms, partition))
            raise
        super().send(
            topic, key, value, headers=headers, timestamp_ms=timestamp_ms, partition=partition
        )

    def flush(self, timeout_s: float) -> None:
        """Crash before all is acknowledged."""
        self._fuse.burn()
        super().flush(timeout_s)


@dataclass(frozen=True)
class Sent:
    """A result in the queue of a producer."""

    topic: TopicName
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: Millis | None
    partition: int


@dataclass
class World:
    """One fragment, its owners one after the other, and its topics."""

    planned: Fragment
    log: Log = field(default_factory=Log)
    asleep: list[Sent] = field(default_factory=list)
    epoch: int = 2

    def __post_init__(self) -> None:
        self.log.create(self.planned)

    @property
    def markers(self) -> list[CommitMarker]:
        """All committed markers."""
        found = records(self.log.kafka, self.planned.names.markers)
        return [codec.decode_marker(one.value or b"", "here") for one in found]

    @property
    def results(self) -> list[KafkaRecord]:
        """All visible results."""
        return list(records(self.log.kafka, self.planned.output.topic))

    def own(self, ends: list[int], fuse: Fuse) -> None:
        """An owner starts and executes batches up to some ends, until it crashes."""
        self.epoch += 1
        last = self.markers[-1] if self.markers else first(self.planned)
        plans = Plans()
        writer = Transactions(self.log, self.planned, fuse)
        epoch = Epoch(self.epoch)
        context = sink_context(self.log, [], self.planned, writer=writer, epoch=epoch, plans=plans)
        producers = ResultsFirst(
            context, InTransactions(context), lambda: Results(self.log, fuse, self.asleep)
        )
        sink = Sink(context, producers)
        sink.start(replace(last, epoch=epoch))
        for end in ends:
            cut, at = sink.marker.cut, sink.marker.end[AT]
            if cut is None and end <= at:
                continue
            to = end if cut is None else cut.end[AT]
            event_ms = Millis(NOW + to * MINUTE_MS) if cut is None else cut.event_ms
            plans.event_ms = event_ms
            sink.plan(Planned({AT: Offset(to)}, event_ms))
            number = sink.marker.batch + 1
            watermark_ms = None if self.planned is STATELESS else event_ms
            late_ms = sink.marker.eviction_ms if number else None
            done = facts(number, to, eviction_ms=watermark_ms, late_ms=late_ms)
            # Two readings have one value, and another node has another order.
            rows = [(b"%d" % (n // 2), event_ms or NOW, None) for n in range(at, to)]
            batch = Batch(done, rows if self.epoch % 2 else rows[::-1])
            sink.write(batch, number, batch, batch)

    def check_boundaries(self) -> None:
        """All results up to each boundary are below its positions, at least once."""
        topic = boundaries_topic(self.planned.output.topic)
        for record in records(self.log.kafka, topic):
            found = codec.decode_boundary(record.value or b"", topic)
            due = [one for one in self.results if one.timestamp_ms <= found.boundary_ms]
            ids = {dict(one.headers)[RESULT_ID] for one in due}
            there = [one for one in due if one.offset < found.positions[one.partition]]
            assert ids == {dict(one.headers)[RESULT_ID] for one in there}

    def wake(self) -> None:
        """A zombie sends what it had in its queue."""
        producer = MemoryProducer(self.log.kafka)
        for one in self.asleep:
            producer.send(
                one.topic,
                one.key,
                one.value,
                headers=one.headers,
                timestamp_ms=one.timestamp_ms,
                partition=one.partition,
            )
        self.asleep.clear()


OWNERS = st.lists(
    st.tuples(
        st.lists(st.integers(1, 12), max_size=4).map(sorted), st.integers(1, 25), st.booleans()
    ),
    max_size=6,
)


@given(OWNERS, st.sampled_from((STATELESS, STATEFUL)))
def test_each_result_is_there_once_by_its_id(
    owners: list[tuple[list[int], int, bool]], planned: Fragment
) -> None:
    """None is lost, whatever crashes when; repeats are equal, and those of zombies too."""
    world = World(planned)
    for ends, left, wakes in owners:
        with suppress(CrashedError):
            world.own(ends, Fuse(left))
        if wakes:
            world.wake()
    world.own([20, 21], Fuse(1_000))
    world.wake()
    by_id: dict[bytes | None, KafkaRecord] = {}
    for one in world.results:
        known = by_id.setdefault(dict(one.headers)[RESULT_ID], one)
        assert replace(known, offset=one.offset) == one
    assert None not in by_id
    last = world.markers[-1]
    expected = Counter(b"%d" % (n // 2) for n in range(last.end[AT]))
    assert Counter(one.value for one in by_id.values()) == expected
    assert (last.cut, last.totals.records_out) == (None, expected.total())
    assert violations(world.markers) == ()
    world.check_boundaries()


def test_a_zombie_cannot_cut_another_batch() -> None:
    """Its successor has fenced it, and has not read of that batch."""
    world = World(STATELESS)
    world.own([3], Fuse(1_000))
    fuse = Fuse(1_000)
    writer = Transactions(world.log, STATELESS, fuse)
    context = sink_context(world.log, [], STATELESS, writer=writer, epoch=Epoch(4))
    zombie = Sink(
        context,
        ResultsFirst(context, InTransactions(context), lambda: Results(world.log, fuse, [])),
    )
    zombie.start(replace(world.markers[-1], epoch=Epoch(4)))
    world.epoch = 4
    world.own([5], Fuse(1_000))
    before = len(world.results)
    zombie.plan(Planned({AT: Offset(6)}, None))
    batch = Batch(facts(1, 6), [(b"x", NOW, None)])
    with pytest.raises(FencedError):
        zombie.write(batch, 1, batch, batch)
    assert len(world.results) == before
