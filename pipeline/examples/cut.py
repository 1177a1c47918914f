"""Cut of an input in the middle of a run, and what became of the tentative results. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from pipeline.ids import Millis
from pipeline.reader.results import Stable, Tentative, Undone
from schemas.json_value import JsonObject

PARTITION = 0
"""The partition that a cut of one keeps back."""


class CutKind(Enum):
    """What is cut; all records come afterwards, with their event times."""

    PARTITION = "partition"
    """One partition of the input: the others go on, so results become tentative."""
    PRODUCER = "producer"
    """The whole input: no later event time is known, so nothing new is wanted."""
    BROKER = "broker"
    """The broker: nothing is read or written, so tentative results cannot be published either."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut of the input in the middle of a run.

    Args:
        kind: what is cut.
        seconds: for how long; the feed lasts longer by them.
    """

    kind: CutKind
    seconds: float

    def shares(self, seconds: float) -> tuple[float, float]:
        """The shares of a feed that lasts so long after which it begins and ends.

        >>> Cut(CutKind.PARTITION, 20.0).shares(80.0)
        (0.375, 0.625)
        """
        begins_s = (seconds - self.seconds) / 2
        return begins_s / seconds, (begins_s + self.seconds) / seconds


_WHAT: Mapping[CutKind, str] = {
    CutKind.PARTITION: f"partition {PARTITION} of the input was cut for {{}}, and sent after that",
    CutKind.PRODUCER: "the whole input was cut for {}, and sent after that",
    CutKind.BROKER: "the broker did not answer for {}, and nothing was read or written meanwhile",
}


class Outcome(Enum):
    """What a reader sees."""

    TENTATIVE = "tentative"
    """The first tentative result with its id."""
    STABLE = "stable"
    """A stable result without a tentative one."""
    CONFIRMED = "confirmed"
    REPLACED = "replaced"
    UNDONE = "undone"
    DONE = "done"
    """The done mark of a generation."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that the reader saw, and when."""

    at_ms: Millis
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class CutReport:
    """What became of the tentative results of an output.

    Args:
        cut: the cut.
        name: of the results, in the plural.
        bound_ms: their availability bound.
        cut_ms: when the cut began.
        healed_ms: when it ended.
        generations: how many there were whose results are all in the time that is checked.
        done: how many of them have their done mark.
        open_results: tentative results in that time that are not settled.
        usual_ms: the longest delay of a result before the cut; None: there was none.
        longest_ms: the longest delay of a result that the cut concerned; None: there was none.
        done_after_ms: from healing to the last done mark; None: there was none.
        seen: everything that the reader saw, in order.
    """

    cut: Cut
    name: str
    bound_ms: int
    cut_ms: Millis
    healed_ms: Millis
    generations: int
    done: int
    open_results: int
    usual_ms: int | None
    longest_ms: int | None
    done_after_ms: int | None
    seen: tuple[Seen, ...] = field(repr=False)

    def count(self, outcome: Outcome) -> int:
        """How often something was seen."""
        return sum(one.outcome is outcome for one in self.seen)

    @property
    def right(self) -> bool:
        """Whether all tentative results are settled, and there were some if there must be any."""
        settled = self.open_results == 0 and self.done == self.generations
        wanted = self.cut.kind is CutKind.PARTITION
        return settled and (self.count(Outcome.TENTATIVE) > 0 or not wanted)


