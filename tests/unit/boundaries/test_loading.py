"""An input with `load: first`: event time waits until all records present at the start are read."""

from dataclasses import replace

from pipeline.boundaries.release import STEP_GROWTH_MAX, WAITING_STEP_MAX_MS
from pipeline.markers.commit_marker import CommitMarker
from pipeline.network.boxes.shape import Joined
from pipeline.network.model import Load
from tests.unit.boundaries.support import CARS, at, lane, marker, positions
from tests.unit.boundaries.test_lane_time import TABLE, Observed

FIRST = replace(TABLE, load=Load.FIRST, idle_after_ms=1_000)


def _loading(table: int, progress: int) -> CommitMarker:
    end = {**positions(CARS, 5), **positions(FIRST, table)}
    return marker(end, progress={at(CARS, 0): 90_000, at(FIRST, 0): progress})


def test_a_loading_input_has_no_boundary_before_all_is_read() -> None:
    """Its records may be in any order: the second batch has earlier ones than the first."""
    seen = Observed(lane(CARS, FIRST), _loading(0, 0))
    assert seen.watch(2_000, cars=(5,)) == [], "the end of the table is not read yet"
    seen.answer(cars=(5,), table=(4,))
    seen.finish(_loading(2, 80_000))
    assert seen.watch(2_000, cars=(5,), table=(4,)) == []
    held = seen.time.held
    assert held is not None
    assert (held.stream, held.by_ms) == (FIRST.stream, None)
    seen.finish(_loading(4, 80_000))
    assert seen.move() == 80_000 - 5_001
    assert seen.watch(2_000, cars=(5,), table=(4,))[-1] == 90_000 - 5_001


def test_rows_in_an_open_transaction_are_part_of_the_load() -> None:
    """They are in the log at the start, behind the last stable offset."""
    seen = Observed(lane(CARS, FIRST), _loading(0, 0))
    assert seen.watch(2_000, {at(FIRST, 0): 4}, cars=(5,), table=(0,)) == []
    assert seen.watch(2_000, cars=(5,), table=(5,)) == [], "committed, and nothing of it read"
    seen.finish(_loading(2, 80_000))
    assert seen.watch(2_000, cars=(5,), table=(5,)) == []
    seen.finish(_loading(5, 80_000))
    assert seen.move() == 80_000 - 5_001


def test_an_aborted_transaction_is_loaded_once_it_is_passed() -> None:
    """A batch is planned up to the last stable offset, which is beyond the aborted records."""
    end = {**positions(CARS, 5), **positions(FIRST, 0)}
    seen = Observed(lane(CARS, FIRST), marker(end, progress={at(CARS, 0): 90_000}))
    assert seen.watch(2_000, {at(FIRST, 0): 4}, cars=(5,), table=(0,)) == []
    seen.answer(cars=(5,), table=(5,))
    assert seen.move() is None
    passed = {**positions(CARS, 5), **positions(FIRST, 5)}
    seen.finish(marker(passed, progress={at(CARS, 0): 90_000}))
    assert seen.watch(2_000, cars=(5,), table=(5,)) == [90_000 - 5_001]


def test_records_written_during_the_load_are_no_part_of_it() -> None:
    """Otherwise a table with constant writes would block event time for ever."""
    seen = Observed(lane(CARS, FIRST), _loading(0, 0))
    seen.answer(cars=(5,), table=(4,))
    seen.answer(cars=(5,), table=(9,))
    seen.finish(_loading(4, 80_000))
    assert seen.move() == 80_000 - 5_001


def test_an_input_is_loaded_first_at_each_start() -> None:
    """Records written while the lane was stopped may be in any order, too."""
    seen = Observed(lane(CARS, FIRST), _loading(4, 80_000))
    assert seen.move() is None
    assert seen.watch(2_000, cars=(5,), table=(6,)) == []
    seen.finish(_loading(6, 85_000))
    assert seen.move() == 85_000 - 5_001


def test_an_empty_input_is_loaded() -> None:
    """There is nothing to wait for."""
    end = {**positions(CARS, 5), **positions(FIRST, 0)}
    seen = Observed(lane(CARS, FIRST), marker(end, progress={at(CARS, 0): 90_000}))
    assert seen.watch(2_000, cars=(5,), table=(0,)) == [90_000 - 5_001]


def test_records_read_during_the_load_are_emitted_in_steps() -> None:
    """The first step begins at the event time that the first batch would have had."""
    hour = 3_600_000

    def read(batch: int) -> CommitMarker:
        end = {**positions(CARS, batch), **positions(FIRST, batch)}
        ms = {at(CARS, 0): hour * batch, at(FIRST, 0): 100 * hour}
        return marker(end, batch=batch, progress=ms if batch else {})

    seen = Observed(lane(CARS, FIRST, shape=Joined(24 * hour, waits=True)), read(0))
    for batch in range(1, 10):
        seen.answer(cars=(9,), table=(9,))
        assert seen.move() is None
        seen.finish(read(batch))
    assert seen.move() == hour - 5_001 + WAITING_STEP_MAX_MS
    assert seen.move() == hour - 5_001 + WAITING_STEP_MAX_MS * (1 + STEP_GROWTH_MAX)
    assert seen.time.steps_ms == 8 * hour - WAITING_STEP_MAX_MS
