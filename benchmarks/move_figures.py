"""Figures of a move: its pause, how its follower was built, and what it cost the owner."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from benchmarks.harness import median, percentile
from benchmarks.processes import computed_s, read_bytes

BEFORE_S = 10.0
"""So long before a move latencies, and the usual time between deliveries, are measured."""
AFTER_S = 5.0
"""So long after it its pause is."""
KIB, MIB = 2**10, 2**20
WANTED = 2.0
"""The owner's 99th percentile while a follower is built, beside that before, at most."""
PAUSES_MS = {"moves": (1_500, 3_000), "upgrades": (2_000, 2_000)}
"""The median of pauses, and the worst one, at most."""
TAIL = 0.99
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Used:
    """What a process and its children have used by a time: processor seconds, bytes read."""

    at_s: float
    cpu_s: float
    read: int

    @classmethod
    def of(cls, pid: int) -> Self:
        """Until now."""
        return cls(time.monotonic(), computed_s(pid), read_bytes(pid))

    def share_since(self, before: Self) -> float:
        """Processor seconds in a second."""
        return (self.cpu_s - before.cpu_s) / (self.at_s - before.at_s)


@dataclass(frozen=True, slots=True)
class Built:
    """How a target has built its follower.

    Args:
        before: what its node had used when the move was asked for.
        after: what it had used when the follower was level.
        state: bytes of the follower's state in files.
    """

    before: Used
    after: Used
    state: int

    @property
    def took_s(self) -> float:
        """The time."""
        return self.after.at_s - self.before.at_s

    @property
    def cpu_s(self) -> float:
        """Processor seconds of the target's node meanwhile."""
        return self.after.cpu_s - self.before.cpu_s

    @property
    def read(self) -> int:
        """Bytes that it has read meanwhile."""
        return self.after.read - self.before.read

    def __str__(self) -> str:
        return (
            f"built in {self.took_s:.1f} s by {self.cpu_s:.1f} s of processor time,"
            f" {size_text(self.read)} read, {size_text(self.state)} of state"
        )


@dataclass(frozen=True, slots=True)
class Move:
    """One move, or upgrade; times in ms.

    Args:
        pause: the longest time without a result, less the usual one.
        usual: the usual time between deliveries of results.
        whole: from the request until it is done.
        built: how the follower was built; None: not measured.
        before_ms: how long after their event time results were read before.
        meanwhile_ms: the same while the follower was built.
    """

    pause: float
    usual: float
    whole: float
    built: Built | None = None
    before_ms: tuple[float, ...] = ()
    meanwhile_ms: tuple[float, ...] = ()

    def __str__(self) -> str:
        text = f"pause {self.pause:6.0f} ms, usual {self.usual:6.0f} ms, whole {self.whole:7.0f} ms"
        if self.built is None:
            return text
        tails = tails_text(self.before_ms, self.meanwhile_ms)
        return f"{text}, {self.built}; {tails}"


def size_text(size: float) -> str:
    """A number of bytes.

    >>> size_text(2_621_440), size_text(10_240)
    ('2.5 MiB', '10.0 KiB')
    """
    return f"{size / MIB:.1f} MiB" if size >= MIB else f"{size / KIB:.1f} KiB"


def tails_text(before_ms: Sequence[float], meanwhile_ms: Sequence[float]) -> str:
    """The owner's 99th percentiles of latency before and while a follower is built.

    >>> tails_text([100.0, 200.0], [300.0])
    'p99 200 ms before, 300 ms meanwhile, 1.50 times'
    """
    before, meanwhile = (
        percentile(one, TAIL) if one else None for one in (before_ms, meanwhile_ms)
    )
    shown = (NOTHING if one is None else f"{one:.0f} ms" for one in (before, meanwhile))
    text = "p99 {} before, {} meanwhile".format(*shown)
    if before is None or meanwhile is None or before <= 0:
        return text
    return f"{text}, {meanwhile / before:.2f} times"


def bounds_text(pauses: Sequence[float], most: tuple[float, float]) -> str:
    """Whether pauses are within the bounds of their median and of the worst one.

    >>> bounds_text([900.0, 1_400.0], (1_500, 3_000)), bounds_text([900.0, 3_400.0], (1_500, 3_000))
    ('wanted: 1500 and 3000 ms at most, met', 'wanted: 1500 and 3000 ms at most, not met')
    """
    met = median(pauses) <= most[0] and max(pauses) <= most[1]
    return f"wanted: {most[0]:.0f} and {most[1]:.0f} ms at most, {'met' if met else 'not met'}"


def summary(what: str, found: Sequence[Move], most: tuple[float, float] | None = None) -> str:
    """Medians of some moves; the latencies are those of all of them together.

    Args:
        what: they are.
        found: their figures.
        most: the wanted bounds of their pauses, in ms: of the median, and of the worst one; None:
            they are only compared.
    """
    pauses = [one.pause for one in found]
    text = (
        f"{what}: pause median {median(pauses):.0f} ms, worst {max(pauses):.0f} ms"
        f"{'' if most is None else f' ({bounds_text(pauses, most)})'}; whole median "
        f"{median([one.whole for one in found]):.0f} ms"
    )
    built = [one.built for one in found if one.built]
    if not built:
        return text
    took_s, cpu_s, read, state = (
        median([float(getattr(one, name)) for one in built])
        for name in ("took_s", "cpu_s", "read", "state")
    )
    tails = tails_text(
        [late for one in found for late in one.before_ms],
        [late for one in found for late in one.meanwhile_ms],
    )
    return (
        f"{text}\n  building, medians: {took_s:.1f} s, {cpu_s:.1f} s of processor time, "
        f"{size_text(read)} read, {size_text(state)} of state"
        f"\n  the owner while followers are built: {tails} (wanted: {WANTED:.0f} at most)"
    )


def level_text(what: str, shares: Sequence[float], lags_ms: Sequence[float]) -> str:
    """The owner and its follower while both are level.

    Args:
        what: the job.
        shares: processor seconds in a second, of the owner's node and of the follower's.
        lags_ms: of the follower, of each batch; empty: there is nothing to follow.
    """
    owner, follower = shares
    lag = "nothing to follow"
    if lags_ms:
        p50, p99 = (percentile(lags_ms, share) for share in (0.5, TAIL))
        lag = f"lag p50 {p50:.0f} ms, p99 {p99:.0f} ms of {len(lags_ms)} batches"
    return (
        f"{what}, level: owner {owner * 100:.0f} % of a core, follower {follower * 100:.0f} %; "
        f"{lag}"
    )
