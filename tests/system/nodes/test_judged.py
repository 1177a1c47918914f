"""Decisions about records are final: in a repeated batch, and on another node."""

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

import pytest

from brokers.embedded.processes import Child
from pipeline.catalog.fragment_status import LaneState
from pipeline.cli.main import run
from pipeline.ids import SchemaId
from pipeline.markers.codec import decode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.state import NO_CHOICES, Choices, OnChange
from schemas import avro, codec, wire
from tests.system.support import READING, Installation, kill

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

DOCUMENT = """
network: {name}
streams:
  readings:
    topic: {name}-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    ahead: {ahead}
    idle_after: 1h
    partitions: 1
boxes:
  counts:
    aggregate: readings
    window: 10s
    by: [sensor]
    compute: {{n: count(*)}}
outputs: {{counts: {{topic: {name}-out}}}}
"""
WITHIN_S = 120.0
QUIET_S = 4.0
"""Event time no longer advances after this period."""
BASE = int(time.time()) // 10 * 10_000 - 10_000_000
"""Event time of the first reading: the start of a window."""
LAST_MS = BASE + 5_000_000
OTHER = {**READING, "doc": "Of another producer."}
ELSEWHERE = {**READING, "doc": "Of a producer with a subject of its own."}
"""A schema in that subject alone, so that it is deleted with the subject."""
Window = tuple[str, int]


