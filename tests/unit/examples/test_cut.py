from dataclasses import replace

import pytest

from pipeline.examples.cut import Cut, CutKind, CutReport, Outcome, Seen, Tally, as_data, as_lines
from pipeline.ids import Millis
from pipeline.reader.results import Stable, Tentative, Undone

CUT = Cut(CutKind.PARTITION, 20.0)
UNTIL_MS = Millis(45_000)


class Scene:
    """A tally whose clock is set by hand, in seconds."""

    def __init__(self) -> None:
        self.at_s = 0.0
        self.tally = Tally(lambda: Millis(round(self.at_s * 1_000)))

    def tentative(self, at_s: float, name: bytes, event_s: float, generation: str = "1.1") -> None:
        """A tentative result is read."""
        self.at_s = at_s
        event_ms = round(event_s * 1_000)
        self.tally.on_tentative(Tentative(name, None, b"", event_ms, 0, generation))

    def stable(
        self, at_s: float, name: bytes, event_s: float, *, confirms: bool | None = None
    ) -> None:
        """A stable result is read."""
        self.at_s = at_s
        event_ms = round(event_s * 1_000)
        self.tally.on_stable(Stable(name, None, b"", event_ms, 0, 0, confirms, None))

    def undone(self, at_s: float, name: bytes) -> None:
        """An undo is read."""
        self.at_s = at_s
        self.tally.on_undo(Undone(name, None, 0, 0, "1.1", None))

    def done(self, at_s: float, generation: str = "1.1") -> None:
        """A done mark is read."""
        self.at_s = at_s
        self.tally.on_done(generation)

    def report(self, cut_s: float = 15.0, healed_s: float = 35.0) -> CutReport:
        """The report of a cut at these times."""
        self.tally.cut_ms, self.tally.healed_ms = (
            Millis(round(cut_s * 1_000)),
            Millis(round(healed_s * 1_000)),
        )
        found = self.tally.report(CUT, "tolls", 3_000, UNTIL_MS)
        assert found is not None
        return found


def whole() -> Scene:
    """A window before the cut, two while cut, one after it."""
    scene = Scene()
    scene.stable(14.0, b"a", 8.0)
    scene.tentative(19.0, b"b", 10.0)
    scene.tentative(19.0, b"c", 10.0)
    scene.tentative(28.0, b"d", 20.0)
    scene.stable(37.0, b"b", 10.0, confirms=True)
    scene.stable(37.0, b"c", 10.0, confirms=False)
    scene.undone(38.0, b"d")
    scene.stable(47.0, b"e", 40.0)
    scene.done(39.5)
    return scene


def test_a_settled_run_is_right() -> None:
    """Each tentative result has one outcome; delays are measured to the first result of an id."""
    report = whole().report()
    assert report.right
    assert [report.count(one) for one in Outcome] == [3, 2, 1, 1, 1, 1]
    assert (report.usual_ms, report.longest_ms, report.done_after_ms) == (6_000, 9_000, 4_500)
    assert as_lines(report) == (
        "partition 0 of the input was cut for 20.0 s, and sent after that",
        "3 tentative tolls: 1 confirmed, 1 replaced, 1 undone, 0 not settled",
        "longest delay of tolls: 6.0 s before, 9.0 s while cut (bound: 3 s more)",
        "done marks: 1 of 1; the last one 4.5 s after the cut had ended",
    )


def test_a_later_generation_is_not_counted_again() -> None:
    """The id counts once; its delay is that of the first one; both generations must be done."""
    scene = whole()
    scene.tentative(29.0, b"f", 20.0, "1.1")
    scene.tentative(33.0, b"f", 20.0, "1.2")
    scene.stable(37.0, b"f", 20.0, confirms=True)
    assert not scene.tally.settled(UNTIL_MS)
    scene.done(40.0, "1.2")
    assert scene.tally.settled(UNTIL_MS)
    report = scene.report()
    assert (report.count(Outcome.TENTATIVE), report.generations, report.done) == (4, 2, 2)
    assert (report.longest_ms, report.done_after_ms) == (9_000, 5_000)


def test_results_that_come_only_after_the_cut_count_as_delayed() -> None:
    """A result that was due while cut, and was not there, is not forgotten."""
    scene = whole()
    scene.stable(37.0, b"g", 20.0)
    assert scene.report().longest_ms == 17_000


def test_without_results_there_are_no_delays() -> None:
    """The lines say so; only a cut of all may have no tentative results."""
    report = Scene().report()
    assert not report.right
    assert as_lines(report)[2:] == (
        "longest delay of tolls: none before, none while cut (bound: 3 s more)",
        "done marks: 0 of 0; the last one none after the cut had ended",
        "the tentative results are NOT as they have to be",
    )
    silent = replace(report, cut=Cut(CutKind.PRODUCER, 20.0))
    assert silent.right
    assert as_lines(silent)[0].startswith("the whole input was cut")


@pytest.mark.parametrize("fault", ["open", "no mark"])
def test_what_is_not_settled_is_wrong(fault: str) -> None:
    """An open result, or a generation without a done mark."""
    scene = whole()
    if fault == "open":
        scene.tentative(34.0, b"h", 30.0)
    else:
        scene.tentative(34.0, b"h", 30.0, "1.2")
        scene.stable(36.0, b"h", 30.0, confirms=True)
    assert not scene.tally.settled(UNTIL_MS)
    assert not scene.report().right


def test_results_after_the_checked_time_need_not_be_settled() -> None:
    """When the feed has ended, event time stands still before them."""
    scene = whole()
    scene.tentative(58.0, b"i", 50.0, "1.2")
    assert scene.tally.settled(UNTIL_MS)
    assert not scene.tally.settled(Millis(50_000))
    report = scene.report()
    assert report.right
    assert (report.open_results, report.generations) == (0, 1)


def test_results_without_an_id_count_by_their_place() -> None:
    """They have no tentative ones."""
    scene = Scene()
    scene.at_s = 14.0
    for offset in range(2):
        scene.tally.on_stable(Stable(None, None, b"", 8_000, 0, offset, None, None))
    assert scene.report().count(Outcome.STABLE) == 2


def test_without_a_cut_there_is_no_report() -> None:
    """A run may end before."""
    assert Scene().tally.report(CUT, "tolls", 3_000, UNTIL_MS) is None


def test_the_data_have_all_numbers() -> None:
    """And everything that was seen, with its time since the cut began."""
    data = as_data(replace(whole().report(), seen=(Seen(Millis(16_000), Outcome.TENTATIVE),)))
    assert data == {
        "what": "partition",
        "name": "tolls",
        "bound_ms": 3_000,
        "cut_ms": 20_000,
        "tentative": 1,
        "stable": 0,
        "confirmed": 0,
        "replaced": 0,
        "undone": 0,
        "open": 0,
        "generations": 1,
        "done": 1,
        "longest_before_ms": 6_000,
        "longest_ms": 9_000,
        "done_after_ms": 4_500,
        "seen": [[1_000, "tentative"]],
    }
