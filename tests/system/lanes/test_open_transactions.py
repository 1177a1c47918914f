"""Inputs with an open transaction."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from pipeline.catalog.fragment_status import LaneState
from tests.system.support import READING, Installation

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node"), pytest.mark.timeout(300)]

DOCUMENT = """
network: opened
streams:
  readings:
    topic: opened-in
    schema: reading.avsc
    event_time: at
    lateness: 0s
    idle_after: 2s
    partitions: 2
boxes:
  counts: {aggregate: readings, window: 10s, by: [sensor], compute: {n: count(*)}}
"""
WITHIN_S = 90.0
WINDOW_MS = 10_000


@contextmanager
def transaction(medusa: Installation, name: str, reading: dict[str, object]) -> Iterator[Producer]:
    """An open transaction with one reading in partition 1."""
    servers = medusa.stack.kafka_bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("opened-in", medusa.encoded("opened-in-value", READING, reading), partition=1)
    producer.flush(20)
    yield producer


def test_an_open_transaction_delays_event_time_until_it_ends(medusa: Installation) -> None:
    """Its committed records are in time, however late the commit; `status` shows it meanwhile."""
    start = int(time.time()) // 10 * WINDOW_MS - 600_000
    medusa.deploy(DOCUMENT, {"reading.avsc": READING})
    medusa.await_state("opened", "counts", LaneState.RUNNING)

    def reading(at: int) -> dict[str, object]:
        return {"sensor": "a", "value": 1, "at": start + at}

    def send(at: int) -> None:
        value = medusa.encoded("opened-in-value", READING, reading(at))
        medusa.send("opened-in", value, partition=0)
        medusa.producer.flush(10)

    def counts() -> list[int]:
        return [row["n"] for row in medusa.decoded("local.opened.counts")]

    with transaction(medusa, "committed", reading(1)) as producer:
        send(2)
        send(60_000)
        status = medusa.await_state("opened", "counts", LaneState.WAITING)
        assert "open transaction: topic opened-in, partition 1, offset 0" in status.last_error
        assert counts() == []
        producer.commit_transaction(20)
    medusa.await_state("opened", "counts", LaneState.RUNNING)
    medusa.wait_for(lambda: counts()[:1] == [2], "the first window", within_s=WITHIN_S)
    with transaction(medusa, "aborted", reading(70_000)) as producer:
        send(100_000)
        medusa.await_state("opened", "counts", LaneState.WAITING)
        assert counts()[0] == 2
        producer.abort_transaction(20)
    send(130_000)
    medusa.wait_for(lambda: counts()[:3] == [2, 1, 1], "all windows", within_s=WITHIN_S)
    status = medusa.await_state("opened", "counts", LaneState.RUNNING)
    assert (status.late_dropped, status.dead_letters) == (0, 0)
