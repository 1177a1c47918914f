"""Load generator of the soak: many readings a second, and the expected sums of their windows.

All readings of one step have one event time, so that a value is a prefix that is encoded once and
a few bytes that are encoded once per step.
"""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator

from confluent_kafka import KafkaError, Message, Producer

from tests.faults.history import Expected

GROUPS = 50
VALUES = 7
"""Number of distinct values; with the groups they are the pool of prefixes."""
PARTITIONS = 4
WINDOW_MS = 1_000
STEP_S = 0.02
CLOSES_MS = 10_000
"""Event time of the closing readings after the last one."""
DELIVERED_WITHIN_S = 600.0
QUEUE_RECORDS = 4_000_000
QUEUE_KBYTES = 1_000_000
_BITS, _MASK, _MORE = 7, 0x7F, 0x80
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Reading",
        "fields": [
            {"name": "site", "type": "string"},
            {"name": "value", "type": "int"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)
DOCUMENT = f"""
network: {{name}}
streams:
  readings:
    topic: {{name}}-readings
    schema: readings.avsc
    event_time: at
    lateness: 1s
    silence: missing
    partitions: {PARTITIONS}
boxes:
  sums:
    aggregate: readings
    window: 1s
    by: [site]
    compute: {{n: count(*), total: sum(value)}}
outputs: {{sums: {{topic: "{{name}}-sums", partitions: 2}}}}
"""


def zigzag(number: int) -> bytes:
    """Encode a non-negative Avro int or long."""
    left, out = number << 1, bytearray()
    while left >> _BITS:
        out.append(left & _MASK | _MORE)
        left >>= _BITS
    out.append(left)
    return bytes(out)


def site(group: int) -> str:
    """The name of a group."""
    return f"site-{group:02d}"


class Load:
    """Sends at a steady rate on its own thread, and computes the expected results.

    Readings that are delayed by an outage of the broker are sent afterwards.

    Args:
        bootstrap: the brokers.
        topic: of the readings.
        schema_id: of `SCHEMA`.
        rate: readings a second.
    """

    def __init__(self, bootstrap: str, topic: str, schema_id: int, rate: int) -> None:
        self._topic = topic
        self._per_step = max(1, round(rate * STEP_S))
        prefix = b"\0" + schema_id.to_bytes(4, "big")
        self._pool = [
            (group, value, prefix + _text(site(group)) + zigzag(value))
            for value in range(VALUES)
            for group in range(GROUPS)
        ]
        self._next = 0
        self._sums: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        self._failed: str | None = None
        self._stop = threading.Event()
        self._held = threading.Event()
        self.sent = 0
        self._at_ms = time.time_ns() // 1_000_000
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 10,
                "message.timeout.ms": int(DELIVERED_WITHIN_S * 1_000),
                "queue.buffering.max.messages": QUEUE_RECORDS,
                "queue.buffering.max.kbytes": QUEUE_KBYTES,
                "reconnect.backoff.max.ms": 500,
                "delivery.report.only.error": True,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def start(self) -> None:
        """Start sending; event time is the present then, and goes on with the clock."""
        self._at_ms = time.time_ns() // 1_000_000
        self._thread.start()

    def stop(self) -> None:
        """Stop sending, without errors."""
        self._stop.set()
        self._thread.join(30)
        self._producer.purge()

    def hold(self) -> None:
        """Delay all readings until `go_on`; none is skipped."""
        self._held.set()

    def go_on(self) -> None:
        """Send the delayed readings, and continue."""
        self._held.clear()

    def finish(self) -> int:
        """Close all windows, and wait for all deliveries.

        Returns:
            The event time up to which all results are expected (ms).

        Raises:
            RuntimeError: a reading was not delivered.
        """
        self._stop.set()
        self._thread.join(30)
        last = self._at_ms
        for partition in range(PARTITIONS):
            body = self._pool[0][2][:5] + _text("closing") + zigzag(0)
            value = body + zigzag(last + 2 * CLOSES_MS)
            self._producer.produce(self._topic, value, partition=partition)
            self.sent += 1
        left = self._producer.flush(DELIVERED_WITHIN_S)
        if left or self._failed is not None:
            raise RuntimeError(f"{left} readings on their way, {self._failed}")
        return last + CLOSES_MS

    def expected(self) -> Iterator[Expected]:
        """The expected results of all sent readings."""
        for (group, end), (count, total) in self._sums.items():
            name = site(group)
            row = (name, end - WINDOW_MS, end, count, total)
            yield Expected(row, end, (), ((name,), end))

    def _run(self) -> None:
        began, steps = time.monotonic(), 0
        while not self._stop.is_set():
            ahead_s = began + (steps + 1) * STEP_S - time.monotonic()
            if ahead_s > 0:
                self._stop.wait(ahead_s)
            if self._held.is_set():
                self._stop.wait(STEP_S)
                continue
            if len(self._producer) + self._per_step > QUEUE_RECORDS:
                self._producer.poll(STEP_S)
                continue
            self._step()
            steps += 1
            self._producer.poll(0)

    def _step(self) -> None:
        """Send the readings of one step, evenly to all partitions."""
        self._at_ms += round(STEP_S * 1_000)
        suffix = zigzag(self._at_ms)
        end = self._at_ms - self._at_ms % WINDOW_MS + WINDOW_MS
        batch, pool = [], self._pool
        for _ in range(self._per_step):
            group, value, prefix = pool[self._next]
            self._next = (self._next + 1) % len(pool)
            batch.append({"value": prefix + suffix})
            sums = self._sums[group, end]
            sums[0] += 1
            sums[1] += value
        for partition in range(PARTITIONS):
            part = batch[partition::PARTITIONS]
            queued = self._producer.produce_batch(
                self._topic, part, partition, on_delivery=self._report
            )
            if queued != len(part):
                self._failed = f"only {queued} of {len(part)} readings fitted into the queue"
                self._stop.set()
        self.sent += len(batch)

    def _report(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed = str(error)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return zigzag(len(encoded)) + encoded
