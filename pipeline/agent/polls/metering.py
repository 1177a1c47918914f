"""Poll that meters the node: reads counters, charges them, and reports the load to the catalog."""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from brokers.records import Ends
from pipeline.catalog.load_records import FragmentLoad, NodeLoadRecord
from pipeline.catalog.node_loads import NodeLoads
from pipeline.catalog.records import NodeRecord
from pipeline.clock import Clock, steady_ms
from pipeline.errors import MedusaError
from pipeline.ids import FragmentId, TopicName
from pipeline.metering.accounting import Account
from pipeline.metering.load import CoreSpeed, Usage, usage
from pipeline.metering.readings import LaneUse, ProcessTimes, Reading

PAUSE_S: Final = 10.0
SPAN_READINGS: Final = 7
"""Loads are means over the last minute: the increase from the first of these readings on."""
SAMPLE_READINGS: Final = 6
"""Sizes of records are sampled every so many readings, and in the first."""

_log = logging.getLogger(__name__)


class Processes(Protocol):
    """As in `pipeline/node/metering/process_times.py`."""

    def read(self) -> ProcessTimes:
        """The CPU time of the node's processes up to now."""


class Tasks(Protocol):
    """As in `pipeline/spark/session/task_times.py`."""

    def read(self) -> Mapping[str, int]:
        """CPU time in ns of the stages that have ended since the last read, by group of jobs."""


class Meters(Protocol):
    """As in `pipeline/spark/run/lane_meters.py`."""

    @property
    def groups(self) -> Mapping[str, FragmentId]:
        """The fragment of each group of jobs."""

    def tasks(self, spent_ns: Mapping[FragmentId, int]) -> Mapping[FragmentId, LaneUse]:
        """Add what tasks have computed; returns everything that was counted."""

    def take_positions(self) -> Ends:
        """The most advanced positions of the lanes with a batch since the last call."""

    def sized(self, sizes: Mapping[TopicName, float]) -> None:
        """Count the bytes of records by these mean sizes."""


class Samples(Protocol):
    """As in `pipeline/spark/run/record_samples.py`."""

    def sizes(self, before: Ends) -> Mapping[TopicName, float]:
        """Mean size in bytes of the records of topics."""


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of a node.

    Args:
        processes: CPU time of its processes.
        tasks: of Spark's tasks.
        meters: of its lanes.
        samples: sizes of records.
        remote_tasks: whether tasks run on a cluster.
    """

    processes: Processes
    tasks: Tasks
    meters: Meters
    samples: Samples
    remote_tasks: bool


@dataclass(slots=True)
class MeteringPoll:
    """Meters a node every ten seconds.

    Args:
        node: its record.
        counters: what is read.
        speed: of its cores.
        cores: that tasks use at the same time.
        loads: where the load is reported.
        clock: of the readings.
        thread_ns: CPU time in ns of the thread that calls `read`.
    """

    node: NodeRecord
    counters: Counters
    speed: CoreSpeed
    cores: int
    loads: NodeLoads
    clock: Clock
    thread_ns: Callable[[], int]
    _accounts: deque[tuple[Account, int]] = field(
        init=False, default_factory=lambda: deque(maxlen=SPAN_READINGS)
    )
    _calls: int = field(init=False, default=0)

    def read(self) -> float:
        """Read the counters, charge their increase, and report the load of the last minute."""
        self._sample()
        reading = self._reading()
        try:
            account = self._accounts[-1][0].after(reading) if self._accounts else Account(reading)
        except MedusaError:
            self._accounts.clear()  # what was read is not comparable with what comes
            raise
        self._accounts.append((account, self.thread_ns()))
        if account.reading.at_ms > self._accounts[0][0].reading.at_ms:
            self.loads.report(self._record())
        return PAUSE_S

    def _reading(self) -> Reading:
        counters, groups = self.counters, self.counters.meters.groups
        spent: dict[FragmentId, int] = {}
        for group, ns in counters.tasks.read().items():
            if (fragment := groups.get(group)) is not None:
                spent[fragment] = spent.get(fragment, 0) + ns
        lanes = counters.meters.tasks(spent)
        now_ms = steady_ms(self.clock)
        return Reading(now_ms, counters.processes.read(), lanes, counters.remote_tasks)

    def _sample(self) -> None:
        """Sample sizes of records; without an answer the sizes are those of the last sample."""
        self._calls += 1
        if self._calls % SAMPLE_READINGS != 1:
            return
        meters = self.counters.meters
        try:
            meters.sized(self.counters.samples.sizes(meters.take_positions()))
        except MedusaError as error:
            _log.debug("the sizes of records are not sampled: %s", error)

    def _record(self) -> NodeLoadRecord:
        (first, before_ns), (last, after_ns) = self._accounts[0], self._accounts[-1]
        found, speed = usage(first, last), self.speed
        return NodeLoadRecord(
            node=self.node.node,
            participant=self.node.participant,
            life=self.node.started_at_ms,
            at_ms=self.clock.now_ms(),
            span_ms=found.span_ms,
            core_permille=speed.permille,
            cores=self.cores,
            overhead=speed.milli_per_s(found.overhead_ns, found.span_ms),
            overhead_charged=speed.milli(last.overhead_ns),
            total=speed.milli_per_s(found.total_ns, found.span_ms),
            metering=speed.milli_per_s(after_ns - before_ns, found.span_ms),
            fragments=fragment_loads(found, last, speed),
        )


def fragment_loads(found: Usage, account: Account, speed: CoreSpeed) -> tuple[FragmentLoad, ...]:
    """The load of each fragment in a span of time, by name."""
    span_ms = found.span_ms

    def per_s(cpu_ns: int) -> int:
        return speed.milli_per_s(cpu_ns, span_ms)

    return tuple(
        FragmentLoad(
            network=at.network,
            fragment=at.fragment,
            planning=per_s(use.charge.planning_ns),
            tasks=per_s(use.charge.tasks_ns),
            writing=per_s(use.charge.writing_ns),
            functions=per_s(use.charge.functions_ns),
            shared=per_s(use.charge.shared_ns),
            records_in=round(1_000 * use.flow.records_in / span_ms),
            records_out=round(1_000 * use.flow.records_out / span_ms),
            bytes_in=round(1_000 * use.flow.bytes_in / span_ms),
            bytes_out=round(1_000 * use.flow.bytes_out / span_ms),
            charged=speed.milli(account.charges[at].total_ns),
        )
        for at, use in found.uses.items()
    )
