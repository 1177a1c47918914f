"""Figures of an input that is cut."""

import json
from dataclasses import replace

import pytest

from benchmarks.availability_figures import (
    HEADER,
    Cut,
    CutFigures,
    History,
    Normal,
    Phase,
    as_json,
    figures,
    normal,
    plotted,
)
from pipeline.reader.results import Stable, Tentative, Undone

CUT = Cut("process", 2.0, 1_000)
USUAL = Normal(100.0, 200.0, 50, 0)
PHASE = Phase(cut_ms=9_700.0, healed_ms=11_700.0, settled_ms=12_600.0, until_ms=20_000.0)


def tentative(name: str, end_ms: int, generation: str = "1.1") -> Tentative:
    """A tentative result."""
    return Tentative(name.encode(), None, b"early", end_ms, 0, generation)


def stable(name: str | None, end_ms: int, *, confirms: bool | None, offset: int = 0) -> Stable:
    """A stable result."""
    result_id = None if name is None else name.encode()
    return Stable(result_id, None, b"exact", end_ms, 0, offset, confirms, None)


def one_cut() -> History:
    """Windows that end at 9, 10, 11, 12 and 13 s; the middle ones are tentative first."""
    history = History()
    history.stable(stable("a", 9_000, confirms=None), 9_100.0)
    history.tentative(tentative("b", 10_000), 10_900.0)
    history.tentative(tentative("gone", 10_000), 10_900.0)
    history.tentative(tentative("c", 11_000), 11_200.0)
    history.tentative(tentative("d", 12_000), 12_150.0)
    history.stable(stable("b", 10_000, confirms=False), 12_300.0)
    history.stable(stable("c", 11_000, confirms=True), 12_310.0)
    history.undone(Undone(b"gone", None, 10_000, 0, "1.1", None), 12_320.0)
    history.stable(stable("d", 12_000, confirms=True), 12_330.0)
    history.done["1.1"] = 12_400.0
    history.stable(stable("e", 13_000, confirms=None), 13_110.0)
    return history


def test_a_result_is_new_when_the_first_with_its_id_is_read() -> None:
    """Its latency is that of the tentative one, less the usual one."""
    found = figures(CUT, PHASE, one_cut(), USUAL)
    assert (found.new_ms, found.after_ms) == (800.0, 50.0)
    assert found.delays == ((300, 800.0), (1_300, 100.0), (2_300, 50.0))
    assert found.counts == {"tentative": 4, "confirmed": 2, "replaced": 1, "undone": 1}
    assert (found.stable_ms, found.done_ms) == (610.0, 700.0)
    assert found.within is True
    assert found.right


def test_without_tentative_results_those_that_were_held_back_are_late() -> None:
    """As under `suspend`: nothing is done, and the bound is not kept."""
    history = History()
    history.stable(stable("b", 10_000, confirms=None), 12_300.0)
    history.stable(stable("c", 11_000, confirms=None), 12_300.0)
    found = figures(CUT, PHASE, history, USUAL)
    assert (found.new_ms, found.done_ms, found.within) == (2_200.0, None, False)
    assert found.stable_ms == 600.0


def test_a_cut_without_a_result_says_nothing_of_the_bound() -> None:
    """It is not called kept."""
    found = figures(CUT, PHASE, History(), USUAL)
    assert (found.new_ms, found.after_ms, found.within) == (None, None, None)


def test_the_bound_is_for_windows_after_healing_too() -> None:
    """Until everything is settled."""
    history = one_cut()
    late = Phase(PHASE.cut_ms, PHASE.healed_ms, 13_500.0, PHASE.until_ms)
    history.stable(stable("f", 13_400, confirms=None), 14_600.0)
    found = figures(CUT, late, history, USUAL)
    assert (found.after_ms, found.within) == (1_100.0, False)


