"""Exact rebuild of state after a lost, damaged or incompatible checkpoint."""

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from brokers.kafka.producer import PlainProducer
from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.pause import pause, resume
from pipeline.ids import FragmentId, FragmentName, TopicName, stable_lane
from pipeline.spark.run.checkpoints import FORMAT_VERSION
from tests.system.lanes.conftest import NODE
from tests.system.support import READING, TIMEOUT_S, WINDOWS, Installation, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(600), pytest.mark.usefixtures("node")]

PAIRS = """
network: {name}
streams:
  readings:
    topic: {name}-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 1h
    partitions: 2
boxes:
  odd: {{filter: readings, where: value % 2 = 1}}
  even: {{filter: readings, where: value % 2 = 0}}
  pairs:
    join: {{left: odd, right: even, on: [sensor], within: {within}s}}
    select: {{sensor: left.sensor, a: left.value, b: right.value}}
outputs: {{pairs: {{topic: {name}-out}}}}
"""
WITHIN_S = 90.0
Damage = Callable[[Path], None]
Reading = tuple[str, int, int]
"""Sensor, value, event time in milliseconds."""


def lose(folder: Path) -> None:
    """Delete the whole checkpoint."""
    shutil.rmtree(folder)


def truncation(files: str) -> Damage:
    """Truncates the newest file of a kind to half, as after a crash of the machine."""

    def damage(folder: Path) -> None:
        path = _newest(folder, files)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return damage


def deletion(files: str, *, place: int = -1) -> Damage:
    """Deletes the newest file of a kind, or the one at an index in order of age."""
    return lambda folder: _newest(folder, files, place).unlink()


def set_back(folder: Path) -> None:
    """Delete what the newest two batches wrote into the logs, and their plans."""
    for log in ("commits", "offsets"):
        for _ in range(2):
            _newest(folder, f"{log}/*").unlink()


def set_back_without_state(folder: Path) -> None:
    """The same, and the state that is left cannot be read."""
    set_back(folder)
    lose_state(folder)


def lose_state(folder: Path) -> None:
    """Delete Spark's state files."""
    shutil.rmtree(_last_epoch(folder) / "state")


def written_by(**fields: object) -> Damage:
    """Marks the checkpoint as written by other program versions."""

    def damage(folder: Path) -> None:
        file = _last_epoch(folder) / "medusa.json"
        before = json.loads(file.read_text())
        assert all(before[name] != value for name, value in fields.items())
        file.write_text(json.dumps({**before, **fields}))

    return damage


def _last_epoch(folder: Path) -> Path:
    return max(path.parent for path in folder.glob("epoch-*/medusa.json"))


def _newest(folder: Path, files: str, place: int = -1) -> Path:
    found = [path for path in _last_epoch(folder).glob(files) if not path.name.startswith(".")]
    return sorted(found, key=lambda path: (len(path.name), path.name))[place]


DAMAGES: dict[str, Damage] = {
    "all": lose,
    "state": lose_state,
    "offsets cut off": truncation("offsets/*"),
    "offsets before the last gone": deletion("offsets/*", place=-2),
    "commits cut off": truncation("commits/*"),
    "commits gone": deletion("commits/*"),
    "metadata cut off": truncation("metadata"),
    "metadata gone": deletion("metadata"),
    "first offsets cut off": truncation("sources/0/0"),
    "changes cut off": truncation("state/0/0/*.changelog"),
    "changes gone": deletion("state/0/1/*.changelog"),
    "schema of the state cut off": truncation("state/0/0/_metadata/*"),
    "identity cut off": truncation("medusa.json"),
    "of another Spark": written_by(spark="3.5.1"),
    "of a newer Medusa": written_by(format=FORMAT_VERSION + 1),
}


def send(medusa: Installation, topic: str, readings: list[Reading]) -> None:
    """Send readings, each sensor to its own partition."""
    for sensor, value, at in readings:
        reading = {"sensor": sensor, "value": value, "at": at}
        data = medusa.encoded(f"{topic}-value", READING, reading)
        medusa.send(topic, data, partition=ord(sensor) % 2)
    medusa.producer.flush(10)


