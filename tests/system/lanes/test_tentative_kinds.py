"""Tentative results that boxes without state, and an inner join, make of tentative records."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from brokers.kafka.producer import PlainProducer
from pipeline.ids import TopicId, TopicName
from pipeline.lanes.result_headers import RESULT_ID
from pipeline.tentative.records import DoneMark, TentativeRecord, TentativeResult, Undo, decode
from tests.system.support import Installation
from tests.system.tentative import HEAD, Early

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node"), pytest.mark.timeout(500)]

AWAY_S = 20.0
DOCUMENT = (
    HEAD
    + """\
boxes:
  counts: {aggregate: readings, window: 1s, by: [sensor], compute: {n: count(*)}}
  more: {aggregate: readings, window: 1s, by: [sensor], compute: {n: count(value)}}
  parts:
    flat_map: counts
    each: {part: "split('a,b', ',')"}
    select: {sensor: sensor, part: part}
  every: {union: [counts, more]}
  pairs:
    join: {left: counts, right: more, on: [sensor], within: 0s}
    select: {sensor: left.sensor, n: left.n}
  totals: {aggregate: parts, window: 2s, by: [sensor], compute: {n: count(*)}}
outputs:
  every: {topic: early-every}
  pairs: {topic: early-pairs}
  parts: {topic: early-parts}
  totals: {topic: early-out}
"""
)


@pytest.fixture
def producer(medusa: Installation) -> Iterator[PlainProducer]:
    """Sends readings."""
    producer = PlainProducer(medusa.stack.kafka_bootstrap_servers, 10)
    yield producer
    producer.close()


@dataclass
class Kinds(Early):
    """Counts in windows, and boxes that never wait for event time, which read them."""

    document: ClassVar[str] = DOCUMENT
    last: ClassVar[str] = "totals"

    def read(self, topic: TopicName) -> list[TentativeRecord]:
        """The records of the tentative topic of an output."""
        described = self.medusa.admin.describe((topic,))[topic]
        records = self.medusa.records(f"{topic}.tentative")
        found = [decode(record, TopicId(described.topic_id)) for record in records]
        return [one for one in found if isinstance(one, TentativeResult | Undo | DoneMark)]

    def has_results(self, topic: TopicName, after_ms: int) -> bool:
        """Whether there are tentative results after an event time."""
        found = (one for one in self.read(topic) if isinstance(one, TentativeResult))
        return any(one.timestamp_ms > after_ms for one in found)

    def is_settled(self, topic: TopicName) -> bool:
        """Whether the last record in each partition is a done mark."""
        ends = {one.partition: type(one) for one in self.read(topic)}
        return set(ends.values()) == {DoneMark}

    def check_topic(self, topic: TopicName) -> None:
        """Each result is stable once, and each tentative one is stable or undone."""
        stable = Counter(dict(one.headers)[RESULT_ID] for one in self.medusa.records(topic))
        assert set(stable.values()) == {1}
        records = self.read(topic)
        published = {one.id for one in records if isinstance(one, TentativeResult)}
        undone = {one.id for one in records if isinstance(one, Undo)}
        assert published == (published & stable.keys()) | undone
        assert not undone & stable.keys()


def test_what_is_made_of_tentative_records_is_tentative_and_settled(
    medusa: Installation, producer: PlainProducer
) -> None:
    """A flat_map, with windows behind it; a union of two inputs; pairs of an inner join."""
    kinds = Kinds(medusa, producer, "kinds")
    topics = [TopicName(f"kinds-{name}") for name in ("every", "pairs", "parts", "out")]
    kinds.run(lambda: all(medusa.records(one) for one in topics), "there are stable results")
    begun_s, cut_ms = time.monotonic(), int(time.time() * 1000)
    kinds.run(
        lambda: (
            time.monotonic() > begun_s + AWAY_S
            and all(kinds.has_results(one, cut_ms + 2_000) for one in topics)
        ),
        "there are tentative results of each box",
        away=1,
    )
    kinds.run(lambda: all(map(kinds.is_settled, topics)), "all of them are settled")
    for one in topics:
        kinds.check_topic(one)
