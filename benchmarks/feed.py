"""Producer of readings, in a separate process so that it disturbs the reader little.

`steady`: so many a second, each with the time at which it is made; `bulk`: a pool of encoded
bodies, as fast as the broker takes them; `rising`: as fast, but each later than the last, so many a
second of event time. Prints one JSON object when it is done; SIGTERM ends `steady` before its time.

While the file of `--held` exists, `steady` keeps back the readings of one partition; then it sends
them, in their order.
"""

import argparse
import json
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from benchmarks.readings import Readings
from brokers.kafka.held_feed import Keeping

POOL = 20_000
CHUNK = 10_000
QUEUE_MAX = 500_000
FLUSH_SECONDS = 120
HELD_PARTITION = 0


def producer(bootstrap_servers: str, linger_ms: int) -> Producer:
    """A producer for the feed."""
    return Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "linger.ms": linger_ms,
            "enable.idempotence": True,
            "batch.num.messages": CHUNK,
            "queue.buffering.max.messages": QUEUE_MAX,
            "queue.buffering.max.kbytes": 262_144,
        }
    )


def steady(values: argparse.Namespace) -> dict[str, int]:
    """Send at a steady rate; records before `measured_from_ms` are warm-up."""
    kafka = producer(values.bootstrap_servers, 0)
    readings = Readings(values.schema_id, values.seed)
    started = time.monotonic()
    measured_from_ms = time.time_ns() // 1_000_000 + int(values.warm_up * 1_000)
    failures: list[str] = []
    topics = values.topics

    def report(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(str(error))

    held: Path | None = values.held
    keeping = Keeping(lambda: held is not None and held.exists(), HELD_PARTITION)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    ends_s = started + values.warm_up + values.seconds
    sent = measured = 0
    while not ended.is_set() and (now_s := time.monotonic()) < ends_s:
        for _ in range(int((now_s - started) * values.rate) - sent):
            at_ms = time.time_ns() // 1_000_000
            key, body = readings.make(at_ms)
            topic, partition = topics[sent % len(topics)], sent // len(topics) % values.partitions
            send = partial(
                kafka.produce, topic, body, key, partition, on_delivery=report, timestamp=at_ms
            )
            for one in keeping.offered(send, partition):
                one()
            sent += 1
            measured += at_ms >= measured_from_ms
        for one in keeping.due():
            one()
        kafka.poll(0)
        time.sleep(0.001)
    for one in keeping.taken():
        one()
    left = kafka.flush(FLUSH_SECONDS)
    if left or failures:
        raise SystemExit(f"{left} readings without answer, {len(failures)} failed: {failures[:1]}")
    return {"sent": sent, "measured": measured, "measured_from_ms": measured_from_ms}


def bulk(values: argparse.Namespace) -> dict[str, int]:
    """Send `records` readings from a pool, evenly to all partitions."""
    kafka = producer(values.bootstrap_servers, 20)
    readings = Readings(values.schema_id, values.seed)
    now_ms = time.time_ns() // 1_000_000
    made = [readings.make(now_ms) for _ in range(POOL)]
    chunks = [
        [{"key": key, "value": body} for key, body in made[first : first + CHUNK]]
        for first in range(0, POOL, CHUNK)
    ]
    sent = turn = 0
    while sent < values.records:
        chunk = chunks[turn // values.partitions % len(chunks)][: values.records - sent]
        if len(kafka) > QUEUE_MAX // 2:
            kafka.poll(0.05)
            continue
        queued = kafka.produce_batch(values.topics[0], chunk, turn % values.partitions)
        if queued != len(chunk):
            raise SystemExit(f"only {queued} of {len(chunk)} readings fitted into the queue")
        sent += queued
        turn += 1
        kafka.poll(0)
    if left := kafka.flush(FLUSH_SECONDS):
        raise SystemExit(f"{left} readings got no answer in {FLUSH_SECONDS} s")
    return {"sent": sent}


def rising(values: argparse.Namespace) -> dict[str, int]:
    """Send `records` readings, `rate` in each second of event time, to all partitions in turn."""
    kafka = producer(values.bootstrap_servers, 20)
    readings = Readings(values.schema_id, values.seed)
    pool = [readings.parts() for _ in range(POOL)]
    topics = values.topics
    first_ms = time.time_ns() // 1_000_000 - int(values.records / values.rate * 1_000)
    for n in range(values.records):
        at_ms = first_ms + int(n / values.rate * 1_000)
        sensor, rest = pool[n % POOL]
        if values.sensors:
            sensor = f"sensor-{n // len(topics) % values.sensors:07d}".encode()
        turn = n // len(topics) % values.partitions
        body = readings.body(sensor, rest, at_ms)
        while len(kafka) > QUEUE_MAX // 2:
            kafka.poll(0.05)
        kafka.produce(topics[n % len(topics)], body, sensor, turn, timestamp=at_ms)
        if not n % 1_000:
            kafka.poll(0)
    if left := kafka.flush(FLUSH_SECONDS):
        raise SystemExit(f"{left} readings got no answer in {FLUSH_SECONDS} s")
    return {"sent": values.records}


FEEDS = {"steady": steady, "bulk": bulk, "rising": rising}


def main(arguments: list[str]) -> int:
    """Run one feed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=tuple(FEEDS))
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topics", nargs="+", required=True, help="in turn; bulk: the first")
    parser.add_argument("--schema-id", type=int, required=True)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=1_000.0, help="a second; not for bulk")
    parser.add_argument("--warm-up", type=float, default=10.0, help="steady: seconds before")
    parser.add_argument("--seconds", type=float, default=30.0, help="steady: seconds measured")
    parser.add_argument("--held", type=Path, help="steady: while this file exists")
    parser.add_argument("--records", type=int, default=1_000_000, help="how many, but for steady")
    parser.add_argument(
        "--sensors", type=int, default=0, help="rising: one after the other; 0: any"
    )
    values = parser.parse_args(arguments)
    done = FEEDS[values.kind](values)
    sys.stdout.write(json.dumps(done) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