@dataclass
class Lane:
    """A lane whose checkpoint is damaged between two parts of its input."""

    medusa: Installation
    network: str
    box: str
    sent: int = 0

    def feed(self, readings: list[Reading]) -> None:
        """Send in two steps; the first one's windows are closed before the second."""
        half = len(readings) // 2
        for part in (readings[:half], readings[half:]):
            send(self.medusa, f"{self.network}-in", part)
            self.sent += len(part)
            self.medusa.wait_for(self._has_read, f"{self.sent} read", within_s=WITHIN_S)

    def finish(self, last_ms: int) -> None:
        """Close all windows; `last_ms` is the event time of the last reading."""
        ends = [(sensor, 0, last_ms + 100_000) for sensor in ("a", "b")]
        self.feed(ends)
        self.medusa.wait_for(
            lambda: self._promised() >= last_ms + 88_000,
            "everything before the end is closed",
            within_s=WITHIN_S,
        )

    def damage(self, damage: Damage) -> None:
        """Damage the checkpoint of the paused lane."""
        fragment = self.medusa.checkpoints(self.network) / self.box
        lane = stable_lane(FragmentId(network_id(self.network), FragmentName(self.box)))
        damage(fragment / lane.name)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the lane during the block."""
        network, box = network_id(self.network), FragmentName(self.box)
        pause(network, box, self.medusa.catalog)
        self.medusa.await_state(self.network, self.box, LaneState.STOPPED)
        yield
        resume(network, box, self.medusa.catalog)

    def _has_read(self) -> bool:
        status = self.medusa.status(self.network, self.box)
        return status is not None and status.records_in >= self.sent

    def _promised(self) -> int:
        status = self.medusa.status(self.network, self.box)
        return 0 if status is None else status.boundary_ms or 0


def some(start: int, count: int) -> list[Reading]:
    """Readings of two sensors, a quarter of a second apart."""
    return [("ab"[i % 2], i, start * 250 + i * 250) for i in range(count)]


@pytest.mark.second_tier(
    "rows that wait are rebuilt below; windows in a lost checkpoint of the faults"
)
def test_open_windows_are_rebuilt_from_the_log(medusa: Installation) -> None:
    """After loss or truncation of any file; late records stay excluded, results are exact."""
    name = "rebuilt_windows"
    medusa.deploy(WINDOWS.format(name=name), {"reading.avsc": READING})
    base = int(time.time()) // 10 * 40 - 40_000
    parts = [some(base + i * 100, 100) for i in range(len(DAMAGES) + 1)]
    late = ("a", 1_000_000, base * 250)
    parts[1].append(late)
    lane = Lane(medusa, name, "counts")
    for part, damage in zip(parts, DAMAGES.values(), strict=False):
        lane.feed(part)
        with lane.paused():
            lane.damage(damage)
    lane.feed(parts[-1])
    lane.finish(parts[-1][-1][2])
    counted = [reading for part in parts for reading in part if reading != late]
    assert results(medusa, name) == expected_of(counted)
    assert len(medusa.records(f"local.{name}.counts.dlq")) == 1
    log = (medusa.folder / "logs" / f"node-{NODE}.log").read_text()
    assert "Spark 3.5.1 wrote the checkpoint, this is Spark" in log
    assert "there is no checkpoint of its last life here that can be read: rebuilding" in log


def expected_of(readings: list[Reading]) -> list[tuple[tuple[str, int], int, int]]:
    """Windows of ten seconds by sensor and end, with count and total."""
    counts: Counter[tuple[str, int]] = Counter()
    totals: Counter[tuple[str, int]] = Counter()
    for sensor, value, at in readings:
        window = (sensor, at // 10_000 * 10_000 + 10_000)
        counts[window] += 1
        totals[window] += value
    return sorted((window, n, totals[window]) for window, n in counts.items())


def results(medusa: Installation, name: str) -> list[tuple[tuple[str, int], int, int]]:
    """The published results in the same form."""
    return sorted(
        ((row["sensor"], int(row["window_end"].timestamp() * 1000)), row["n"], row["total"])
        for row in medusa.decoded(f"{name}-out")
    )


def grow(medusa: Installation, topic: TopicName, partitions: int) -> None:
    """Raise the number of a topic's partitions."""
    admin = AdminClient({"bootstrap.servers": medusa.stack.kafka_bootstrap_servers})
    (grown,) = admin.create_partitions([NewPartitions(topic, partitions)]).values()
    grown.result(TIMEOUT_S)
    medusa.wait_for(
        lambda: medusa.admin.describe((topic,))[topic].partitions == partitions,
        f"{topic} has grown",
        within_s=WITHIN_S,
    )


