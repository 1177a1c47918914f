from collections.abc import Callable

import pytest

from pipeline.ids import Millis
from pipeline.tentative import view as views
from pipeline.tentative.view import (
    Event,
    OnDone,
    OnStable,
    OnTentative,
    OnUndo,
    TooManyTentativeError,
    View,
)
from tests.unit.tentative.made import generation, mark, result, undo


def stable(view: View, name: str, time: int, value: str = "v") -> tuple[Event, ...]:
    """A stable result is read."""
    return view.stable(name.encode(), value.encode(), Millis(time))


def on_stable(name: str, *, confirms: bool | None) -> tuple[Event, ...]:
    """A stable result counts."""
    return (OnStable(name.encode(), confirms),)


def test_a_stable_result_confirms_or_replaces_a_tentative_one() -> None:
    """A stable result confirms or replaces a tentative one."""
    view = View()
    assert view.tentative(result("a", 10)) == (OnTentative(result("a", 10)),)
    view.tentative(result("b", 10))
    assert stable(view, "a", 10) == on_stable("a", confirms=True)
    assert stable(view, "b", 10, "other") == on_stable("b", confirms=False)
    assert stable(view, "c", 10) == on_stable("c", confirms=None)
    assert view.promised(Millis(10)) == ()


def test_a_correction_confirms_nothing() -> None:
    """A correction confirms nothing."""
    view = View()
    view.tentative(result("a", 10))
    stable(view, "a", 10)
    assert stable(view, "a", 10, "corrected") == on_stable("a", confirms=None)
    assert view.stable(b"a", None, Millis(10)) == on_stable("a", confirms=None)


def test_a_stable_result_without_an_id_confirms_nothing() -> None:
    """A stable result without an id confirms nothing."""
    assert View().stable(None, b"v", Millis(10)) == (OnStable(None, None),)


def test_a_tentative_result_that_is_stable_already_is_ignored() -> None:
    """A tentative result that is stable already is ignored."""
    view = View()
    stable(view, "a", 10)
    view.known(b"b", Millis(10))
    assert view.tentative(result("a", 10)) == ()
    assert view.tentative(result("b", 10)) == ()
    assert view.tentative(undo("a", 10)) == ()


def test_a_tentative_result_that_the_boundary_has_passed_is_ignored() -> None:
    """A tentative result that the boundary has passed is ignored."""
    view = View(Millis(10))
    assert view.tentative(result("a", 10)) == ()
    assert view.tentative(result("b", 11)) != ()


def test_the_boundary_undoes_what_has_no_stable_result() -> None:
    """The boundary undoes what has no stable result."""
    view = View()
    for record in (result("b", 10), result("a", 10), result("c", 20)):
        view.tentative(record)
    assert view.promised(Millis(15)) == (OnUndo(undo("a", 10)), OnUndo(undo("b", 10)))
    assert view.tentative(undo("a", 10)) == ()
    assert view.promised(Millis(5)) == ()
    assert view.covered_ms == 15


def test_an_undo_record_undoes_before_the_boundary_is_read() -> None:
    """An undo record undoes before the boundary is read."""
    view = View()
    view.tentative(result("a", 10))
    assert view.tentative(undo("a", 10)) == (OnUndo(undo("a", 10)),)
    assert view.tentative(undo("a", 10)) == ()
    assert view.tentative(result("a", 10)) == ()
    assert view.promised(Millis(10)) == ()


def test_a_newer_generation_takes_the_place_of_an_older_one_only() -> None:
    """A newer generation takes the place of an older one only."""
    view = View()
    view.tentative(result("a", 10, of="1.2"))
    newer = result("a", 10, "new", of="2.1")
    assert view.tentative(newer) == (OnTentative(newer),)
    assert view.tentative(result("a", 10, "old", of="1.3")) == ()
    assert view.tentative(undo("a", 10, of="1.3")) == ()
    assert view.tentative(newer) == ()
    assert view.promised(Millis(10)) == (OnUndo(undo("a", 10, of="2.1")),)


def test_a_generation_is_done_once_when_the_boundary_has_passed_its_mark() -> None:
    """A generation is done once when the boundary has passed its mark."""
    view = View()
    view.tentative(result("a", 10))
    assert view.tentative(mark(15)) == ()
    assert view.tentative(mark(15, partition=1)) == ()
    assert view.promised(Millis(14)) == (OnUndo(undo("a", 10)),)
    assert view.promised(Millis(15)) == (OnDone(generation("1.1")),)
    assert view.tentative(mark(15, partition=2)) == ()
    assert view.tentative(result("b", 20)) == ()


HISTORY: tuple[Callable[[View], tuple[Event, ...]], ...] = (
    lambda view: view.tentative(result("a", 10)),
    lambda view: view.tentative(result("b", 10)),
    lambda view: view.tentative(result("c", 10)),
    lambda view: view.tentative(result("a", 10, "new", of="1.2")),
    lambda view: view.tentative(undo("b", 10)),
    lambda view: stable(view, "a", 10, "new"),
    lambda view: view.promised(Millis(10)),
    lambda view: view.tentative(undo("c", 10)),
    lambda view: view.tentative(mark(10)),
    lambda view: view.tentative(mark(10, of="1.2")),
)
"""What is read of an output while two generations come and are settled."""


@pytest.mark.parametrize("joined", range(len(HISTORY)))
def test_a_reader_may_join_in_the_middle_of_a_generation(joined: int) -> None:
    """It undoes only what it has reported, nothing stays open, and the generation is done once."""
    view = View()
    seen = [event for read in HISTORY[joined:] for event in read(view)]
    reported = {one.result.id for one in seen if isinstance(one, OnTentative)}
    undone = [one.undo.id for one in seen if isinstance(one, OnUndo)]
    assert sorted(undone) == sorted(reported - {b"a"})
    confirms = [one.confirms for one in seen if isinstance(one, OnStable)]
    reads_stable, reads_boundary = joined <= 5, joined <= 6
    assert confirms == ([True if b"a" in reported else None] if reads_stable else [])
    assert view.open_results == 0
    done = [one.generation for one in seen if isinstance(one, OnDone)]
    assert done == ([generation("1.1"), generation("1.2")] if reads_boundary else [])


def test_of_many_generations_the_older_ones_count_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many generations the older ones count as done."""
    monkeypatch.setattr(views, "MOST_GENERATIONS", 2)
    view = View(Millis(50))
    for number in range(1, 6):
        assert view.tentative(mark(50, of=f"1.{number}")) == (OnDone(generation(f"1.{number}")),)
    for number in range(1, 6):
        assert view.tentative(mark(50, of=f"1.{number}")) == ()


def test_more_tentative_results_than_it_keeps_are_an_error() -> None:
    """More tentative results than it keeps are an error."""
    view = View(most_open=2)
    for name in "ab":
        view.tentative(result(name, 10))
    with pytest.raises(TooManyTentativeError):
        view.tentative(result("c", 10))
    assert view.tentative(result("a", 10, "new")) != ()
    assert view.open_results == 2


def test_more_stable_ids_than_it_keeps_let_it_ignore_tentative_ones_up_to_them() -> None:
    """More stable ids than it keeps let it ignore tentative ones up to them."""
    view = View(most_open=2)
    for name in "abc":
        stable(view, name, 10)
    assert view.tentative(result("a", 10)) == ()
    assert view.tentative(result("d", 11)) != ()
