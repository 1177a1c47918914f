"""Which boxes may be wrong without an input: those whose shape waits, and no others.

A fork goes on without a partition from some moment on. What it computes has to be a part of what
the stable lane computes with everything, unless the box waits: only such boxes publish tentative
results.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from pipeline.network.boxes.shape import Stateless
from pipeline.network.boxes.traits import TRAITS
from tests.profiles import examples
from tests.unit.lanes.test_gaps import (
    BOUNDS,
    LEFT,
    RIGHT,
    Box,
    Compute,
    Result,
    Row,
    as_of,
    deduplicated,
    joined,
    logs,
    sessions,
    windows,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """All rows, and those that are there although a partition is missing from some moment on."""

    rows: tuple[Row, ...]
    there: tuple[Row, ...]


@st.composite
def failures(draw: st.DrawFn) -> Failure:
    """Each row is in one of two partitions of its input; one or both of the second ones fail."""
    rows = draw(logs())
    second = draw(st.frozensets(st.integers(0, 14)))
    sides = draw(st.sampled_from((frozenset({LEFT}), frozenset({RIGHT}), frozenset({LEFT, RIGHT}))))
    since = draw(st.integers(0, 14))
    there = tuple(
        row for row in rows if row.place < since or row.place not in second or row.side not in sides
    )
    return Failure(rows, there)


def is_part(compute: Compute, failure: Failure) -> bool:
    """Whether the results without what is missing are among those with it."""
    return Counter(compute(failure.there)) <= Counter(compute(failure.rows))


def matched(within: int) -> Compute:
    """An as-of join that leaves rows without a version out."""

    def compute(rows: tuple[Row, ...]) -> Iterable[Result]:
        for at, result in as_of(within)(rows):
            if isinstance(result, tuple) and result[1] is not None:
                yield at, result

    return compute


def best(size: int, number: int) -> Compute:
    """The first rows of each window and key, by place, with their ranks."""

    def compute(rows: tuple[Row, ...]) -> Iterable[Result]:
        for end, found in windows(size, size, 0)(rows):
            assert isinstance(found, tuple)
            key, places = found
            for rank, place in enumerate(sorted(places)[:number]):
                yield end, (key, rank, place)

    return compute


def _join(how: str, before: int = 10, after: int = 10) -> str:
    within = f"{{before: {before}ms, after: {after}ms}}"
    sides = f"{{left: s, right: u, on: [car], how: {how}, within: {within}}}"
    return f"{{join: {sides}, select: [car]}}"


def _as_of(how: str) -> str:
    sides = f"{{left: s, right: u, on: [car], how: {how}, within: 20ms}}"
    return f"{{as_of: {sides}, select: [car]}}"


WINDOW = "window: {size: 10ms, slide: 10ms}"
WAITING: Mapping[str, Box] = {
    "aggregate, windows": Box(
        f"{{aggregate: s, by: [car], {WINDOW}, compute: {{n: count(*)}}}}", windows(10, 10, 0)
    ),
    "aggregate, sessions": Box(
        "{aggregate: s, by: [car], session: {gap: 5ms, longest: 20ms}, compute: {n: count(*)}}",
        sessions(5, 20),
    ),
    "top": Box(f"{{top: s, by: [car], {WINDOW}, highest: speed, rows: 2}}", best(10, 2)),
    "join, left": Box(_join("left"), joined(10, 10, "left")),
    "join, full": Box(_join("full"), joined(10, 10, "full")),
    "as_of, left": Box(_as_of("left"), as_of(20)),
    "as_of, inner": Box(_as_of("inner"), matched(20)),
    "deduplicate": Box("{deduplicate: s, by: [car], within: 20ms}", deduplicated(20)),
}
OF_ONE_ROW: Mapping[str, Compute] = {
    "passed": lambda rows: [(row.at, row.place) for row in rows if row.key],
    "computed": lambda rows: [(row.at + 3, row.key) for row in rows],
    "exploded": lambda rows: [(row.at, (row.place, n)) for row in rows for n in range(row.key + 1)],
}
ANY = settings(max_examples=5_000, database=None, phases=(Phase.generate,))


@pytest.mark.parametrize("kind", WAITING)
def test_a_box_that_waits_may_be_wrong(kind: str) -> None:
    """There is input without a part of which it gives a result that it does not give with it."""
    box = WAITING[kind]
    assert box.shape.waits
    failure = find(failures(), lambda found: not is_part(box.compute, found), settings=ANY)
    assert failure.there != failure.rows


def is_decided(compute: Compute, rows: Iterable[Row], until: int) -> bool:
    """Whether the results up to an event time are those of the rows up to there."""
    every = tuple(rows)
    early = tuple(row for row in every if row.at <= until)
    return _up_to(compute(early), until) == _up_to(compute(every), until)


def _up_to(results: Iterable[Result], until: int) -> Counter[Result]:
    return Counter(one for one in results if one[0] <= until)


def _is_in_order(kind: str) -> bool:
    return TRAITS[kind.split(",", maxsplit=1)[0]].in_order


@pytest.mark.parametrize("kind", [kind for kind in WAITING if _is_in_order(kind)])
@given(logs(), st.integers(0, 100))
def test_a_boundary_decides_what_event_time_releases(
    kind: str, rows: tuple[Row, ...], until: int
) -> None:
    """So tentative results after it can take the place of stable ones."""
    assert is_decided(WAITING[kind].compute, rows, until)


@pytest.mark.parametrize("kind", ["join, left", "join, full"])
def test_a_boundary_decides_no_outer_join(kind: str) -> None:
    """A row without a partner waits for what comes after it, and pairs come meanwhile."""
    assert not _is_in_order(kind)
    compute = WAITING[kind].compute
    drawn = st.tuples(logs(), st.integers(0, 100))
    assert find(drawn, lambda found: not is_decided(compute, *found), settings=ANY)


@settings(max_examples=examples(300))
@given(BOUNDS, BOUNDS, failures())
def test_an_inner_join_only_adds_results(before: int, after: int, failure: Failure) -> None:
    """A pair depends on its two rows, and on nothing else."""
    box = Box(_join("inner", before, after), joined(before, after, "inner"))
    assert not box.shape.waits
    assert is_part(box.compute, failure)


@given(failures())
def test_boxes_of_one_row_only_add_results(failure: Failure) -> None:
    """Whatever they make of it."""
    for compute in OF_ONE_ROW.values():
        assert is_part(compute, failure)


@pytest.mark.parametrize("kind", [kind for kind, row in TRAITS.items() if not row.stateful])
def test_boxes_of_one_row_do_not_wait(kind: str) -> None:
    """So they never publish tentative results."""
    assert TRAITS[kind].shape(None, {}) == Stateless()
    assert not Stateless.waits


def test_no_kind_is_forgotten() -> None:
    """The kinds with state are tested one by one; without state, a result is made of one row."""
    tested = {name.split(",", maxsplit=1)[0] for name in WAITING} | {"join"}
    assert tested == {kind for kind, row in TRAITS.items() if row.stateful}
    assert all(row.from_one_row for row in TRAITS.values() if not row.stateful)