def test_state_is_rebuilt_when_the_input_has_new_partitions(medusa: Installation) -> None:
    """State comes from processed records; the new partition is read from its first record."""
    name, topic = "rebuilt_grown", TopicName("rebuilt_grown-in")
    medusa.deploy(WINDOWS.format(name=name), {"reading.avsc": READING})
    base = int(time.time()) // 10 * 40 - 4_000
    parts = [some(base, 100), some(base + 100, 100)]
    new = [("c", 7, at) for _, _, at in parts[0][-20:]]
    last_ms = parts[1][-1][2]
    lane = Lane(medusa, name, "counts")
    lane.feed(parts[0])
    with lane.paused():
        lane.damage(lose)
        grow(medusa, topic, 3)
        # An existing producer refreshes its metadata, and so its partitions, only after minutes.
        newer = PlainProducer(medusa.stack.kafka_bootstrap_servers, TIMEOUT_S)
        for sensor, value, at in [*new, ("c", 0, last_ms + 100_000)]:
            reading = {"sensor": sensor, "value": value, "at": at}
            data = medusa.encoded(f"{topic}-value", READING, reading)
            newer.send(topic, None, data, partition=2)
            lane.sent += 1
        newer.flush(TIMEOUT_S)
        newer.close()
    lane.feed(parts[1])
    lane.finish(last_ms)
    assert results(medusa, name) == expected_of([*parts[0], *parts[1], *new])
    assert medusa.records(f"local.{name}.counts.dlq") == []
    log = (medusa.folder / "logs" / f"node-{NODE}.log").read_text()
    assert f"[{name}.counts] stopped" not in log


def test_unmatched_rows_of_a_join_are_rebuilt_from_the_log(medusa: Installation) -> None:
    """Every pair is emitted once, also if its rows were read by different incarnations."""
    name = "rebuilt_pairs"
    medusa.deploy(PAIRS.format(name=name, within=4), {"reading.avsc": READING})
    base = int(time.time()) // 10 * 40 - 4_000
    parts = [
        [("ab"[i // 2 % 2], i + j * 60, (base + i + j * 60) * 250) for i in range(60)]
        for j in range(3)
    ]
    lane = Lane(medusa, name, "pairs")
    for part in parts:
        lane.feed(part)
        with lane.paused():
            lane.damage(lose)
    lane.finish(parts[-1][-1][2])
    assert found_pairs(medusa, name) == expected_pairs(parts, within_ms=4_000)


def expected_pairs(parts: list[list[Reading]], within_ms: int) -> list[tuple[str, int, int]]:
    """The pairs of all readings."""
    rows = [reading for part in parts for reading in part]
    return sorted(
        (s, a, b)
        for s, a, left in rows
        for t, b, right in rows
        if s == t and a % 2 == 1 and b % 2 == 0 and abs(left - right) <= within_ms
    )


def found_pairs(medusa: Installation, name: str) -> list[tuple[str, int, int]]:
    """The published pairs."""
    return sorted((row["sensor"], row["a"], row["b"]) for row in medusa.decoded(f"{name}-out"))


def test_a_rebuild_begins_from_an_older_checkpoint(medusa: Installation) -> None:
    """Of which the last batches are gone; if its state cannot be read, from the log."""
    name = "rebuilt_older"
    medusa.deploy(PAIRS.format(name=name, within=60), {"reading.avsc": READING})
    base = int(time.time()) // 10 * 40 - 4_000
    parts = [
        [("ab"[i // 2 % 2], i + j * 20, (base + i + j * 20) * 250) for i in range(20)]
        for j in range(3)
    ]
    lane = Lane(medusa, name, "pairs")
    for part, damage in zip(parts, (set_back, set_back_without_state), strict=False):
        lane.feed(part)
        with lane.paused():
            lane.damage(damage)
    lane.feed(parts[-1])
    lane.finish(parts[-1][-1][2])
    assert found_pairs(medusa, name) == expected_pairs(parts, within_ms=60_000)
    log = (medusa.folder / "logs" / f"node-{NODE}.log").read_text()
    said = [line for line in log.splitlines() if f"[{name}.pairs]" in line]
    older = [line for line in said if re.search(r"after batch \d+ of its checkpoint", line)]
    assert len(older) == 2
    assert len([line for line in said if "not from the checkpoint of batch" in line]) == 1
