"""Since when event time is wanted, and what holds it back."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.deadline import (
    LEVEL_LEAST_MS,
    Held,
    Since,
    Wanted,
    Watch,
    held,
    look,
    wanted,
    wanted_before,
)
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.external import StreamBoundary
from pipeline.boundaries.lane_time import LaneTime, Steered, begin, input_times
from pipeline.boundaries.profile import DerivedInput, ExternalInput
from pipeline.boundaries.release import next_move
from pipeline.ids import Millis, Offset, SteadyMillis
from pipeline.network.boxes.shape import Shape
from tests.unit.boundaries.situations import (
    STATEFUL,
    TEN,
    Situation,
    ends_of,
    in_force,
    promising,
    situation,
)
from tests.unit.boundaries.support import (
    SPEED,
    START_MS,
    STRICT_CARS,
    at,
    lane,
    marker,
    positions,
)

SOON = replace(STRICT_CARS, lateness_ms=0)
BOUND_MS = 1_000
BOTH = frozenset({at(SOON, 0), at(SOON, 1)})


def running(
    progress: tuple[int | None, ...],
    event_ms: int | None,
    *inputs: ExternalInput | DerivedInput,
    shape: Shape = TEN,
) -> LaneTime:
    """A lane that has read everything, with the progress of the partitions of `SOON`."""
    end = positions(SOON, *(5 for _ in progress))
    first = marker(end) if event_ms is None else in_force(shape, end, event_ms)
    known = {at(SOON, n): Millis(ms) for n, ms in enumerate(progress) if ms is not None}
    first = replace(first, progress=known)
    return begin(lane(*(inputs or (SOON,)), shape=shape), first, {}, START_MS)


def all_read(now_ms: int = START_MS, *ends: int) -> Ends:
    """The ends of `SOON`, which were read."""
    return replace(ends_of((SOON, ends or (5, 5))), read_at_ms=SteadyMillis(now_ms))


def later(ms: int) -> SteadyMillis:
    """A steady time."""
    return SteadyMillis(START_MS + ms)


# --- what is wanted -------------------------------------------------------------------------------


def test_the_fastest_partition_decides_what_is_wanted() -> None:
    """The other one is missing, as far as it has not passed that."""
    found = wanted(running((100, 40), 9), all_read(), START_MS)
    assert found is not None
    assert found == Wanted(Millis(99), {at(SOON, 0): Millis(99), at(SOON, 1): Millis(39)})
    assert found.missing(Millis(40)) == {at(SOON, 1)}
    assert not found.missing(Millis(39))


def test_a_partition_that_never_had_a_record_is_a_cause() -> None:
    """If silence means missing records."""
    found = wanted(running((100, None), None), all_read(), START_MS)
    assert found is not None
    assert found.missing(Millis(0)) == {at(SOON, 1)}


def test_nothing_is_wanted_before_a_record_came() -> None:
    """No partition has passed anything."""
    assert wanted(running((None, None), None), all_read(), START_MS) is None


def test_the_lateness_of_inputs_is_no_delay() -> None:
    """An input with a lateness of 30 s is always as far behind one with none."""
    slow = replace(STRICT_CARS, stream=SPEED.stream, topic=SPEED.topic, lateness_ms=30_000)
    time = running((100_000, 100_000), 9, SOON, slow)
    progress = {**time.progress, at(slow, 0): Millis(100_000), at(slow, 1): Millis(60_000)}
    place = {**time.positions, at(slow, 0): Offset(1), at(slow, 1): Offset(1)}
    time = replace(time, progress=progress, positions=place)
    found = wanted(time, ends_of((SOON, (5, 5)), (slow, (1, 1))), START_MS)
    assert found is not None
    assert found.event_ms == 69_999
    assert found.missing(found.event_ms) == {at(slow, 1)}


def test_a_derived_input_holds_back_what_is_wanted_and_is_no_cause() -> None:
    """What is missing there is missing at its writer."""
    time = running((100, 40), 9, SOON, SPEED)
    time = replace(time, positions={**time.positions, **positions(SPEED, 3, 3)})
    ends = ends_of((SOON, (5, 5)), (SPEED, (3, 3)))
    assert wanted(time, ends, START_MS) is None
    found = promising(Situation(time, None, ends), 50, 3, 3).time  # type: ignore[arg-type]
    found_now = wanted(found, ends, START_MS)
    assert found_now is not None
    assert found_now.event_ms == 50
    assert found_now.missing(found_now.event_ms) == {at(SOON, 1)}


@given(
    st.lists(st.one_of(st.none(), st.integers(20, 500)), min_size=1, max_size=3),
    st.sampled_from(STATEFUL),
)
def test_without_the_causes_event_time_is_what_is_wanted(
    progress: list[int | None], shape: Shape
) -> None:
    """So a fork that leaves them out reaches it."""
    time = running(tuple(progress), 9, shape=shape)
    ends = all_read(START_MS, *(5 for _ in progress))
    found = wanted(time, ends, START_MS)
    if found is None:
        assert all(one is None for one in progress)
        return
    aside = replace(time, steered=Steered(found.missing(found.event_ms)))
    left = input_times(aside, ends, START_MS)[SOON.stream]
    assert left.boundary == StreamBoundary(found.event_ms)
    whole = wanted(aside, ends, START_MS)
    assert whole is not None
    assert not whole.missing(whole.event_ms)


# --- since when -----------------------------------------------------------------------------------


def watched(times: list[tuple[int, LaneTime]]) -> Watch:
    """A watch after looks at these milliseconds; all is read."""
    watch = Watch(BOUND_MS)
    for ms, time in times:
        watch = look(watch, time, all_read(later(ms)), later(ms))
    return watch


def test_results_are_held_since_the_fastest_partition_has_passed_them() -> None:
    """Not since it passed anything: a window that has not ended holds nothing."""
    open_one, ended = running((18, 5), 9), running((30, 5), 9)
    watch = watched([(0, open_one), (300, open_one)])
    assert held(watch) is None
    watch = look(watch, ended, all_read(later(600)), later(600))
    watch = look(watch, ended, all_read(later(900)), later(900))
    assert held(watch) == Held(later(600), 300, 300, Millis(29), frozenset({at(SOON, 1)}))


def test_results_are_held_since_the_same_moment_however_long_it_lasts() -> None:
    """Moments before, at which nothing would have been released, do not take its place."""
    times = [(ms, running((12 + ms // 100, 5), 9)) for ms in range(0, 20_000, 100)]
    watch = watched(times)
    found = held(watch)
    assert found is not None
    assert found.since_ms == later(800), "the window that ends at 20 was passed then"


def test_nothing_is_held_once_it_is_in_force() -> None:
    """The moments of what was released are forgotten."""
    watch = watched([(0, running((30, 5), 9)), (500, running((30, 30), 29))])
    assert held(watch) is None
    assert watch.moments == ()


def test_a_partition_that_is_a_little_behind_holds_nothing_back_that_it_has_passed() -> None:
    """The other one has gone on: only what comes after counts, and it is young."""
    watch = watched([(0, running((30, 5), 9)), (800, running((50, 35), 9))])
    found = held(watch)
    assert found is not None
    assert (found.since_ms, found.event_ms) == (later(800), 49)


def test_nothing_counts_while_a_lane_is_behind() -> None:
    """X says nothing about the past: what is held counts once the lane is level."""
    time = running((30, 5), 9)
    unread = all_read(START_MS, 5, 9)
    watch = look(Watch(BOUND_MS), time, unread, START_MS)
    for ms in (500, LEVEL_LEAST_MS + 1):
        watch = look(watch, time, replace(unread, read_at_ms=later(ms)), later(ms))
    found = held(watch)
    assert found is not None
    assert (found.since_ms, found.counts_ms) == (START_MS, None)
    level = replace(time, positions=positions(SOON, 5, 9))
    at_ms = later(LEVEL_LEAST_MS + 500)
    watch = look(watch, level, replace(unread, read_at_ms=at_ms), at_ms)
    found = held(watch)
    assert found is not None
    assert (found.since_ms, found.counts_ms) == (START_MS, 0)
    at_ms = SteadyMillis(at_ms + 400)
    watch = look(watch, level, all_read(at_ms, 5, 9), at_ms)
    found = held(watch)
    assert found is not None
    assert (found.for_ms, found.counts_ms) == (LEVEL_LEAST_MS + 900, 400)


def test_what_a_batch_may_bring_is_not_known_to_be_missing() -> None:
    """Until it was read: so the duration of batches is no delay of a partition."""
    time, unread = running((30, 5), 9), all_read(START_MS, 5, 9)
    watch = look(watched([(0, time)]), time, all_read(later(100)), later(100))
    for ms in (500, 900):
        watch = look(watch, time, replace(unread, read_at_ms=later(ms)), later(ms))
    found = held(watch)
    assert found is not None
    assert found.for_ms == 100
    read = replace(time, positions=positions(SOON, 5, 9), read_until_ms=later(700))
    newer = all_read(later(950), 5, 11)
    found = held(look(watch, read, newer, later(950)))
    assert found is not None
    assert found.for_ms == 700


def test_a_partition_without_an_answer_does_not_make_a_lane_behind() -> None:
    """Its records cannot be read: they are missing."""
    time, ends = running((30, 5), 9), all_read(START_MS, 5, 9)
    watch = look(Watch(BOUND_MS), time, ends, START_MS)
    for ms in (100, 1_500, 3_000):
        gone = replace(all_read(later(ms)), by_topic={SOON.topic: {0: Offset(5)}})
        watch = look(watch, time, gone, later(ms))
    assert watch.level_ms == later(100)
    found = held(watch)
    assert found is not None
    assert found.causes == {at(SOON, 1)}


def test_a_lane_whose_state_is_full_stays_level() -> None:
    """It reads on when event time moves, which is what it waits for; then it is behind."""
    time, ends = running((30, 5), 9), all_read()
    watch = look(Watch(BOUND_MS), time, ends, START_MS)
    watch = look(watch, time, replace(ends, read_at_ms=later(100)), later(100))
    full, unread = replace(time, is_full=True), all_read(later(200), 9, 5)
    for ms in (200, 1_500, 3_000):
        watch = look(watch, full, replace(unread, read_at_ms=later(ms)), later(ms))
    assert watch.level_ms == later(100)
    watch = look(watch, time, replace(unread, read_at_ms=later(3_100)), later(3_100))
    assert watch.level_ms is None
    read = replace(time, positions=positions(SOON, 9, 5))
    watch = look(watch, read, replace(unread, read_at_ms=later(3_200)), later(3_200))
    assert watch.level_ms == later(3_200)
    behind = Watch(BOUND_MS)  # a lane that was not level does not become so
    for ms in (200, 1_500, 3_000):
        behind = look(behind, full, replace(unread, read_at_ms=later(ms)), later(ms))
    assert behind.level_ms is None


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(0, 300)), min_size=1, max_size=300))
def test_moments_have_a_limit_and_err_on_the_side_of_too_early(
    steps: list[tuple[int, int]],
) -> None:
    """By less than a part of the bound, for those that are younger than it."""
    watch, exact = Watch(BOUND_MS), list[Since]()
    ms = event = 0
    for pause, rise in steps:
        ms, event = ms + pause, event + rise
        time = running((100 + event, 5), 9)
        watch = look(watch, time, all_read(later(ms)), later(ms))
        if not exact or 99 + event > exact[-1].event_ms:
            exact.append(Since(Millis(99 + event), later(ms)))
        assert watch.moments[0] == exact[0]
    assert len(watch.moments) <= BOUND_MS // (BOUND_MS // 50) + 4
    now_ms = later(ms)
    for one in exact:
        if one.since_ms > now_ms - BOUND_MS:
            kept = next(m for m in watch.moments if m.event_ms >= one.event_ms)
            assert one.since_ms - BOUND_MS // 50 < kept.since_ms <= one.since_ms


@pytest.mark.parametrize("ago_ms", [0, 400, 900])
def test_what_was_wanted_before_a_moment(ago_ms: int) -> None:
    """The largest of it; nothing before the first look."""
    times = [(ms, running((30 + ms, 5), 9)) for ms in range(0, 1_000, 100)]
    watch = watched(times)
    assert wanted_before(watch, later(900 - ago_ms)) == 29 + 900 - ago_ms
    assert wanted_before(watch, later(-1)) is None


@given(st.sampled_from(STATEFUL), st.integers(10, 5_000))
def test_what_is_held_would_be_released(shape: Shape, progress: int) -> None:
    """Exactly if event time could move by it."""
    time = running((progress, 5), 9, shape=shape)
    watch = look(look(Watch(BOUND_MS), time, all_read(), START_MS), time, all_read(), later(1))
    move = next_move(shape, time.release, StreamBoundary(Millis(progress - 1)))
    assert (held(watch) is not None) == (move is not None and move.to_ms > 9)


# --- what writers of derived inputs hold back -----------------------------------------------------


def reading(covered_ms: int) -> Situation:
    """A lane of windows that has read all of a derived input, up to a boundary."""
    found = promising(
        situation(in_force(TEN, positions(SPEED, 3, 4), 9), SPEED, shape=TEN), covered_ms, 3, 4
    )
    return replace(found, ends=ends_of((SPEED, (3, 4))))


def test_what_a_writer_holds_back_is_wanted_since_it_is_there() -> None:
    """So the waits overlap; the partitions of the input are missing."""
    found = reading(9)
    awaited = {SPEED.stream: (Since(Millis(15), later(-800)), Since(Millis(25), later(-300)))}
    watch = look(Watch(BOUND_MS), found.time, found.ends, later(0), awaited)
    assert watch.moments == (Since(Millis(25), later(-300)),)
    more = {SPEED.stream: (Since(Millis(19), later(-800)), Since(Millis(25), later(-300)))}
    watch = look(Watch(BOUND_MS), found.time, found.ends, later(0), more)
    seen = held(watch)
    assert seen is not None
    assert (seen.event_ms, seen.for_ms) == (Millis(19), 800)
    assert seen.causes == {at(SPEED, 0), at(SPEED, 1)}


def test_only_causes_in_some_inputs_may_count() -> None:
    """Without state only what is missing before inputs makes results tentative."""
    found = reading(9)
    awaited = {SPEED.stream: (Since(Millis(19), later(-800)),)}
    watch = look(Watch(BOUND_MS), found.time, found.ends, later(0), awaited)
    assert held(watch, frozenset({SPEED.stream})) == held(watch)
    assert held(watch, frozenset({SOON.stream})) is None


def test_a_boundary_that_was_read_is_not_missing() -> None:
    """Its records are, but they are about to be read."""
    found = reading(9)
    awaited = {SPEED.stream: (Since(Millis(19), later(-800)),)}
    watch = look(Watch(BOUND_MS), found.time, found.ends, later(0), awaited)
    assert held(watch) is not None
    found = promising(found, 19, 5, 5)
    watch = look(watch, found.time, found.ends, later(50), awaited)
    assert held(watch) is None


def test_without_a_word_of_its_writer_a_derived_input_is_not_missing() -> None:
    """It holds event time back as it does."""
    found = reading(9)
    watch = look(Watch(BOUND_MS), found.time, found.ends, later(0))
    assert watch.moments == ()
    assert held(watch) is None
