"""A network with an availability bound, its feed of two partitions, and a check of its results."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from brokers.kafka.producer import PlainProducer
from pipeline.catalog.fragment_status import LaneState
from pipeline.ids import Millis, TopicId, TopicName
from pipeline.lanes.result_headers import RESULT_ID
from pipeline.tentative.records import DoneMark, TentativeRecord, TentativeResult, Undo, decode
from tests.system.support import READING, Installation

DOCUMENT = """
network: early
streams:
  readings:
    topic: early-in
    schema: reading.avsc
    event_time: at
    lateness: 0s
    partitions: 2
boxes:
  counts:
    aggregate: readings
    window: 1s
    by: [sensor]
    compute: {n: count(*)}
outputs: {counts: {topic: early-out, availability: 4s}}
"""
HEAD = """
network: early
availability: 4s
streams:
  readings:
    topic: early-in
    schema: reading.avsc
    event_time: at
    lateness: 0s
    partitions: 2
"""
CHAIN = (
    HEAD
    + """\
boxes:
  counts:
    aggregate: readings
    window: 1s
    by: [sensor]
    compute: {n: count(*)}
  totals:
    aggregate: counts
    window: 2s
    by: [sensor]
    compute: {n: sum(n)}
outputs:
  counts: {topic: early-counts}
  totals: {topic: early-out}
"""
)
ROWS = (
    HEAD
    + """\
boxes:
  counts:
    aggregate: readings
    window: 1s
    by: [sensor]
    compute: {n: count(*)}
  firsts:
    deduplicate: counts
    by: [sensor, window_start]
    within: 1s
outputs:
  counts: {topic: early-counts}
  firsts: {topic: early-out}
"""
)
LONG = (
    HEAD
    + """\
boxes:
  counts:
    aggregate: readings
    window: 1s
    by: [sensor]
    compute: {n: count(*)}
  firsts:
    deduplicate: counts
    by: [sensor, window_start]
    within: 1s
  some: {filter: firsts, where: n > 0}
  totals:
    aggregate: some
    window: 2s
    by: [sensor]
    compute: {n: sum(n)}
outputs:
  some: {topic: early-counts}
  totals: {topic: early-out}
