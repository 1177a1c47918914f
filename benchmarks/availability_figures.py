"""Figures of an input that is cut: how late new results are, and what becomes of tentative ones.

Times are ms since 1970, all by the clock of one machine. A result is *new* when the first one with
its id is read, tentative or stable; its latency is the time until then since its window's end.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from benchmarks import cut_plot
from benchmarks.harness import percentile
from pipeline.examples.cut import Outcome
from pipeline.reader.results import Stable, Tentative, Undone

WAITED: float = 0.9
"""The share of the bound for which results are held back before tentative ones come."""
BEFORE_MS = 5_000
"""So much of the time before a cut is in its picture."""
PLOTTED = "windows"
COUNTED = (Outcome.TENTATIVE, Outcome.CONFIRMED, Outcome.REPLACED, Outcome.UNDONE)
NOTHING = "-"
HEADER = (
    f"{'policy':8}{'cut s':>7}{'new s':>8}{'after s':>9}{'< X':>5}{'tentative':>11}"
    f"{'confirmed':>11}{'replaced':>10}{'undone':>8}{'stable s':>10}{'done s':>8}  windows"
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader has seen of one result.

    Args:
        at_ms: when.
        outcome: what.
        id: of the result.
        end_ms: of its window.
        value: of a stable result, as the topic has it.
    """

    at_ms: float
    outcome: Outcome
    id: bytes
    end_ms: int
    value: bytes | None = None

    @property
    def latency_ms(self) -> float:
        """The time since the end of its window."""
        return self.at_ms - self.end_ms


@dataclass(slots=True)
class History:
    """Everything that a reader was told, in order.

    Args:
        results: of results.
        done: when each done mark was read, by generation.
        open_ids: of tentative results that are not settled.
        generations: of which there were tentative results.
        stable_ms: the last window's end of which there was a stable result; 0: there was none.
    """

    results: list[Seen] = field(default_factory=list)
    done: dict[str, float] = field(default_factory=dict)
    open_ids: set[bytes] = field(default_factory=set)
    generations: set[str] = field(default_factory=set)
    stable_ms: int = 0

    def tentative(self, result: Tentative, at_ms: float) -> None:
        """A tentative result; another one with an open id takes the place of the first."""
        self.generations.add(result.generation)
        if result.id not in self.open_ids:
            self.results.append(Seen(at_ms, Outcome.TENTATIVE, result.id, result.timestamp_ms))
        self.open_ids.add(result.id)

    def stable(self, result: Stable, at_ms: float) -> None:
        """A stable result; one without an id is known by its place."""
        result_id = result.id or f"{result.partition}@{result.offset}".encode()
        outcomes = {None: Outcome.STABLE, True: Outcome.CONFIRMED, False: Outcome.REPLACED}
        outcome = outcomes[result.confirms]
        self.results.append(Seen(at_ms, outcome, result_id, result.timestamp_ms, result.value))
        self.open_ids.discard(result_id)
        self.stable_ms = max(self.stable_ms, result.timestamp_ms)

    def undone(self, undone: Undone, at_ms: float) -> None:
        """A tentative result without a stable one."""
        self.results.append(Seen(at_ms, Outcome.UNDONE, undone.id, undone.timestamp_ms))
        self.open_ids.discard(undone.id)

    def settled(self, after_ms: float) -> bool:
        """Whether stable results of windows after a time are there, and nothing is open before."""
        return (
            self.stable_ms > after_ms and not self.open_ids and self.generations <= self.done.keys()
        )


@dataclass(frozen=True, slots=True)
class Normal:
    """Latencies of results, in ms, while nothing is missing.

    Args:
        p50: their median.
        p99: their 99th percentile.
        results: how many there were.
        tentative: so many of them were tentative first, which they should not be.
    """

    p50: float
    p99: float
    results: int
    tentative: int

    def __str__(self) -> str:
        """In words."""
        return (
            f"normal latency p50 {self.p50:.0f} ms, p99 {self.p99:.0f} ms"
            f" ({self.results} results, {self.tentative} tentative)"
        )


@dataclass(frozen=True, slots=True)
class Cut:
    """What is done to an input.

    Args:
        policy: of the bound.
        seconds: how long a partition is cut.
        bound_ms: X.
    """

    policy: str
    seconds: float
    bound_ms: int


@dataclass(frozen=True, slots=True)
class Phase:
    """A cut, and the time after it, until the next one.

    Args:
        cut_ms: when it began.
        healed_ms: when it ended, and what was held back was sent.
        settled_ms: when stable results had followed, and no tentative one was open; None: not in
            the time that a run waits.
        until_ms: when the phase ended.
    """

    cut_ms: float
    healed_ms: float
    settled_ms: float | None
    until_ms: float


