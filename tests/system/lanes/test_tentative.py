"""Tentative results: a partition stays away, and comes back."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from brokers.kafka.producer import PlainProducer
from pipeline.catalog.fragment_status import LaneState
from pipeline.ids import TopicId, TopicName
from pipeline.lanes.result_headers import RESULT_ID
from pipeline.tentative.records import DoneMark, TentativeResult, Undo, decode
from tests.system.support import READING, Installation

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node"), pytest.mark.timeout(400)]

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
WITHIN_S = 120.0
AWAY_S = 12.0
SENSORS = ("left", "right")


@dataclass
class Feed:
    """Sends ten readings a second for each partition; those of a partition that is away wait."""

    medusa: Installation
    producer: PlainProducer
    topic: TopicName
    begun_ms: int = 0
    sent: Counter[tuple[str, int]] = field(default_factory=Counter)
    kept: list[tuple[int, int]] = field(default_factory=list)
    tick: int = 0

    def send(self, partition: int, at_ms: int) -> None:
        """Send one reading."""
        sensor = SENSORS[partition]
        value = {"sensor": sensor, "value": 1, "at": at_ms}
        encoded = self.medusa.encoded(f"{self.topic}-value", READING, value)
        self.producer.send(self.topic, None, encoded, partition=partition)
        self.sent[sensor, at_ms // 1000 * 1000 + 1000] += 1

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
                    self.send(one, at_ms)
                self.kept = [at for at in self.kept if at[0] != partition]
                self.send(partition, now_ms)
            self.producer.flush(10)
            time.sleep(0.1)


@pytest.fixture
def producer(medusa: Installation) -> Iterator[PlainProducer]:
    """Sends readings."""
    producer = PlainProducer(medusa.stack.kafka_bootstrap_servers, 10)
    yield producer
    producer.close()


def test_results_come_without_a_partition_and_are_corrected(
    medusa: Installation, producer: PlainProducer
) -> None:
    """Stable results are exact; each tentative one is settled; the done mark comes last."""
    network = "early"
    medusa.deploy(DOCUMENT.replace("early", network), {"reading.avsc": READING})
    medusa.await_state(network, "counts", LaneState.RUNNING)
    feed = Feed(medusa, producer, TopicName(f"{network}-in"))
    topic = TopicName(f"{network}-out")
    stable_id = TopicId(medusa.admin.describe((topic,))[topic].topic_id)
    tentative = TopicName(f"{topic}.tentative")

    def found() -> list[TentativeResult | Undo | DoneMark]:
        records = medusa.records(tentative)
        read = [decode(record, stable_id) for record in records]
        return [one for one in read if isinstance(one, TentativeResult | Undo | DoneMark)]

    feed.run(lambda: bool(medusa.records(topic)), "there are stable results")
    begun_s, cut_ms = time.monotonic(), int(time.time() * 1000)
    feed.run(
        lambda: time.monotonic() > begun_s + AWAY_S and len(found()) > 3,
        "there are tentative results",
        away=1,
    )
    early = [one for one in found() if isinstance(one, TentativeResult)]
    early = [one for one in early if one.timestamp_ms > cut_ms + 1_000]
    feed.run(
        lambda: sum(isinstance(one, DoneMark) for one in found()) >= 2,
        "all tentative results are settled",
    )
    assert feed.kept == []
    last = found()
    ends = {one.partition: type(one) for one in last}
    partitions = medusa.admin.describe((topic,))[topic].partitions
    assert ends == dict.fromkeys(range(partitions), DoneMark), "nothing comes after them"
    stable = medusa.records(topic)
    ids = Counter(dict(record.headers)[RESULT_ID] for record in stable)
    assert set(ids.values()) == {1}
    undone = {one.id for one in last if isinstance(one, Undo)}
    published = {one.id for one in last if isinstance(one, TentativeResult)}
    assert published == (published & ids.keys()) | undone, "each one is settled"
    assert not undone & ids.keys(), "none twice"
    assert {row["sensor"] for row in medusa.decode([one.value for one in early])} == {SENSORS[0]}
    counted = {
        (row["sensor"], record.timestamp_ms): row["n"]
        for record, row in zip(stable, medusa.decoded(topic), strict=True)
    }
    assert counted == {at: feed.sent[at] for at in counted}, "stable results are exact"
    assert {at for at in feed.sent if at[1] <= max(ms for _, ms in counted)} == counted.keys()