"""
)
WITHIN_S = 120.0
SENSORS = ("left", "right")


@dataclass
class Early:
    """The network, and a feed: ten readings a second for each partition, of a sensor of its own.

    Those of a partition that is away are sent when it is back.
    """

    document: ClassVar[str] = DOCUMENT
    last: ClassVar[str] = "counts"
    """The fragment that writes the output."""

    medusa: Installation
    producer: PlainProducer
    network: str
    sent: Counter[tuple[str, int]] = field(default_factory=Counter)
    kept: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Deploy it."""
        self.medusa.deploy(self.document.replace("early", self.network), {"reading.avsc": READING})
        self.medusa.await_state(self.network, self.last, LaneState.RUNNING)
        self.topic = TopicName(f"{self.network}-out")
        described = self.medusa.admin.describe((self.topic,))[self.topic]
        self.partitions, self._id = described.partitions, TopicId(described.topic_id)

    def tentative(self) -> list[TentativeRecord]:
        """The records of the tentative topic."""
        records = self.medusa.records(f"{self.topic}.tentative")
        read = [decode(record, self._id) for record in records]
        return [one for one in read if isinstance(one, TentativeResult | Undo | DoneMark)]

    def results(self, after_ms: int = 0) -> list[TentativeResult]:
        """The tentative results after an event time."""
        found = (one for one in self.tentative() if isinstance(one, TentativeResult))
        return [one for one in found if one.timestamp_ms > after_ms]

    @property
    def is_done(self) -> bool:
        """Whether there is a done mark in each partition, and it is the last record there."""
        ends = {one.partition: type(one) for one in self.tentative()}
        return ends == dict.fromkeys(range(self.partitions), DoneMark)

    def run(self, until: Callable[[], bool], what: str, away: int | None = None) -> None:
        """Send until a condition holds."""
        deadline_s = time.monotonic() + WITHIN_S
        while not until():
            assert time.monotonic() < deadline_s, what
            now_ms = int(time.time() * 1000)
            for partition in range(2):
                if partition == away:
                    self.kept.append((partition, now_ms))
                    continue
                for one, at_ms in [at for at in self.kept if at[0] == partition]:
                    self._send(one, at_ms)
                self.kept = [at for at in self.kept if at[0] != partition]
                self._send(partition, now_ms)
            self.producer.flush(10)
            time.sleep(0.1)

    def check(self) -> None:
        """Check that stable results are exact, and that each tentative one is settled, once."""
        stable = self.medusa.records(self.topic)
        ids = Counter(dict(record.headers)[RESULT_ID] for record in stable)
        assert set(ids.values()) == {1}
        undone = {one.id for one in self.tentative() if isinstance(one, Undo)}
        published = {one.id for one in self.results()}
        assert published == (published & ids.keys()) | undone, "each one is settled"
        assert not undone & ids.keys(), "none twice"
        rows = self.medusa.decode([record.value for record in stable])
        counted = {
            (row["sensor"], int(record.timestamp_ms)): row["n"]
            for record, row in zip(stable, rows, strict=True)
        }
        assert counted == {at: self.sent[at] for at in counted}, "stable results are exact"
        last_ms = max(ms for _, ms in counted)
        assert {at for at in self.sent if at[1] <= last_ms} == counted.keys(), "none is missing"

    def _send(self, partition: int, at_ms: int) -> None:
        sensor, topic = SENSORS[partition], TopicName(f"{self.network}-in")
        value = {"sensor": sensor, "value": 1, "at": at_ms}
        encoded = self.medusa.encoded(f"{topic}-value", READING, value)
        self.producer.send(topic, None, encoded, timestamp_ms=Millis(at_ms), partition=partition)
        self.sent[sensor, self.result_ms(at_ms)] += 1

    def result_ms(self, at_ms: int) -> int:
        """The event time of the result that a reading is counted in."""
        return at_ms // 1000 * 1000 + 1000


@dataclass
class Chain(Early):
    """Two fragments: counts in windows, and totals of these in longer ones."""

    document: ClassVar[str] = CHAIN
    last: ClassVar[str] = "totals"

    def result_ms(self, at_ms: int) -> int:
        """The time of a count is the end of its window, where another one of the totals begins."""
        return super().result_ms(at_ms) // 2000 * 2000 + 2000

    @property
    def inner(self) -> TopicName:
        """The topic between the fragments."""
        return TopicName(f"{self.network}-counts")

    def inner_ids(self, *, tentative: bool) -> Counter[bytes]:
        """The ids of results between the fragments."""
        topic = f"{self.inner}.tentative" if tentative else self.inner
        found = (dict(one.headers) for one in self.medusa.records(topic) if one.value is not None)
        return Counter(one[RESULT_ID] or b"" for one in found)


@dataclass
class ChainOfRows(Chain):
    """Two fragments: counts in windows, and a box that keeps them as rows until their time."""

    document: ClassVar[str] = ROWS
    last: ClassVar[str] = "firsts"

    def result_ms(self, at_ms: int) -> int:
        """That of the count."""
        return Early.result_ms(self, at_ms)

    @property
    def settled_by_id(self) -> set[bytes]:
        """The ids of tentative results that a stable one has."""
        stable = {dict(one.headers)[RESULT_ID] for one in self.medusa.records(self.topic)}
        return {one.id for one in self.results()} & stable


@dataclass
class LongChain(Chain):
    """Four fragments: counts, a box that keeps them as rows, one without state, and totals."""

    document: ClassVar[str] = LONG

    @property
    def passed(self) -> list[TentativeRecord]:
        """The records of the tentative topic of the fragment without state."""
        described = self.medusa.admin.describe((self.inner,))[self.inner]
        records = self.medusa.records(f"{self.inner}.tentative")
        found = [decode(record, TopicId(described.topic_id)) for record in records]
        return [one for one in found if isinstance(one, TentativeResult | Undo | DoneMark)]