@dataclass(frozen=True, slots=True)
class CutFigures:
    """What one cut caused.

    Args:
        cut: the cut.
        new_ms: the longest latency of a new result whose window ended while the input was cut, less
            the usual median; None: there was none.
        after_ms: the same of windows that ended from healing until everything was settled.
        counts: how often a reader saw each outcome.
        settled: whether everything was settled in time.
        stable_ms: from healing until the last stable result of the windows that ended while the
            input was cut; None: there was none.
        done_ms: from healing to the last done mark; None: there was none.
        lost: windows without a stable result.
        wrong: stable results that differ from the reference, or came twice.
        delays: of each window from the cut until everything was settled: its end, since the cut
            began, and the longest delay of its new results, in ms.
    """

    cut: Cut
    new_ms: float | None
    after_ms: float | None
    counts: Mapping[str, int]
    settled: bool
    stable_ms: float | None
    done_ms: float | None
    lost: int = 0
    wrong: int = 0
    delays: tuple[tuple[int, float], ...] = ()

    @property
    def within(self) -> bool | None:
        """Whether no new result was late by the bound, or more; None: there was none."""
        delays = [one for one in (self.new_ms, self.after_ms) if one is not None]
        return max(delays) < self.cut.bound_ms if delays else None

    @property
    def needless(self) -> bool:
        """Whether results were tentative although the cut was shorter than they are held back."""
        short = self.cut.seconds * 1_000 < WAITED * self.cut.bound_ms
        return short and self.counts[Outcome.TENTATIVE.value] > 0

    @property
    def right(self) -> bool:
        """Whether the stable results are those of the reference, and nothing stayed open."""
        return self.settled and not self.lost and not self.wrong

    def __str__(self) -> str:
        """A line of the table."""
        within = {None: NOTHING, True: "yes", False: "no"}[self.within]
        tentative, *settled = (str(self.counts[one.value]) for one in COUNTED)
        tentative += "!" if self.needless else ""
        windows = "exact"
        if self.lost or self.wrong:
            windows = f"{self.lost} LOST, {self.wrong} WRONG"
        windows += "" if self.settled else ", NOT SETTLED"
        confirmed, replaced, undone = settled
        return (
            f"{self.cut.policy:8}{self.cut.seconds:>7g}"
            f"{_text(self.new_ms):>8}{_text(self.after_ms):>9}"
            f"{within:>5}{tentative:>11}{confirmed:>11}{replaced:>10}{undone:>8}"
            f"{_text(self.stable_ms):>10}{_text(self.done_ms):>8}  {windows}"
        )

    def as_json(self) -> Mapping[str, object]:
        """Everything, as a JSON object."""
        told = {"within": self.within, "needless": self.needless, "right": self.right}
        return {**asdict(self), **told}


def new_results(results: Iterable[Seen], after_ms: float, until_ms: float) -> list[Seen]:
    """The first result with each id, of windows that ended in a time.

    Args:
        results: all of them, in order.
        after_ms: its begin, excluded.
        until_ms: its end, included.
    """
    first: dict[bytes, Seen] = {}
    for one in results:
        if one.outcome is not Outcome.UNDONE:
            first.setdefault(one.id, one)
    return [one for one in first.values() if after_ms < one.end_ms <= until_ms]


def normal(results: Iterable[Seen], after_ms: float, until_ms: float) -> Normal | None:
    """The latencies of windows that ended in a time without a cut; None: there was no result."""
    found = new_results(results, after_ms, until_ms)
    if not found:
        return None
    late = [one.latency_ms for one in found]
    tentative = sum(one.outcome is Outcome.TENTATIVE for one in found)
    return Normal(percentile(late, 0.5), percentile(late, 0.99), len(found), tentative)


def figures(cut: Cut, phase: Phase, history: History, usual: Normal) -> CutFigures:
    """The figures of one cut, without the comparison of its windows.

    Args:
        cut: the cut.
        phase: when it was.
        history: all that the reader saw.
        usual: the latencies without a cut.
    """
    settled_ms = phase.until_ms if phase.settled_ms is None else phase.settled_ms
    there = [one for one in history.results if phase.cut_ms <= one.at_ms < phase.until_ms]
    stable = [
        one.at_ms
        for one in there
        if one.value is not None and phase.cut_ms < one.end_ms <= phase.healed_ms
    ]
    done = [at_ms for at_ms in history.done.values() if phase.cut_ms <= at_ms < phase.until_ms]
    late: dict[int, float] = {}
    for one in new_results(history.results, phase.cut_ms, settled_ms):
        late[one.end_ms] = max(one.latency_ms - usual.p50, late.get(one.end_ms, -math.inf))
    healed_ms = phase.healed_ms
    return CutFigures(
        cut=cut,
        new_ms=max((late[end_ms] for end_ms in late if end_ms <= healed_ms), default=None),
        after_ms=max((late[end_ms] for end_ms in late if end_ms > healed_ms), default=None),
        counts={one.value: sum(s.outcome is one for s in there) for one in COUNTED},
        settled=phase.settled_ms is not None,
        stable_ms=max(stable) - healed_ms if stable else None,
        done_ms=max(done) - healed_ms if done else None,
        delays=tuple((round(end_ms - phase.cut_ms), late[end_ms]) for end_ms in sorted(late)),
    )


def plotted(phase: Phase, history: History) -> tuple[cut_plot.Seen, ...]:
    """What is in the picture of a cut: times since it began."""
    return tuple(
        cut_plot.Seen(round(one.at_ms - phase.cut_ms), one.outcome.value)
        for one in history.results
        if phase.cut_ms - BEFORE_MS <= one.at_ms < phase.until_ms
    )


def as_json(
    bound_ms: int, rate: float, usual: Mapping[str, Normal], cuts: Sequence[CutFigures]
) -> Mapping[str, object]:
    """Everything that was measured, as a JSON object.

    Args:
        bound_ms: X.
        rate: readings a second.
        usual: by policy.
        cuts: in order.
    """
    return {
        "bound_ms": bound_ms,
        "rate": rate,
        "normal": {policy: asdict(one) for policy, one in usual.items()},
        "cuts": [one.as_json() for one in cuts],
    }


def _text(ms: float | None) -> str:
    return NOTHING if ms is None else f"{ms / 1_000:.2f}"
