import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis
from pipeline.tentative.records import TentativeResult, digest
from pipeline.tentative.settling import Settled, Settling
from tests.unit.tentative.made import generation, result, undo


def stable(settling: Settling, name: str, time: int, value: str = "v") -> None:
    """A stable result is read."""
    settling.stable(name.encode(), digest(value.encode()), Millis(time))


def settle(settling: Settling, promised: int) -> Settled:
    """A promise is reached."""
    return settling.settle(Millis(promised))


def registered(*results: TentativeResult, most: int = 100) -> Settling:
    """A settler with results, all of them accepted."""
    settling = Settling(most)
    assert settling.register(results).accepted == results
    return settling


def test_results_are_confirmed_replaced_or_undone() -> None:
    """Results are confirmed replaced or undone."""
    settling = registered(result("a", 10), result("b", 10), result("c", 20), result("d", 11))
    stable(settling, "a", 10)
    stable(settling, "b", 10, "another")
    settled = settle(settling, 15)
    assert (settled.confirmed, settled.replaced) == (1, 1)
    assert settled.undone == (undo("d", 11),)
    assert settling.open_results == 1
    assert settle(settling, 15) == Settled(0, 0, 0, (), (), Millis(15))


def test_a_generation_is_done_when_it_has_ended_and_the_promise_has_passed_it() -> None:
    """A generation is done when it has ended and the promise has passed it."""
    settling = registered(result("a", 10), result("b", 20))
    stable(settling, "a", 10)
    stable(settling, "b", 20)
    assert settle(settling, 20).done == ()
    settling.end(generation("1.1"))
    assert settle(settling, 20).done == (generation("1.1"),)
    assert settle(settling, 30).done == ()
    settling.end(generation("1.1"))
    assert settle(settling, 30).done == ()


def test_a_generation_is_not_done_before_the_promise_has_passed_its_newest_result() -> None:
    """A generation is not done before the promise has passed its newest result."""
    settling = registered(result("a", 10), result("b", 20))
    stable(settling, "b", 20)
    settling.end(generation("1.1"))
    assert settle(settling, 15).done == ()
    assert settling.unsettled == (generation("1.1"),)
    assert settle(settling, 20).done == (generation("1.1"),)
    assert not settle(settling, 20).done


def test_a_generation_without_results_is_done_when_it_has_ended() -> None:
    """A generation without results is done when it has ended."""
    settling = Settling()
    settling.end(generation("1.1"))
    assert settle(settling, 0).done == (generation("1.1"),)


def test_results_of_what_is_settled_are_refused() -> None:
    """Results of what is settled are refused."""
    settling = Settling()
    settle(settling, 10)
    late, new = result("a", 10), result("b", 11)
    found = settling.register([late, new])
    assert (found.accepted, found.refused) == ((new,), (late,))


def test_a_result_that_is_stable_already_is_refused() -> None:
    """A result that is stable already is refused."""
    settling = Settling()
    settle(settling, 0)
    stable(settling, "a", 10)
    assert settling.register([result("a", 10)]).refused == (result("a", 10),)
    assert settle(settling, 10).undone == ()


def test_results_of_a_fork_that_has_ended_are_refused() -> None:
    """Results of a fork that has ended are refused."""
    settling = registered(result("a", 10))
    settling.end(generation("1.1"))
    assert settling.register([result("b", 10)]).refused == (result("b", 10),)
    settle(settling, 10)
    assert settling.register([result("c", 20)]).refused == (result("c", 20),)


def test_a_newer_generation_takes_the_place_of_an_older_one() -> None:
    """A newer generation takes the place of an older one."""
    settling = registered(result("a", 10, "old"), result("a", 10, "new", of="1.2"))
    stable(settling, "a", 10, "new")
    settled = settle(settling, 10)
    assert (settled.superseded, settled.confirmed, settled.undone) == (1, 1, ())


def test_an_older_generation_takes_no_place() -> None:
    """An older generation takes no place."""
    settling = registered(result("b", 10), result("a", 10, "new", of="1.2"))
    older = result("a", 10, "old")
    assert settling.register([older]).refused == (older,)
    assert settling.register([result("c", 10, of="1.1")]).refused == ()
    assert settling.register([result("d", 10, of="0.9")]).accepted == ()


def test_the_last_of_two_results_of_one_generation_counts() -> None:
    """The last of two results of one generation counts."""
    settling = registered(result("a", 10, "old"), result("a", 10, "new"))
    stable(settling, "a", 10, "new")
    settled = settle(settling, 10)
    assert (settled.superseded, settled.confirmed, settled.replaced) == (0, 1, 0)


def test_the_promise_never_falls() -> None:
    """The promise never falls."""
    settling = registered(result("a", 10))
    assert settle(settling, 0).promised_ms == 0
    assert settle(settling, -5).promised_ms == 0
    assert settling.promised_ms == 0


def test_there_is_room_for_so_many() -> None:
    """There is room for so many."""
    settling = registered(result("a", 10), result("b", 10), most=3)
    assert settling.room == 1
    with pytest.raises(BrokenInvariantError):
        settling.register([result("c", 10), result("d", 10)])
    assert settling.open_results == 2
    stable(settling, "a", 10)
    assert settling.room == 2


def test_stable_ids_that_are_too_many_refuse_all_results_up_to_the_last_of_them() -> None:
    """Stable ids that are too many refuse all results up to the last of them."""
    settling = Settling(2)
    for name, time in (("a", 10), ("b", 30), ("c", 20)):
        stable(settling, name, time)
    assert settling.register([result("a", 10), result("x", 30)]).accepted == ()
    assert settling.register([result("y", 31)]).refused == ()


def test_the_first_open_result_is_named() -> None:
    """The first open result is named."""
    settling = registered(result("a", 10), result("b", 20))
    assert settling.first_open_ms == 10
    stable(settling, "a", 10)
    assert settling.first_open_ms == 20
    settle(settling, 20)
    assert settling.first_open_ms is None
