"""Gaps: the results that are published after one are those of an undisturbed lane, but for some."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.ids import Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.gaps import (
    EventTimes,
    Passed,
    after_gap,
    largest_time,
    passed,
    still_open,
    touched_until,
    withheld_ms,
)
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.cut import Cut
from pipeline.markers.gap import Gap, Omitted
from pipeline.markers.positions import InputPartition
from pipeline.network.boxes.shape import Joined, Shape, Stateless
from tests.profiles import examples
from tests.unit.lanes.start.test_decision import STATEFUL
from tests.unit.planner.passes.test_share_box_settings import fragment, planned

LEFT, RIGHT = StreamName("s"), StreamName("u")
CARS = InputPartition(LEFT, TopicName("sightings"), 0)
MORE = InputPartition(LEFT, TopicName("sightings"), 1)
AGAIN = InputPartition(LEFT, TopicName("n.f.redrive"), 0)
BEGUN = (Incarnation("two"), Millis(99))
OF_LEFT, NONE = frozenset({LEFT}), frozenset[StreamName]()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of an input: its place in the log, its side, a key, and its event time."""

    place: int
    side: StreamName
    key: int
    at: int


Result = tuple[int, object]
"""Event time and content."""
Compute = Callable[[tuple[Row, ...]], Iterable[Result]]


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a document, and what the documentation says that it computes."""

    text: str
    compute: Compute

    @property
    def shape(self) -> Shape:
        """As planned; the second input is the first one, but for the tests its own stream."""
        return _shape(self.text)


@cache
def _shape(text: str) -> Shape:
    two = "  u: {filter: s, where: speed > 0}\n" if "right: u" in text else ""
    found = fragment(planned(f"{two}  f: {text}\n"), "f").shape
    if isinstance(found, Joined) and "as_of" in text:
        return replace(found, passing=frozenset({LEFT}))
    return found


def windows(size: int, slide: int, offset: int) -> Compute:
    """The places of the rows of each window and key, at the window's end."""

    def compute(rows: tuple[Row, ...]) -> Iterable[Result]:
        found: dict[tuple[int, int], list[int]] = {}
        for row in rows:
            last = (row.at - offset) // slide * slide + offset
            for start in range(last, row.at - size, -slide):
                found.setdefault((start + size, row.key), []).append(row.place)
        return [(end, (key, tuple(places))) for (end, key), places in found.items()]

    return compute


def sessions(gap: int, longest: int) -> Compute:
    """The places of the rows of each session, at its last row plus the gap."""

    def compute(rows: tuple[Row, ...]) -> Iterable[Result]:
        open_ones: dict[int, list[Row]] = {}
        done: list[list[Row]] = []
        for row in sorted(rows, key=lambda row: (row.at, row.place)):
            session = open_ones.get(row.key)
            if session is not None:
                last = session[-1].at
                if row.at - last <= gap and row.at // longest == last // longest:
                    session.append(row)
                    continue
                done.append(session)
            open_ones[row.key] = [row]
        for one in (*done, *open_ones.values()):
            yield one[-1].at + gap, (one[0].key, tuple(row.place for row in one))

    return compute


def joined(before: int, after: int, how: str) -> Compute:
    """Pairs of rows of one key: the left one at most so long before and after the right one."""

    def compute(rows: tuple[Row, ...]) -> Iterable[Result]:
        sides = {side: [row for row in rows if row.side == side] for side in (LEFT, RIGHT)}
        paired: set[int] = set()
        for left in sides[LEFT]:
            for right in sides[RIGHT]:
                if left.key == right.key and -before <= left.at - right.at <= after:
                    paired |= {left.place, right.place}
                    yield max(left.at, right.at), (left.place, right.place)
        for side in {"inner": (), "left": (LEFT,), "full": (LEFT, RIGHT)}[how]:
            for row in sides[side]:
                if row.place not in paired:
                    yield row.at, (row.place, None)

    return compute


def as_of(within: int) -> Compute:
    """Each left row with the latest version of its key that is valid, or none."""

    def compute(rows: tuple[Row, ...]) -> Iterable[Result]:
        for row in rows:
            if row.side == LEFT:
                valid = [
                    (one.at, one.place)
                    for one in rows
                    if one.side == RIGHT
                    and one.key == row.key
                    and row.at - within <= one.at <= row.at
                ]
                yield row.at, (row.place, max(valid, default=None))

    return compute


