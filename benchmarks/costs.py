"""Recovery time against its cost: load without a fault, and the table of both."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from benchmarks.harness import median, percentile
from benchmarks.processes import computed_s, written_bytes

HEADER = (
    "mode",
    "processor time",
    "of the broker",
    "written",
    "results after (p50, p99)",
    "kills",
    "first new batch (median, worst)",
    "longest time without a result, less the usual one (median, worst)",
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Load without a fault.

    Args:
        nodes: processor seconds of both nodes, or instances, in a second.
        broker: processor seconds of the broker in a second.
        written: bytes that the nodes write in a second.
        latency: median of how long after its event time a result is read, in seconds.
        latency_99: 99th percentile of that.
    """

    nodes: float
    broker: float
    written: float
    latency: float
    latency_99: float

    def __str__(self) -> str:
        return (
            f"{self.nodes * 100:.0f} % of a core in the nodes, {self.broker * 100:.0f} % in the "
            f"broker, {self.written / 1024:.0f} KiB/s written, results after {self.latency:.2f} s "
            f"(p99 {self.latency_99:.2f})"
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One mode: its cost, and its kills.

    Args:
        mode: its name.
        cost: without a fault.
        pauses: of each kill, the longest time without a result, less the usual one, in seconds.
        batches: seconds from each kill to the first new batch, committed; empty: not measured.
    """

    mode: str
    cost: Cost
    pauses: tuple[float, ...]
    batches: tuple[float, ...] = ()

    def __str__(self) -> str:
        cost = self.cost
        cells = (
            self.mode,
            f"{cost.nodes * 100:.0f} %",
            f"{cost.broker * 100:.0f} %",
            f"{cost.written / 1024:.0f} KiB/s",
            f"{cost.latency:.2f} s, {cost.latency_99:.2f} s",
            str(len(self.pauses)),
            _seconds(self.batches),
            _seconds(self.pauses),
        )
        return _line(cells)


def table(rows: Sequence[Row]) -> str:
    """The modes below each other."""
    lines = [_line(HEADER), "|" + "---|" * len(HEADER), *map(str, rows)]
    return "\n".join(lines)


def to_json(rows: Sequence[Row]) -> str:
    """All that was measured, for `rows_of`."""
    return json.dumps([asdict(one) for one in rows], indent=1)


def rows_of(text: str) -> tuple[Row, ...]:
    """The rows of a file that `to_json` has written.

    Raises:
        KeyError: it is something else.
    """
    return tuple(
        Row(one["mode"], Cost(**one["cost"]), tuple(one["pauses"]), tuple(one["batches"]))
        for one in json.loads(text)
    )


def measured(
    pids: Sequence[int],
    broker: int,
    seconds: float,
    late_s: Callable[[float], Sequence[float]],
) -> Cost:
    """Measure the load for so long.

    Args:
        pids: the processes of the nodes, or of the instances.
        broker: the process of the broker.
        seconds: how long.
        late_s: how long after their event time the results since a time (monotonic) were read.
    """
    began_s, before = time.monotonic(), _used(pids, broker)
    time.sleep(seconds)
    after, took_s = _used(pids, broker), time.monotonic() - began_s
    late = late_s(began_s)
    nodes, of_broker, written = ((b - a) / took_s for a, b in zip(before, after, strict=True))
    return Cost(nodes, of_broker, written, median(late), percentile(late, 0.99))


def _used(pids: Sequence[int], broker: int) -> tuple[float, float, float]:
    """Processor seconds of the nodes and of the broker, and bytes that the nodes have written."""
    return sum(map(computed_s, pids)), computed_s(broker), sum(map(written_bytes, pids))


def _seconds(found: Sequence[float]) -> str:
    return f"{median(found):.2f} s, {max(found):.2f} s" if found else "-"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
