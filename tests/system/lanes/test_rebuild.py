"""A lane whose checkpoint is lost, old or damaged builds its state from the log, exactly."""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from pipeline.catalog.records import LaneState
from tests.system.lanes.support import READING, Installation, kill

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

WINDOWS = """
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
  counts:
    aggregate: readings
    window: 10s
    by: [sensor]
    compute: {{n: count(*), total: sum(value)}}
outputs: {{counts: {{topic: {name}-out}}}}
"""
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
    join: {{left: odd, right: even, on: [sensor], within: 4s}}
    select: {{sensor: left.sensor, a: left.value, b: right.value}}
outputs: {{pairs: {{topic: {name}-out}}}}
"""
WITHIN_S = 90.0
Damage = Callable[[Path], None]
Reading = tuple[str, int, int]
"""Sensor, value, event time in milliseconds."""


def lose(folder: Path) -> None:
    """The whole checkpoint is gone."""
    shutil.rmtree(folder)


def cut_off(files: str) -> Damage:
    """Half of the newest file of a kind is missing, as after a crash of the machine."""

    def damage(folder: Path) -> None:
        path = _newest(folder, files)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return damage


def gone(files: str, *, place: int = -1) -> Damage:
    """The newest file of a kind is missing, or the one at another place from oldest to newest."""
    return lambda folder: _newest(folder, files, place).unlink()


def lose_state(folder: Path) -> None:
    """Spark's state files are gone."""
    shutil.rmtree(_last_epoch(folder) / "state")


def _last_epoch(folder: Path) -> Path:
    return max(path.parent for path in folder.glob("epoch-*/medusa.json"))


def _newest(folder: Path, files: str, place: int = -1) -> Path:
    found = [path for path in _last_epoch(folder).glob(files) if not path.name.startswith(".")]
    return sorted(found, key=lambda path: (len(path.name), path.name))[place]


DAMAGES: dict[str, Damage] = {
    "all": lose,
    "state": lose_state,
    "offsets cut off": cut_off("offsets/*"),
    "offsets before the last gone": gone("offsets/*", place=-2),
    "commits cut off": cut_off("commits/*"),
    "commits gone": gone("commits/*"),
    "metadata cut off": cut_off("metadata"),
    "metadata gone": gone("metadata"),
    "first offsets cut off": cut_off("sources/0/0"),
    "changes cut off": cut_off("state/0/0/*.changelog"),
    "changes gone": gone("state/0/1/*.changelog"),
    "schema of the state cut off": cut_off("state/0/0/_metadata/*"),
    "identity cut off": cut_off("medusa.json"),
}


def send(medusa: Installation, topic: str, readings: list[Reading]) -> None:
    """Send readings, each sensor to its own partition."""
    for sensor, value, at in readings:
        reading = {"sensor": sensor, "value": value, "at": at}
        data = medusa.encoded(f"{topic}-value", READING, reading)
        medusa.send(topic, data, partition=ord(sensor) % 2)
    medusa.producer.flush(10)


def has_read(medusa: Installation, name: str, box: str, records: int) -> bool:
    """Whether a fragment's marker counts so many records."""
    status = medusa.status(name, box)
    return status is not None and status.records_in >= records


def lives(
    medusa: Installation,
    name: str,
    box: str,
    parts: list[list[Reading]],
    damages: Sequence[Damage],
) -> None:
    """One life of the node for each part; between two the checkpoint is damaged."""
    sent = 0
    for life, part in enumerate(parts, 1):
        process = medusa.start_node("rebuilding_node")
        try:
            medusa.await_node("rebuilding_node", process)
            medusa.await_state(name, box, LaneState.RUNNING, epoch=life)
            # Two steps, so that the first one's windows are closed before the second's are read.
            for half in (part[: len(part) // 2], part[len(part) // 2 :]):
                send(medusa, f"{name}-in", half)
                sent += len(half)
                medusa.wait_for(
                    partial(has_read, medusa, name, box, sent), f"{sent} read", within_s=WITHIN_S
                )
        finally:
            kill(process)
        if life < len(parts):
            damages[life - 1](medusa.folder / "checkpoints" / name / box)
    with medusa.node("rebuilding_node"):
        ends = [(sensor, 0, parts[-1][-1][2] + 100_000) for sensor in ("a", "b")]
        send(medusa, f"{name}-in", ends)
        medusa.wait_for(
            partial(has_read, medusa, name, box, sent + 2), "the end read", within_s=WITHIN_S
        )
        closed = parts[-1][-1][2] + 100_000 - 2_000

        def promised() -> bool:
            status = medusa.status(name, box)
            return status is not None and (status.boundary_ms or 0) >= closed - 10_000

        medusa.wait_for(promised, "everything before the end is closed", within_s=WITHIN_S)


def some(start: int, count: int) -> list[Reading]:
    """Readings of two sensors, a quarter of a second apart."""
    return [("ab"[i % 2], i, start * 250 + i * 250) for i in range(count)]


def test_windows_that_were_open_are_rebuilt_from_the_log(medusa: Installation) -> None:
    """Whatever file is lost or cut off; late records stay left out, nothing is lost or repeated."""
    name = "rebuilt_windows"
    medusa.deploy(WINDOWS.format(name=name), {"reading.avsc": READING})
    base = int(time.time()) // 10 * 40 - 40_000
    parts = [some(base + i * 100, 100) for i in range(len(DAMAGES) + 1)]
    late = ("a", 1_000_000, base * 250)
    parts[1].append(late)
    lives(medusa, name, "counts", parts, tuple(DAMAGES.values()))
    counts: Counter[tuple[str, int]] = Counter()
    totals: Counter[tuple[str, int]] = Counter()
    for reading in (r for part in parts for r in part if r != late):
        window = (reading[0], reading[2] // 10_000 * 10_000 + 10_000)
        counts[window] += 1
        totals[window] += reading[1]
    found = [
        ((row["sensor"], int(row["window_end"].timestamp() * 1000)), row["n"], row["total"])
        for row in medusa.decoded(f"{name}-out")
    ]
    assert sorted(found) == sorted((w, n, totals[w]) for w, n in counts.items())
    assert len(medusa.records(f"{name}.counts.dlq")) == 1


def test_rows_that_wait_for_a_partner_are_rebuilt_from_the_log(medusa: Installation) -> None:
    """Every pair comes once, also those whose two rows were read in different lives."""
    name = "rebuilt_pairs"
    medusa.deploy(PAIRS.format(name=name), {"reading.avsc": READING})
    base = int(time.time()) // 10 * 40 - 4_000
    parts = [
        [("ab"[i // 2 % 2], i + j * 60, (base + i + j * 60) * 250) for i in range(60)]
        for j in range(3)
    ]
    lives(medusa, name, "pairs", parts, [lose] * (len(parts) - 1))
    rows = [reading for part in parts for reading in part]
    expected = sorted(
        (s, a, b)
        for s, a, left in rows
        for t, b, right in rows
        if s == t and a % 2 == 1 and b % 2 == 0 and abs(left - right) <= 4_000
    )
    found = sorted((row["sensor"], row["a"], row["b"]) for row in medusa.decoded(f"{name}-out"))
    assert found == expected
