"""Tentative results: a partition stays away, and comes back."""

import time
from collections.abc import Iterator

import pytest

from brokers.kafka.producer import PlainProducer
from tests.system.support import Installation
from tests.system.tentative import SENSORS, Early

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node"), pytest.mark.timeout(400)]

AWAY_S = 12.0


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
    early = Early(medusa, producer, "early")
    early.run(lambda: bool(medusa.records(early.topic)), "there are stable results")
    begun_s, cut_ms = time.monotonic(), int(time.time() * 1000)
    early.run(
        lambda: time.monotonic() > begun_s + AWAY_S and len(early.results(cut_ms + 1_000)) > 3,
        "there are tentative results",
        away=1,
    )
    found = medusa.decode([one.value for one in early.results(cut_ms + 1_000)])
    assert {row["sensor"] for row in found} == {SENSORS[0]}
    early.run(lambda: early.is_done, "all tentative results are settled")
    assert early.kept == []
    early.check()