@pytest.mark.parametrize(("seconds", "needless"), [(0.89, True), (0.9, False)])
def test_tentative_results_of_a_short_cut_are_needless(seconds: float, *, needless: bool) -> None:
    """Shorter than nine tenths of the bound."""
    found = figures(replace(CUT, seconds=seconds), PHASE, one_cut(), USUAL)
    assert found.needless is needless
    assert ("4!" in str(found)) is needless
    none = figures(replace(CUT, seconds=seconds), PHASE, History(), USUAL)
    assert not none.needless


def test_everything_is_settled_after_the_done_mark_and_a_later_stable_result() -> None:
    """Each of the conditions is needed."""
    history = History()
    history.stable(stable("a", 9_000, confirms=None), 9_100.0)
    assert not history.settled(9_000)
    assert history.settled(8_999)
    history.tentative(tentative("b", 10_000), 10_900.0)
    assert not history.settled(8_999)
    history.stable(stable("b", 10_000, confirms=True), 12_000.0)
    assert not history.settled(8_999)
    history.done["1.1"] = 12_100.0
    assert history.settled(9_999)


def test_another_tentative_result_takes_the_place_of_the_first() -> None:
    """It is counted once, and both generations need a done mark."""
    history = History()
    history.tentative(tentative("b", 10_000, "1.1"), 10_900.0)
    history.tentative(tentative("b", 10_000, "1.2"), 11_900.0)
    history.stable(stable("b", 10_000, confirms=True), 12_000.0)
    history.done["1.2"] = 12_100.0
    assert len(history.results) == 2
    assert not history.settled(9_000)


def test_normal_latencies_are_of_windows_in_the_time() -> None:
    """Tentative results among them are counted."""
    history = one_cut()
    assert normal(history.results, 8_500.0, 9_500.0) == Normal(100.0, 100.0, 1, 0)
    found = normal(history.results, 8_500.0, 10_500.0)
    assert found == Normal(900.0, 900.0, 3, 2)
    assert "2 tentative" in str(found)
    assert normal(history.results, 1_000.0, 2_000.0) is None


def test_results_without_ids_are_different_results() -> None:
    """They are known by their places."""
    history = History()
    for offset in range(3):
        history.stable(stable(None, 9_000, confirms=None, offset=offset), 9_100.0 + offset)
    found = normal(history.results, 8_000.0, 9_500.0)
    assert found is not None
    assert found.results == 3


def test_what_is_wrong_is_in_the_line() -> None:
    """A line has the columns of the header."""
    found = figures(CUT, PHASE, one_cut(), USUAL)
    assert " ".join(str(found).split()) == "process 2 0.80 0.05 yes 4 2 1 1 0.61 0.70 exact"
    assert str(found).index("exact") == HEADER.index("windows")
    wrong = replace(found, lost=1, wrong=2)
    assert str(wrong).endswith("1 LOST, 2 WRONG")
    assert not wrong.right
    opened = figures(CUT, replace(PHASE, settled_ms=None), one_cut(), USUAL)
    assert str(opened).endswith("exact, NOT SETTLED")
    assert not opened.right


def test_the_json_has_what_the_table_has() -> None:
    """It can be written, and says what is right."""
    found: CutFigures = figures(CUT, PHASE, one_cut(), USUAL)
    told = json.loads(json.dumps(as_json(1_000, 50.0, {"process": USUAL}, [found])))
    assert told["normal"]["process"]["p50"] == 100.0
    (cut,) = told["cuts"]
    assert cut["cut"] == {"policy": "process", "seconds": 2.0, "bound_ms": 1_000}
    assert (cut["new_ms"], cut["within"], cut["right"]) == (800.0, True, True)


def test_a_picture_has_the_time_of_one_cut() -> None:
    """From five seconds before it until the next one."""
    history = one_cut()
    history.stable(stable("later", 20_000, confirms=None), 20_100.0)
    seen = plotted(PHASE, history)
    assert [one.at_ms for one in seen][:2] == [-600, 1_200]
    assert [one.outcome for one in seen][-1] == "stable"
    assert len(seen) == 10