def deduplicated(within: int) -> Compute:
    """The rows without an equal one before them, in event time and within a bound."""

    def compute(rows: tuple[Row, ...]) -> Iterable[Result]:
        for row in rows:
            if not any(
                one.key == row.key
                and row.at - within <= one.at
                and (one.at, one.place) < (row.at, row.place)
                for one in rows
            ):
                yield row.at, row.place

    return compute


LENGTHS = st.integers(1, 12)
BOUNDS = st.integers(0, 12)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    """A box of any kind with state."""
    kind = draw(st.sampled_from(("windows", "top", "sessions", "join", "as_of", "deduplicate")))
    length = draw(LENGTHS)
    match kind:
        case "windows" | "top":
            slide = draw(st.integers(1, length))
            offset = draw(st.integers(0, slide - 1))
            window = f"{{size: {length}ms, slide: {slide}ms, offset: {offset}ms}}"
            text = f"{{aggregate: s, by: [car], window: {window}, compute: {{n: count(*)}}}}"
            if kind == "top":
                text = f"{{top: s, by: [car], window: {window}, highest: speed, rows: 3}}"
            return Box(text, windows(length, slide, offset))
        case "sessions":
            longest = length + draw(LENGTHS)
            session = f"{{gap: {length}ms, longest: {longest}ms}}"
            text = f"{{aggregate: s, by: [car], session: {session}, compute: {{n: count(*)}}}}"
            return Box(text, sessions(length, longest))
        case "join":
            before, after = draw(BOUNDS), draw(BOUNDS)
            how = draw(st.sampled_from(("inner", "left", "full")))
            within = f"{{before: {before}ms, after: {after}ms}}"
            sides = f"{{left: s, right: u, on: [car], how: {how}, within: {within}}}"
            return Box(f"{{join: {sides}, select: [car]}}", joined(before, after, how))
        case "as_of":
            sides = f"{{left: s, right: u, on: [car], how: left, within: {length}ms}}"
            return Box(f"{{as_of: {sides}, select: [car]}}", as_of(length))
        case _:
            text = f"{{deduplicate: s, by: [car], within: {length}ms}}"
            return Box(text, deduplicated(length))


@st.composite
def logs(draw: st.DrawFn) -> tuple[Row, ...]:
    """Rows in the order of a log; event times are in no order."""
    count = draw(st.integers(0, 14))
    return tuple(
        Row(place, draw(st.sampled_from((LEFT, RIGHT))), draw(st.integers(0, 1)), draw(times()))
        for place in range(count)
    )


def times() -> st.SearchStrategy[int]:
    """Event times of a small interval, so that windows and bounds meet."""
    return st.integers(0, 60)


def newest(rows: tuple[Row, ...]) -> Mapping[StreamName, Millis]:
    """The largest event time of each input."""
    found: dict[StreamName, Millis] = {}
    for row in rows:
        found[row.side] = Millis(max(row.at, found.get(row.side, row.at)))
    return found


