"""Readings that are sent to two partitions without a pause, also while one cannot be reached."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from confluent_kafka import KafkaError, Message, Producer

PARTITIONS = (0, 1)
INTERVAL_S = 0.05
EACH = int(os.environ.get("OUTAGE_RECORDS", "1"))
"""Readings to each partition in an interval."""
WAITING_MAX = 10_000_000
"""Readings that wait for a broker which is away."""
POLL_S = 0.01
DELIVERED_WITHIN_S = 120.0
_PADDING = "." * 4_000
_FOREVER = 0
"""As a delivery timeout: the driver repeats a record until it is acknowledged."""
Done = Callable[[KafkaError | None, Message], None]
"""Called when a record is acknowledged, or has failed."""


def sensor(partition: int) -> str:
    """The sensor whose readings go to a partition."""
    return f"p{partition}"


class Feed:
    """Sends readings to each partition in short intervals, on its own thread; use it in `with`.

    Each partition has its own producer, so that one which waits does not delay the other.

    Args:
        brokers: addresses.
        topic: the input.
        encoded: makes a record's value of a reading.
    """

    def __init__(
        self, brokers: str, topic: str, encoded: Callable[[dict[str, Any]], bytes]
    ) -> None:
        self._topic, self._encoded = topic, encoded
        settings: dict[str, Any] = {
            "bootstrap.servers": brokers,
            "enable.idempotence": True,
            "linger.ms": 0,
            "delivery.timeout.ms": _FOREVER,
            "reconnect.backoff.max.ms": 1_000,
            "queue.buffering.max.messages": WAITING_MAX,
            "queue.buffering.max.kbytes": WAITING_MAX,
            "log_level": 2,
        }
        self._producers = {partition: Producer(settings) for partition in PARTITIONS}
        self._number = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def __enter__(self) -> Self:
        """Start sending."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop sending; records that are not delivered are discarded."""
        self._end()
        for producer in self._producers.values():
            producer.purge()
            producer.flush(1)

    def burst(self, partition: int, count: int) -> None:
        """Send many large readings to a partition; returns when the first half is acknowledged."""
        acknowledged: list[object] = []
        with self._lock:
            for _ in range(count):
                self._send(
                    partition, _now_ms(), _PADDING, lambda *found: acknowledged.append(found)
                )
        ends_at_s = time.monotonic() + DELIVERED_WITHIN_S
        while len(acknowledged) < count // 2:
            assert time.monotonic() < ends_at_s, f"{len(acknowledged)} records were delivered"
            self._producers[partition].poll(POLL_S)

    def finish(self, after_ms: int) -> int:
        """Stop, and send a last reading to each partition, so much later than the others.

        Returns:
            Its event time; all windows that end before it are then closed.
        """
        self._end()
        last_ms = _now_ms() + after_ms
        with self._lock:
            for partition in PARTITIONS:
                self._send(partition, last_ms)
        for partition in PARTITIONS:
            self._deliver(partition)
        return last_ms

    def _end(self) -> None:
        self._stop.set()
        self._thread.join(DELIVERED_WITHIN_S)

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            with self._lock:
                for partition in PARTITIONS:
                    for _ in range(EACH):
                        self._send(partition, _now_ms())

    def _send(
        self, partition: int, at_ms: int, padding: str = "", done: Done | None = None
    ) -> None:
        reading = {"sensor": sensor(partition) + padding, "value": self._number, "at": at_ms}
        self._number += 1
        producer = self._producers[partition]
        producer.produce(self._topic, self._encoded(reading), partition=partition, on_delivery=done)
        producer.poll(0)

    def _deliver(self, partition: int) -> None:
        left = self._producers[partition].flush(DELIVERED_WITHIN_S)
        assert left == 0, f"{left} records of partition {partition} were not delivered"


def _now_ms() -> int:
    return int(time.time() * 1000)
