"""When results arrive, and how long after their event time, read by a thread of its own."""

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from confluent_kafka import Consumer

from benchmarks.harness import Stack, median, reader

TOGETHER_S = 0.005
"""Results that arrive closer to each other are one delivery."""
POLL_S = 0.01
MOST = 1_000
_AT = attrgetter("at_s")


class Arrival(NamedTuple):
    """A result: when it was read (monotonic), how long after its event time, its partition."""

    at_s: float
    late_ms: float
    partition: int


@dataclass(slots=True)
class Arrivals:
    """Results in order of their arrival, while `run` reads them.

    Args:
        consumer: of the output.
        seen: what has arrived so far.
        stop: ends `run`.
    """

    consumer: Consumer
    seen: list[Arrival] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Read until the stop."""
        while not self.stop.is_set():
            messages = self.consumer.consume(MOST, POLL_S)
            at_s, now_ms = time.monotonic(), time.time_ns() / 1e6
            self.seen += [
                Arrival(at_s, now_ms - one.timestamp()[1], one.partition() or 0)
                for one in messages
                if one.error() is None
            ]

    @property
    def last_s(self) -> float:
        """When the last one arrived; 0 before there is one."""
        return self.seen[-1].at_s if self.seen else 0.0

    def between(self, begin_s: float, end_s: float) -> Sequence[Arrival]:
        """What has arrived between two times, both included."""
        seen = self.seen
        begin = bisect_left(seen, begin_s, key=_AT)
        return seen[begin : bisect_right(seen, end_s, key=_AT)]

    def late_ms(self, begin_s: float, end_s: float) -> list[float]:
        """How long after their event time those between two times have arrived."""
        return [one.late_ms for one in self.between(begin_s, end_s)]

    def gaps_s(self, begin_s: float, end_s: float) -> list[float]:
        """The times between deliveries, from the last one before `begin_s` until `end_s`."""
        before = self.seen[: bisect_left(self.seen, begin_s, key=_AT)][-1:]
        found = [one.at_s for one in (*before, *self.between(begin_s, end_s))]
        return gaps([*found, end_s])

    def pause_s(self, before_s: float, begin_s: float, end_s: float) -> tuple[float, float]:
        """The longest time without a result, less the usual one since `before_s`; and that."""
        usual_s = median(self.gaps_s(before_s, begin_s) or [0.0])
        return max(self.gaps_s(begin_s, end_s), default=0.0) - usual_s, usual_s

    def partition_pause_s(self, before_s: float, begin_s: float, end_s: float) -> float:
        """The longest time without a result of one partition, less the longest before.

        Of the partitions that have had results before.

        Raises:
            SystemExit: none has.
        """
        before = self._by_partition(before_s, begin_s)
        after = self._by_partition(begin_s, end_s)
        if not before:
            raise SystemExit("no result has come before")
        usual_s = max(gap for times in before.values() for gap in (0.0, *gaps(times)))
        around = ([times[-1], *after.get(one, ()), end_s] for one, times in before.items())
        return max(gap for times in around for gap in gaps(times)) - usual_s

    def _by_partition(self, begin_s: float, end_s: float) -> dict[int, list[float]]:
        found: dict[int, list[float]] = {}
        for one in self.between(begin_s, end_s):
            found.setdefault(one.partition, []).append(one.at_s)
        return found


def gaps(times_s: Sequence[float]) -> list[float]:
    """The times between deliveries, of sorted times.

    >>> gaps([1.0, 1.0, 2.0, 4.0])
    [1.0, 2.0]
    """
    return [b - a for a, b in pairwise(times_s) if b - a > TOGETHER_S]


@contextmanager
def arrivals_of(stack: Stack, topic: str) -> Iterator[Arrivals]:
    """Read the results of a topic during the block, from its end on."""
    arrivals = Arrivals(reader(stack, topic, at_end=True))
    thread = threading.Thread(target=arrivals.run, daemon=True)
    thread.start()
    try:
        yield arrivals
    finally:
        arrivals.stop.set()
        thread.join(10)
        arrivals.consumer.close()
