"""Readings that flow through windows while nodes come and go, and a check of all results."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from brokers.embedded.processes import Child
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import OwnerRecord
from pipeline.ids import FragmentId, FragmentName, Millis, NodeId
from pipeline.operations.move import Moves
from pipeline.operations.status.standbys import observed_standbys
from pipeline.system_clock import SystemClock
from tests.system.support import READING, WINDOWS, Installation, kill, network_id

COUNTS = FragmentName("counts")
SCHEMAS = {"reading.avsc": READING}
WITHIN_S = 60.0
LEVEL_WITHIN_S = 120.0
"""Three nodes share the cores."""
BASE_S = int(time.time()) // 10 * 10 - 3_000
"""Windows end within the retention of their topic."""
LATE_S = 500
STEP_S = 0.05
"""How long a second of event time takes."""


def started(medusa: Installation, name: str) -> Child:
    """Start a node with checkpoints of its own."""
    return medusa.start_node(name, {"checkpoints": str(medusa.folder / f"checkpoints-{name}")})


@contextmanager
def running_nodes(medusa: Installation, *names: str) -> Iterator[dict[str, Child]]:
    """Nodes with checkpoints of their own, which are up; killed when the block is left."""
    processes = {name: started(medusa, name) for name in names}
    try:
        for name, process in processes.items():
            medusa.await_node(name, process)
        yield processes
    finally:
        for process in processes.values():
            kill(process)


class Feed:
    """Readings of two partitions, one for each second of event time, with late and bad ones.

    `is_late`: whether there are late ones. For a reader that was down for long they are in time,
    since its first batch has its watermark from before.
    """

    def __init__(self, medusa: Installation, name: str, *, is_late: bool = True) -> None:
        self._medusa, self._name, self._is_late = medusa, name, is_late
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.seconds = 0

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def finish(self) -> None:
        """End at a multiple of ten seconds, and close the last window before."""
        self._stop.set()
        self._thread.join(WITHIN_S)
        while self.seconds % 10:
            self._send_next()
        for _ in range(3):
            self._send_next()
        self._medusa.producer.flush(10)

    def _run(self) -> None:
        while not self._stop.wait(STEP_S):
            self._send_next()

    def _send_next(self) -> None:
        second, self.seconds = self.seconds, self.seconds + 1
        for partition in (0, 1):
            self._send(second, partition)
        if second % 7 == 0:
            self._medusa.send(f"{self._name}-in", b"no record", partition=0)
        if (
            self._is_late and second % 9 == 8 and second > LATE_S
        ):  # far below the watermark: a dead letter
            self._send(second - LATE_S, 1)

    def _send(self, second: int, partition: int) -> None:
        at_ms = Millis(1_000 * (BASE_S + second))
        reading = {"sensor": f"s{partition}", "value": second, "at": at_ms}
        value = self._medusa.encoded(f"{self._name}-in-value", READING, reading)
        self._medusa.send(f"{self._name}-in", value, partition=partition)


@contextmanager
def fed(medusa: Installation, name: str, settings: str = "") -> Iterator[Feed]:
    """Feed a network during the block; afterwards every result has to be there, once.

    `settings`: lines of its document.
    """
    medusa.deploy(WINDOWS.format(name=name) + settings, SCHEMAS)
    medusa.await_state(name, COUNTS, LaneState.RUNNING)
    feed = Feed(medusa, name)
    feed.start()
    yield feed
    feed.finish()
    await_windows(medusa, name, feed.seconds // 10 * 10)


def await_windows(
    medusa: Installation, name: str, seconds: int, within_s: float = WITHIN_S
) -> None:
    """Wait for the results of all windows of so many seconds, and compare them."""
    expected = Counter(
        {
            (f"s{partition}", start, 10, sum(range(start, start + 10))): 1
            for start in range(0, seconds, 10)
            for partition in (0, 1)
        }
    )
    topic = f"{name}-out"
    there = partial(medusa.has_more_than, topic, expected.total() - 1)
    medusa.wait_for(there, f"{seconds} s of windows", within_s=within_s)
    found = Counter(
        (row["sensor"], int(row["window_start"].timestamp()) - BASE_S, row["n"], row["total"])
        for row in medusa.decoded(topic)
    )
    assert found == expected


def owner(medusa: Installation, name: str) -> OwnerRecord:
    """The owner of the fragment."""
    found = medusa.catalog.owners.get(network_id(name), COUNTS)
    assert found is not None
    return found


def secondary(medusa: Installation, name: str) -> NodeId:
    """Wait until the secondary of the fragment is level; returns its name."""
    fragment = FragmentId(network_id(name), COUNTS)
    level: list[NodeId] = []

    def is_level() -> bool:
        found = medusa.catalog.snapshot(fragment.network.participant)
        (standby,) = observed_standbys(found)[fragment]
        level[:] = [standby.node] if (fragment, standby.node) in found.level else []
        return bool(level)

    medusa.wait_for(is_level, "a secondary that is level", within_s=LEVEL_WITHIN_S)
    return level[0]


def log_of(medusa: Installation, node: str) -> str:
    """The log of a node."""
    return (medusa.folder / "logs" / f"node-{node}.log").read_text()


def moves(medusa: Installation, name: str) -> Moves:
    """The moves of the participant."""
    servers = medusa.servers
    participant = network_id(name).participant
    return Moves(participant, medusa.catalog, servers.topics, servers.log, SystemClock())


def await_results(medusa: Installation, name: str, more: int, within_s: float = WITHIN_S) -> None:
    """Wait until so many more results are there."""
    topic = f"{name}-out"
    wanted = len(medusa.records(topic)) + more
    medusa.wait_for(
        partial(medusa.has_more_than, topic, wanted - 1), f"{more} results", within_s=within_s
    )