@dataclass(slots=True)
class Tally:
    """Handler of a reader of one output: counts its results, and measures their delays.

    A delay is from the event time of a result until the first one with its id is read, tentative
    or stable.
    """

    now_ms: Callable[[], Millis]
    cut_ms: Millis | None = None
    healed_ms: Millis | None = None
    seen: list[Seen] = field(default_factory=list)
    _open: dict[bytes, int] = field(default_factory=dict)
    """The event time of tentative results that are not settled."""
    _known: dict[bytes, tuple[Millis, Millis]] = field(default_factory=dict)
    """By id: event time of a result, and when it was first read."""
    _generations: dict[str, int] = field(default_factory=dict)
    """The largest event time of the results of each."""
    _done: set[str] = field(default_factory=set)

    def on_tentative(self, result: Tentative) -> None:
        """A tentative result counts, in place of an earlier one with its id."""
        newest_ms = self._generations.get(result.generation, result.timestamp_ms)
        self._generations[result.generation] = max(newest_ms, result.timestamp_ms)
        if result.id not in self._open:
            self._see(Outcome.TENTATIVE)
        self._open[result.id] = result.timestamp_ms
        self._meet(result.id, result.timestamp_ms)

    def on_stable(self, result: Stable) -> None:
        """A stable result counts."""
        result_id = result.id or f"{result.partition}@{result.offset}".encode()
        self._open.pop(result_id, None)
        outcomes = {None: Outcome.STABLE, True: Outcome.CONFIRMED, False: Outcome.REPLACED}
        self._see(outcomes[result.confirms])
        self._meet(result_id, result.timestamp_ms)

    def on_undo(self, undone: Undone) -> None:
        """A tentative result counts no more."""
        self._open.pop(undone.id, None)
        self._see(Outcome.UNDONE)

    def on_done(self, generation: str) -> None:
        """Everything of a generation is settled; one of which all came too late counts, too."""
        self._generations.setdefault(generation, 0)
        self._done.add(generation)
        self._see(Outcome.DONE)

    def settled(self, until_ms: Millis) -> bool:
        """Whether no tentative result up to an event time counts, and all generations are done.

        Later results are settled only if event time goes on, and the feed has ended.
        """
        return not self._left(until_ms) and self._due(until_ms) <= self._done

    def _left(self, until_ms: Millis) -> int:
        return sum(at_ms <= until_ms for at_ms in self._open.values())

    def _due(self, until_ms: Millis) -> set[str]:
        return {one for one, newest_ms in self._generations.items() if newest_ms <= until_ms}

    def count(self, outcome: Outcome) -> int:
        """How often something was seen."""
        return sum(one.outcome is outcome for one in self.seen)

    def report(self, cut: Cut, name: str, bound_ms: int, until_ms: Millis) -> CutReport | None:
        """The report; None: there was no cut.

        Args:
            cut: the cut.
            name: of the results, in the plural.
            bound_ms: their availability bound.
            until_ms: up to when the output is complete.
        """
        due = self._due(until_ms)
        if self.cut_ms is None or self.healed_ms is None:
            return None
        done = [one.at_ms for one in self.seen if one.outcome is Outcome.DONE]
        usual_ms = self._longest(Millis(0), self.cut_ms, to_ms=self.cut_ms)
        from_ms = Millis(self.cut_ms - (usual_ms or 0))
        after = [at - self.healed_ms for at in done if at >= self.healed_ms]
        return CutReport(
            cut=cut,
            name=name,
            bound_ms=bound_ms,
            cut_ms=self.cut_ms,
            healed_ms=self.healed_ms,
            generations=len(due),
            done=len(due & self._done),
            open_results=self._left(until_ms),
            usual_ms=usual_ms,
            longest_ms=self._longest(from_ms, self.healed_ms, from_ms=self.cut_ms),
            done_after_ms=max(after, default=None),
            seen=tuple(self.seen),
        )

    def _longest(
        self, first_ms: Millis, end_ms: Millis, *, from_ms: int = 0, to_ms: int | None = None
    ) -> int | None:
        """The longest delay of results of these event times that were first read in a time."""
        return max(
            (
                at_ms - event_ms
                for event_ms, at_ms in self._known.values()
                if first_ms <= event_ms < end_ms
                and from_ms <= at_ms
                and (to_ms is None or at_ms < to_ms)
            ),
            default=None,
        )

    def _see(self, outcome: Outcome) -> None:
        self.seen.append(Seen(self.now_ms(), outcome))

    def _meet(self, result_id: bytes, event_ms: int) -> None:
        self._known.setdefault(result_id, (Millis(event_ms), self.now_ms()))


def as_lines(report: CutReport) -> tuple[str, ...]:
    """The lines of a report."""
    settled = ", ".join(
        f"{report.count(one):,} {one.value}"
        for one in (Outcome.CONFIRMED, Outcome.REPLACED, Outcome.UNDONE)
    )
    tentative = f"{report.count(Outcome.TENTATIVE):,} tentative {report.name}"
    usual, longest = _seconds(report.usual_ms), _seconds(report.longest_ms)
    bound = f"bound: {report.bound_ms / 1_000:g} s more"
    marks = f"done marks: {report.done} of {report.generations}"
    lines = [
        _WHAT[report.cut.kind].format(_seconds(report.healed_ms - report.cut_ms)),
        f"{tentative}: {settled}, {report.open_results:,} not settled",
        f"longest delay of {report.name}: {usual} before, {longest} while cut ({bound})",
        f"{marks}; the last one {_seconds(report.done_after_ms)} after the cut had ended",
    ]
    if not report.right:
        lines.append("the tentative results are NOT as they have to be")
    return tuple(lines)


def _seconds(ms: int | None) -> str:
    return "none" if ms is None else f"{ms / 1_000:.1f} s"


def as_data(report: CutReport) -> JsonObject:
    """The report as data; times of what was seen in ms since the cut began."""
    return {
        "what": report.cut.kind.value,
        "name": report.name,
        "bound_ms": report.bound_ms,
        "cut_ms": report.healed_ms - report.cut_ms,
        **{one.value: report.count(one) for one in Outcome if one is not Outcome.DONE},
        "open": report.open_results,
        "generations": report.generations,
        "done": report.done,
        "longest_before_ms": report.usual_ms,
        "longest_ms": report.longest_ms,
        "done_after_ms": report.done_after_ms,
        "seen": [[one.at_ms - report.cut_ms, one.outcome.value] for one in report.seen],
    }