@dataclass
class Lane:
    """Windowed counts over one partition, run by successive nodes."""

    medusa: Installation
    name: str
    read: int = 0
    counts: Counter[Window] = field(default_factory=Counter)
    nodes: int = 0
    node: Child | None = None
    checkpoints: Path = Path()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def deploy(self, max_ahead: str = "1h", choices: Choices = NO_CHOICES) -> None:
        """Deploy the network."""
        document = DOCUMENT.format(name=self.name, ahead=max_ahead)
        self.medusa.deploy(document, {"reading.avsc": READING}, choices)

    def start(self, *, elsewhere: bool) -> None:
        """Start a node; `elsewhere`: on another machine, without its predecessor's checkpoint."""
        self.nodes += 1
        node = f"{self.name}_{self.nodes}"
        if elsewhere:
            self.checkpoints = self.medusa.folder / f"checkpoints_{node}"
        self.node = self.medusa.start_node(node, {"checkpoints": str(self.checkpoints)})
        self.medusa.await_node(node, self.node)

    def end(self) -> None:
        """Kill the node."""
        if self.node is not None:
            kill(self.node)

    def put(self, value: bytes, stamp_ms: int) -> None:
        """Send one record."""
        self.medusa.send(f"{self.name}-in", value, partition=0, timestamp_ms=stamp_ms)
        self.medusa.producer.flush(10)

    def send(self, values: range, *, subject: str = "", behind_ms: int = 0) -> None:
        """Send readings a quarter of a second apart, and wait until they are read.

        `subject`: of the schema of another producer; `behind_ms`: how far the producer's clock is
        behind event time.
        """
        schema = ELSEWHERE if subject else READING
        for value in values:
            at = BASE + value * 250
            reading = {"sensor": "ab"[value % 2], "value": value, "at": at}
            data = self.medusa.encoded(subject or f"{self.name}-in-value", schema, reading)
            self.medusa.send(f"{self.name}-in", data, partition=0, timestamp_ms=at - behind_ms)
            self.counts["ab"[value % 2], at // 10_000 * 10_000 + 10_000] += 1
        self.medusa.producer.flush(10)
        self.await_read(len(values))

    def await_read(self, more: int) -> None:
        """Wait until the lane has processed so many more records."""
        self.read += more

        def read() -> bool:
            status = self.medusa.status(self.name, "counts")
            return status is not None and status.records_in >= self.read

        self.medusa.wait_for(read, f"{self.read} read", within_s=WITHIN_S)

    def await_dead_letters(self, count: int) -> None:
        """Wait until there are so many dead letters."""
        dead_letters = f"local.{self.name}.counts.dlq"
        more = partial(self.medusa.has_more_than, dead_letters, count - 1)
        self.medusa.wait_for(more, f"{count} dead letters", within_s=WITHIN_S)
        assert len(self.medusa.records(dead_letters)) == count

    def marker(self) -> CommitMarker:
        """The last commit marker."""
        record = self.medusa.records(f"local.{self.name}.counts.markers")[-1]
        return decode_marker(record.value or b"", "here")

    def rest(self) -> None:
        """Wait until no batch runs."""
        seen = [(time.monotonic(), self.marker().batch)]

        def quiet() -> bool:
            at, batch = time.monotonic(), self.marker().batch
            if batch != seen[-1][1]:
                seen.append((at, batch))
            return at - seen[-1][0] >= QUIET_S

        self.medusa.wait_for(quiet, "no batch runs", within_s=WITHIN_S)

    def finish(self) -> None:
        """Close all windows, and compare each count."""
        for sensor in "ab":
            value = {"sensor": sensor, "value": 0, "at": LAST_MS}
            self.put(self.medusa.encoded(f"{self.name}-in-value", READING, value), LAST_MS)
        self.await_read(2)
        more = partial(self.medusa.has_more_than, f"{self.name}-out", len(self.counts) - 1)
        self.medusa.wait_for(more, "all windows", within_s=WITHIN_S)
        found = [
            ((row["sensor"], int(row["window_end"].timestamp() * 1000)), row["n"])
            for row in self.medusa.decoded(f"{self.name}-out")
        ]
        assert sorted(found) == sorted(self.counts.items())

    def redrive(self) -> None:
        """Redrive all dead letters."""
        stack = self.medusa.stack
        settings = {
            "kafka.bootstrap_servers": stack.kafka_bootstrap_servers,
            "zookeeper.connect": stack.zookeeper_connect,
            "registry.url": stack.registry_url,
        }
        options = [f"--set={name}={value}" for name, value in settings.items()]
        assert run(["dlq", "redrive", f"{self.name}.counts", "--yes", *options]) == 0


def test_a_schema_registered_before_a_repeated_batch_does_not_change_its_decisions(
    medusa: Installation,
) -> None:
    """The batch was written, not yet committed in the checkpoint: its record is a dead letter."""
    name = "judged_repeat"
    subject = f"{name}-in-value"
    with Lane(medusa, name) as lane:
        lane.deploy()
        lane.start(elsewhere=True)
        lane.send(range(30))
        lane.rest()
        probe = {**READING, "name": "Probe"}
        coming = SchemaId(medusa.registry.register(f"{name}-probe", json.dumps(probe)) + 1)
        at = BASE + 9_000
        body = codec.encode(avro.parse(json.dumps(OTHER)), {"sensor": "a", "value": 1, "at": at})
        lane.put(wire.join(coming, body), at)
        lane.await_dead_letters(1)
        lane.await_read(1)
        lane.rest()
        lane.end()
        marker = lane.marker()
        assert marker.judged is not None
        assert (marker.judged.records, marker.judged.bad) == (1, 1)
        checkpoint = max(path.parent for path in lane.checkpoints.rglob("medusa.json"))
        (checkpoint / "commits" / str(marker.batch)).unlink()
        assert medusa.registry.register(subject, json.dumps(OTHER)) == coming
        lane.start(elsewhere=False)
        lane.send(range(31, 33))
        lane.redrive()
        lane.counts["a", BASE + 10_000] += 1
        lane.await_read(1)
        lane.finish()
        log = (medusa.folder / "logs" / f"node-{name}_2.log").read_text()
        assert "judged otherwise when it is executed again for its state" in log
        assert "the state is rebuilt; 0 records are refused" in log


def test_a_rebuild_on_another_node_keeps_decisions_of_older_settings(
    medusa: Installation,
) -> None:
    """Dead letters identify the refused records under any setting; all others were accepted."""
    with Lane(medusa, "judged_ahead") as lane:
        lane.deploy("1h")
        lane.start(elsewhere=True)
        lane.send(range(20), behind_ms=1_200_000)
        lane.put(medusa.encoded("judged_ahead-in-value", READING, FAR), BASE - 4_000_000)
        lane.await_dead_letters(1)
        lane.await_read(1)
        lane.deploy("1m")
        medusa.await_state(lane.name, "counts", LaneState.RUNNING, epoch=2)
        lane.send(range(20, 25))
        lane.end()
        lane.start(elsewhere=True)
        lane.send(range(25, 30))
        lane.finish()
        lane.await_dead_letters(1)


FAR = {"sensor": "a", "value": 1, "at": BASE}
"""Event time after the record's timestamp by more than any setting of these tests allows."""


def test_a_record_whose_schema_was_deleted_is_reported(
    medusa: Installation,
) -> None:
    """The lane does not start without the schema or a choice; then the record is a dead letter."""
    subject = "judged_gone-elsewhere"
    with Lane(medusa, "judged_gone") as lane:
        lane.deploy()
        lane.start(elsewhere=True)
        lane.send(range(10))
        before = lane.counts.copy()
        lane.send(range(10, 13), subject=subject)
        lane.end()
        schema_id = medusa.registry.register(subject, json.dumps(ELSEWHERE))
        for permanent in (False, True):
            medusa.registry.admin.delete_subject(subject, permanent=permanent)
        lane.start(elsewhere=True)
        error = medusa.await_state(lane.name, "counts", LaneState.FAILED).last_error
        assert "3 records that had been accepted cannot be read now" in error
        assert "topic judged_gone-in, partition 0, offset 10: " in error
        assert f"the registry has no schema with id {schema_id}" in error
        assert "--state FRAGMENT=rebuild" in error
        lane.deploy(choices=Choices(OnChange.REBUILD, {"counts": OnChange.REBUILD}))  # type: ignore[dict-item]  # a plain name
        lane.await_dead_letters(3)
        lane.counts = before
        lane.send(range(13, 16))
        lane.end()
        lane.start(elsewhere=True)
        lane.send(range(16, 18))
        lane.finish()
        lane.await_dead_letters(3)
