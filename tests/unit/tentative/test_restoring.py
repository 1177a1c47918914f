from pipeline.ids import Millis
from pipeline.tentative.records import TentativeRecord, digest
from pipeline.tentative.restoring import restored
from pipeline.tentative.settling import Settling
from tests.unit.tentative.made import generation, mark, result, undo


def after(*records: TentativeRecord, partitions: int = 1) -> Settling:
    """The settler after these records."""
    return restored(records, partitions).settling


def test_nothing_is_left_of_an_empty_topic() -> None:
    """Nothing is left of an empty topic."""
    settling = after()
    assert (settling.newest, settling.promised_ms, settling.first_open_ms) == (None, None, None)


def test_results_without_an_undo_are_open_and_their_forks_have_ended() -> None:
    """Results without an undo are open and their forks have ended."""
    settling = after(result("a", 10), result("b", 20), result("c", 30, of="1.2"), undo("a", 10))
    assert settling.newest == generation("1.2")
    assert settling.promised_ms == 10
    assert settling.first_open_ms == 20
    settling.stable(b"b", digest(b"v"), Millis(20))
    settled = settling.settle(Millis(40))
    assert (settled.confirmed, settled.undone) == (1, (undo("c", 30, of="1.2"),))
    assert settled.done == (generation("1.1"), generation("1.2"))
    assert settling.register([result("d", 50, of="1.2")]).accepted == ()


def test_what_has_a_mark_is_settled() -> None:
    """What has a mark is settled."""
    settling = after(result("a", 10), mark(15), result("a", 10))
    assert settling.open_results == 0
    assert settling.promised_ms == 15
    assert settling.settle(Millis(20)).done == ()


def test_marks_that_are_missing_in_a_partition_are_written_again() -> None:
    """Marks that are missing in a partition are written again."""
    settling = after(result("a", 10, partition=1), mark(15), partitions=2)
    settled = settling.settle(Millis(20))
    assert settled.undone == ()
    assert settled.done == (generation("1.1"),)


def test_an_undone_id_stays_undone() -> None:
    """An undone id stays undone."""
    settling = after(result("a", 10), undo("a", 10), result("a", 10))
    assert settling.open_results == 0


def test_the_newer_generation_of_an_id_is_open() -> None:
    """The newer generation of an id is open."""
    settling = after(result("a", 10, "old"), result("a", 10, "new", of="2.1"), result("a", 10))
    assert settling.settle(Millis(10)).undone == (undo("a", 10, of="2.1"),)


def test_of_too_many_results_the_last_ones_are_kept() -> None:
    """Of too many results the last ones are kept."""
    found = restored([result(f"{time:02}", time) for time in range(20)], 1, most_open=4)
    assert found.forgotten == 16
    assert found.settling.open_results == 4
    assert found.settling.first_open_ms == 16
    assert found.settling.room == 0


def test_results_of_marked_generations_take_no_room() -> None:
    """Results of marked generations take no room."""
    records: list[TentativeRecord] = []
    for number in range(1, 9):
        of = f"1.{number}"
        records += [result(f"{number}", 10 * number, of=of), mark(10 * number, of=of)]
    found = restored(records, 1, most_open=2)
    assert (found.forgotten, found.settling.open_results) == (0, 0)
