from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline.clock import Clock
from pipeline.examples.cut import Cut, CutKind, Tally, as_lines
from pipeline.examples.cutting import DONE_WITHIN_S, Cutting
from pipeline.examples.lines import HeldFeed
from pipeline.examples.tolls import TOLLS
from pipeline.ids import Millis
from pipeline.reader.results import Stable, Tentative


@dataclass
class SteppedClock:
    """Time that passes only by sleeping."""

    seconds: float = 0.0

    def now_ms(self) -> Millis:
        """Wall time."""
        return Millis(round(self.seconds * 1_000))

    def monotonic_s(self) -> float:
        """The same as seconds."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds


@dataclass
class Reading:
    """A reader that reports a tentative result at once, and the rest at a time."""

    clock: Clock
    tally: Tally
    settles_at_s: float
    reported: int = 0

    def poll(self, timeout_s: float) -> int:
        """Report the next one."""
        assert timeout_s == 0
        if self.reported == 0:
            self.tally.on_tentative(Tentative(b"a", None, b"", 0, 0, "1.1"))
        elif self.reported == 1 and self.clock.monotonic_s() >= self.settles_at_s:
            self.tally.on_stable(Stable(b"a", None, b"", 0, 0, 0, confirms=True, corrects=None))
            self.tally.on_done("1.1")
        else:
            return 0
        self.reported += 1
        return 1


@dataclass
class Steps:
    """A screen that keeps its steps."""

    steps: list[str] = field(default_factory=list)

    def step(self, text: str) -> None:
        """Keep the step."""
        self.steps.append(text)

    def show(self, view: object) -> None:
        """Not used here."""


@dataclass
class Broker:
    """A broker that is suspended, or answers."""

    clock: Clock
    states: list[tuple[str, float]] = field(default_factory=list)

    def cut(self) -> None:
        """Suspend it."""
        self.states.append(("away", self.clock.monotonic_s()))

    def heal(self) -> None:
        """Continue it."""
        self.states.append(("back", self.clock.monotonic_s()))


def cutting(folder: Path, settles_at_s: float) -> Cutting:
    """A cut of ten seconds."""
    assert TOLLS.bounded is not None
    clock = SteppedClock()
    tally = Tally(clock.now_ms)
    reading = Reading(clock, tally, settles_at_s)
    cut = Cut(CutKind.PARTITION, 10.0)
    line = HeldFeed(folder / "cut")
    return Cutting(cut, TOLLS.bounded, line, tally, reading, Steps(), clock)


def run(one: Cutting, held: Path) -> None:
    """Begin the cut, and end it ten seconds later."""
    (begins, begin), (ends, end) = one.then(40.0)
    assert (begins, ends) == (15 / 40, 25 / 40)
    begin()
    assert held.exists()
    one.clock.sleep(10.0)
    end()
    assert not held.exists()


def test_the_feed_is_held_while_cut_and_the_done_mark_is_awaited(tmp_path: Path) -> None:
    """The report has the time from healing to the done mark."""
    one = cutting(tmp_path, settles_at_s=12.0)
    run(one, tmp_path / "cut")
    one.poll()
    assert one.counts() == "1 tentative, 0 confirmed, 0 replaced, 0 undone"
    report = one.end(Millis(0), lambda: None)
    assert report is not None
    assert report.right
    assert report.done_after_ms is not None
    assert 2_000 <= report.done_after_ms < 2_500
    assert one.counts() == "1 tentative, 1 confirmed, 0 replaced, 0 undone"


def test_what_is_never_settled_ends_the_wait(tmp_path: Path) -> None:
    """The report says so."""
    one = cutting(tmp_path, settles_at_s=1e9)
    run(one, tmp_path / "cut")
    report = one.end(Millis(0), lambda: None)
    assert report is not None
    assert not report.right
    assert report.open_results == 1
    assert one.clock.monotonic_s() >= 10.0 + DONE_WITHIN_S


def test_nothing_is_asked_while_the_broker_is_away(tmp_path: Path) -> None:
    """It is back after the time of the cut, whatever happens meanwhile; nothing is tentative."""
    held = cutting(tmp_path, settles_at_s=0.0)
    broker = Broker(held.clock)
    one = replace(held, cut=Cut(CutKind.BROKER, 10.0), line=broker)
    ((begins, cut_off),) = one.then(40.0)
    assert begins == 15 / 40
    cut_off()
    assert broker.states == [("away", 0.0), ("back", 10.0)]
    report = one.tally.report(one.cut, "tolls", 3_000, Millis(0))
    assert report is not None
    assert report.right
    assert as_lines(report)[0] == (
        "the broker did not answer for 10.0 s, and nothing was read or written meanwhile"
    )