@settings(max_examples=examples(400))
@given(boxes(), logs(), st.integers(0, 14), st.integers(0, 5))
def test_published_results_are_right_and_complete_after_the_gap(
    box: Box, rows: tuple[Row, ...], cut: int, slack: int
) -> None:
    """Cut anywhere, in any order of event times, and with a bound that is too large."""
    everything, after = Counter(box.compute(rows)), rows[cut:]
    until = max(
        (
            touched
            for stream, ms in newest(rows[:cut]).items()
            if (touched := touched_until(box.shape, stream, Millis(ms + slack))) is not None
        ),
        default=None,
    )
    marker = first_marker(STATEFUL, Incarnation("one"), {}, Millis(0))
    over = Passed({}, {}, read=True, bounded=frozenset(), removed=frozenset())
    bounds = {stream: Millis(ms + slack) for stream, ms in newest(rows[:cut]).items()}
    _, gap = after_gap(marker, over, EventTimes({}, bounds), box.shape, BEGUN)
    assert (None if gap is None else gap.until_ms) == until
    withheld = withheld_ms(box.shape, gap)
    computed = Counter(box.compute(after))
    published = Counter(
        {one: number for one, number in computed.items() if withheld is None or one[0] > withheld}
    )
    assert published <= everything
    complete = {one: n for one, n in everything.items() if until is None or one[0] > until}
    assert Counter(complete) <= published


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("{aggregate: s, by: [car], window: 10ms, compute: {n: count(*)}}", 30),
        ("{deduplicate: s, by: [car], within: 7ms}", 27),
        (
            "{aggregate: s, by: [car], session: {gap: 5ms, longest: 100ms}, compute: {n: sum(1)}}",
            104,
        ),
    ],
)
def test_how_far_a_record_reaches(text: str, until: int) -> None:
    """A record at 20 ms: the window that begins then, the rows within, sessions up to their cut."""
    assert touched_until(_shape(text), LEFT, Millis(20)) == until


def test_a_lane_without_state_has_no_gap() -> None:
    """Nothing of it can be touched."""
    assert touched_until(Stateless(), LEFT, Millis(20)) is None


MARKER = replace(
    first_marker(STATEFUL, Incarnation("one"), {CARS: Offset(40), MORE: Offset(7)}, Millis(0)),
    needed={CARS: Offset(20), MORE: Offset(7)},
    progress={CARS: Millis(500)},
    boundary_ms=Millis(399),
    letters_from={0: Offset(3)},
)
NOWHERE: Mapping[InputPartition, Offset] = {CARS: Offset(0), MORE: Offset(0), AGAIN: Offset(0)}


def test_everything_up_to_the_ends_is_passed_over() -> None:
    """Records that were sent again are not, and an end never goes back."""
    marker = replace(MARKER, end={**MARKER.end, AGAIN: Offset(2)})
    over = passed(marker, NOWHERE, {CARS: Offset(90), MORE: Offset(5)})
    assert over.begin == marker.end
    assert over.end == {CARS: 90, MORE: 7, AGAIN: 2}
    assert (over.read, over.bounded, over.removed) == (True, frozenset(), frozenset())


def test_what_a_cut_reads_is_passed_over() -> None:
    """Its results may be visible, and the next batches have other ids."""
    marker = replace(MARKER, end={**MARKER.end, AGAIN: Offset(2)})
    ends = {CARS: Offset(40), MORE: Offset(9), AGAIN: Offset(4)}
    marker = replace(marker, cut=Cut("2.4", ends, None, 1))
    over = passed(marker, NOWHERE, {CARS: Offset(90), MORE: Offset(7)})
    assert over.begin == marker.end
    assert over.end == {CARS: 90, MORE: 9, AGAIN: 4}


def test_too_many_records_are_not_read() -> None:
    """Their event times are bounded."""
    ends = {CARS: Offset(90), MORE: Offset(9)}
    assert passed(MARKER, NOWHERE, ends, most=52).read
    over = passed(MARKER, NOWHERE, ends, most=51)
    assert (over.read, over.bounded, over.removed) == (False, OF_LEFT, NONE)


def test_records_that_retention_has_removed_are_bounded_by_the_present() -> None:
    """Those that were not read, and those that were, if their event times are not known."""
    over = passed(MARKER, {CARS: Offset(60), MORE: Offset(0)}, {CARS: Offset(90), MORE: Offset(7)})
    assert (over.begin[CARS], over.removed, over.bounded) == (60, OF_LEFT, OF_LEFT)
    untimed = replace(MARKER, progress={})
    over = passed(untimed, {CARS: Offset(30), MORE: Offset(0)}, {CARS: Offset(90)})
    assert (over.removed, over.bounded) == (OF_LEFT, OF_LEFT)
    over = passed(untimed, {CARS: Offset(20), MORE: Offset(0)}, {CARS: Offset(90)})
    assert (over.removed, over.bounded) == (NONE, OF_LEFT)


