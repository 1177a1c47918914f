"""An input that is loaded first: event time waits until all is read that it holds at a start."""

from dataclasses import replace

from pipeline.boundaries.release import WAITING_STEP_MAX_MS
from pipeline.markers.commit_marker import CommitMarker
from pipeline.network.boxes.shape import Joined
from pipeline.network.model import Load
from tests.unit.boundaries.support import CARS, at, lane, marker, positions
from tests.unit.boundaries.test_lane_time import TABLE, Observed

FIRST = replace(TABLE, load=Load.FIRST, idle_after_ms=1_000)


def _loading(table: int, progress: int) -> CommitMarker:
    end = {**positions(CARS, 5), **positions(FIRST, table)}
    return marker(end, progress={at(CARS, 0): 90_000, at(FIRST, 0): progress})


def test_an_input_that_is_loaded_first_says_nothing_before_all_is_read() -> None:
    """Its records may lie in any order: the second batch has earlier ones than the first."""
    seen = Observed(lane(CARS, FIRST), _loading(0, 0))
    assert seen.watch(2_000, cars=(5,)) == [], "not told yet where the table ends"
    seen.answer(cars=(5,), table=(4,))
    seen.finish(_loading(2, 80_000))
    assert seen.watch(2_000, cars=(5,), table=(4,)) == []
    held = seen.time.held
    assert held is not None
    assert (held.stream, held.by_ms) == (FIRST.stream, None)
    seen.finish(_loading(4, 80_000))
    assert seen.told() == 80_000 - 5_001
    assert seen.watch(2_000, cars=(5,), table=(4,))[-1] == 90_000 - 5_001


def test_rows_in_an_open_transaction_are_part_of_what_is_loaded() -> None:
    """They lie there at the start, behind the last stable offset."""
    seen = Observed(lane(CARS, FIRST), _loading(0, 0))
    assert seen.watch(2_000, {at(FIRST, 0): 4}, cars=(5,), table=(0,)) == []
    assert seen.watch(2_000, cars=(5,), table=(5,)) == [], "committed, and nothing of it read"
    seen.finish(_loading(2, 80_000))
    assert seen.watch(2_000, cars=(5,), table=(5,)) == []
    seen.finish(_loading(5, 80_000))
    assert seen.told() == 80_000 - 5_001


def test_an_aborted_transaction_is_loaded_once_it_is_passed() -> None:
    """A batch is planned up to the last stable offset, which lies beyond what was aborted."""
    end = {**positions(CARS, 5), **positions(FIRST, 0)}
    seen = Observed(lane(CARS, FIRST), marker(end, progress={at(CARS, 0): 90_000}))
    assert seen.watch(2_000, {at(FIRST, 0): 4}, cars=(5,), table=(0,)) == []
    seen.answer(cars=(5,), table=(5,))
    assert seen.told() is None
    passed = {**positions(CARS, 5), **positions(FIRST, 5)}
    seen.finish(marker(passed, progress={at(CARS, 0): 90_000}))
    assert seen.watch(2_000, cars=(5,), table=(5,)) == [90_000 - 5_001]


def test_what_comes_while_an_input_is_loaded_is_no_part_of_it() -> None:
    """Else a table that is written all the time would hold everything back for ever."""
    seen = Observed(lane(CARS, FIRST), _loading(0, 0))
    seen.answer(cars=(5,), table=(4,))
    seen.answer(cars=(5,), table=(9,))
    seen.finish(_loading(4, 80_000))
    assert seen.told() == 80_000 - 5_001


def test_an_input_is_loaded_first_at_each_start() -> None:
    """What came while the lane was away may lie in any order, too."""
    seen = Observed(lane(CARS, FIRST), _loading(4, 80_000))
    assert seen.told() is None
    assert seen.watch(2_000, cars=(5,), table=(6,)) == []
    seen.finish(_loading(6, 85_000))
    assert seen.told() == 85_000 - 5_001


def test_an_input_that_is_empty_is_loaded() -> None:
    """There is nothing to wait for."""
    end = {**positions(CARS, 5), **positions(FIRST, 0)}
    seen = Observed(lane(CARS, FIRST), marker(end, progress={at(CARS, 0): 90_000}))
    assert seen.watch(2_000, cars=(5,), table=(0,)) == [90_000 - 5_001]


def test_what_was_read_meanwhile_is_let_go_in_steps() -> None:
    """The first advance begins where event time would have been after the first batch."""
    hour = 3_600_000

    def read(batch: int) -> CommitMarker:
        end = {**positions(CARS, batch), **positions(FIRST, batch)}
        ms = {at(CARS, 0): hour * batch, at(FIRST, 0): 100 * hour}
        return marker(end, batch=batch, progress=ms if batch else {})

    seen = Observed(lane(CARS, FIRST, shape=Joined(24 * hour, waits=True)), read(0))
    for batch in range(1, 10):
        seen.answer(cars=(9,), table=(9,))
        assert seen.told() is None
        seen.finish(read(batch))
    assert seen.told() == hour - 5_001 + WAITING_STEP_MAX_MS
    assert seen.time.steps_ms == 8 * hour - WAITING_STEP_MAX_MS