def test_the_lane_goes_on_at_the_ends_with_what_is_known_of_them() -> None:
    """Event time moves as if they had been read; nothing before them is needed."""
    over = passed(MARKER, NOWHERE, {CARS: Offset(90), MORE: Offset(9)})
    read = EventTimes({CARS: Millis(450), MORE: Millis(777)})
    marker, gap = after_gap(
        MARKER, over, read, _shape("{deduplicate: s, by: [car], within: 7ms}"), BEGUN
    )
    assert marker.end == marker.start == marker.needed == over.end
    assert marker.progress == {CARS: 500, MORE: 777}
    assert (marker.letters_from, marker.boundary_ms) == ({}, 399)
    assert gap == marker.gap
    assert gap == Gap(
        incarnation=Incarnation("two"),
        omitted=(
            Omitted(CARS.topic, 0, Offset(40), Offset(90)),
            Omitted(CARS.topic, 1, Offset(7), Offset(9)),
        ),
        since_ms=Millis(399),
        newest_ms=Millis(777),
        until_ms=Millis(784),
        written_at_ms=Millis(99),
    )
    assert gap.offsets == 52


def test_two_inputs_of_one_topic_have_one_gap_in_it() -> None:
    """The longer one."""
    other = replace(CARS, input=RIGHT)
    marker = replace(MARKER, end={CARS: Offset(40), other: Offset(30)}, needed={})
    over = passed(marker, {}, {CARS: Offset(90), other: Offset(90)})
    _, gap = after_gap(
        marker, over, EventTimes(), _shape("{deduplicate: s, by: [car], within: 7ms}"), BEGUN
    )
    assert gap is not None
    assert gap.omitted == (Omitted(CARS.topic, 0, Offset(30), Offset(90)),)


def test_a_bound_moves_no_event_time() -> None:
    """It may be far too large."""
    over = passed(MARKER, NOWHERE, {CARS: Offset(90), MORE: Offset(9)}, most=1)
    bound = EventTimes({}, {LEFT: Millis(10_000)})
    shape = _shape("{deduplicate: s, by: [car], within: 7ms}")
    marker, gap = after_gap(MARKER, over, bound, shape, BEGUN)
    assert marker.progress == MARKER.progress
    assert gap is not None
    assert (gap.newest_ms, gap.until_ms) == (10_000, 10_007)


def test_a_second_gap_does_not_end_before_the_first() -> None:
    """What the first one touches is still withheld."""
    shape = _shape("{deduplicate: s, by: [car], within: 7ms}")
    over = passed(MARKER, NOWHERE, {CARS: Offset(90), MORE: Offset(9)})
    one, gap = after_gap(MARKER, over, EventTimes({}, {LEFT: Millis(10_000)}), shape, BEGUN)
    later = replace(one, boundary_ms=Millis(9_000))  # nothing at or below it was published
    _, again = after_gap(later, passed(one, NOWHERE, {}), EventTimes(), shape, BEGUN)
    assert gap is not None
    assert again is not None
    assert (again.until_ms, again.offsets) == (gap.until_ms, 0)
    assert (again.since_ms, again.newest_ms) == (gap.since_ms, gap.newest_ms) == (399, 10_000)


def test_without_a_record_that_counts_there_is_no_gap() -> None:
    """The empty state is the right one: nothing is passed over."""
    marker = replace(MARKER, progress={})
    over = passed(marker, NOWHERE, {CARS: Offset(90), MORE: Offset(9)})
    shape = _shape("{deduplicate: s, by: [car], within: 7ms}")
    moved, gap = after_gap(marker, over, EventTimes(), shape, BEGUN)
    assert (gap, moved.gap, moved.end) == (None, None, marker.end)


def test_a_gap_is_over_when_the_promise_has_passed_it() -> None:
    """No result that it touches can come then."""
    gap = Gap(Incarnation("two"), (), None, Millis(5), Millis(9), Millis(1))
    assert still_open(gap, None) == still_open(gap, Millis(8)) == gap
    assert still_open(gap, Millis(9)) is None
    assert still_open(None, None) is None


@given(st.lists(st.integers(0, 2**50)))
def test_the_largest_time_is_found(found: list[int]) -> None:
    """By asking whether there is a record at or after a time."""
    assert largest_time(lambda ms: any(one >= ms for one in found)) == max(found, default=None)
