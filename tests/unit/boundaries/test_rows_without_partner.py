"""Rows without a partner: which are emitted, when, and that a rebuild emits the same ones."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.promise import kept_from, promise
from pipeline.ids import Millis, StreamName
from pipeline.network.boxes.shape import Shape
from pipeline.network.boxes.sides import How
from pipeline.network.model import Box
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, column, deduplicated, external, joined, network

ONE, TWO = external("one", column("k")), external("two", column("k"))
END_MS = 1_000


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """A row of one side; `place` is unique among the rows of that side."""

    at: int
    place: int
    key: int | None


Result = tuple[Row | None, Row | None]


@dataclass(frozen=True, slots=True)
class Batch:
    """The records that a batch read, and the watermark in force in it."""

    left: tuple[Row, ...]
    right: tuple[Row, ...]
    watermark: int


@dataclass(frozen=True, slots=True)
class Query:
    """A join, and the conditions of a pair besides key and bound."""

    how: How
    lower: int
    upper: int
    fits: Callable[[Row, Row], bool] = lambda _one, _other: True

    def are_pair(self, one: Row, other: Row) -> bool:
        """Whether two rows are a pair."""
        near = self.lower <= one.at - other.at <= self.upper
        return near and None is not one.key == other.key and self.fits(one, other)


@dataclass
class SparkJoin:
    """Model of Spark's join of two streams, as observed, batch by batch.

    New rows are paired with all buffered ones; then the rows are removed to which no partner above
    the watermark can come. A row without a key is removed at once.
    """

    query: Query
    left: dict[Row, bool] = field(default_factory=dict)
    right: dict[Row, bool] = field(default_factory=dict)

    def run(self, batch: Batch) -> Counter[Result]:
        """The results of a batch. `True` in the state is a row that had a partner."""
        self.left |= dict.fromkeys(batch.left, False)
        self.right |= dict.fromkeys(batch.right, False)
        results = Counter[Result]()
        for one in self.left:
            for other in self.right:
                new = one in batch.left or other in batch.right
                if new and self.query.are_pair(one, other):
                    self.left[one] = self.right[other] = True
                    results[one, other] += 1
        lefts = _evict(self.left, batch.watermark + self.query.lower)
        rights = _evict(self.right, batch.watermark - self.query.upper)
        results.update((row, None) for row in lefts if self.query.how is not How.INNER)
        results.update((None, row) for row in rights if self.query.how is How.FULL)
        return results


def _evict(rows: dict[Row, bool], limit: int) -> list[Row]:
    """Remove rows below a limit; the removed rows that had no partner."""
    gone = [row for row in rows if row.at < limit or row.key is None]
    return [row for row in gone if not rows.pop(row)]


def all_at_once(query: Query, left: Sequence[Row], right: Sequence[Row]) -> Counter[Result]:
    """The results of all rows together."""
    pairs = [(one, other) for one in left for other in right if query.are_pair(one, other)]
    paired = {one for one, _ in pairs}, {other for _, other in pairs}
    results = Counter[Result](pairs)
    results.update((r, None) for r in left if r not in paired[0] and query.how is not How.INNER)
    results.update((None, r) for r in right if r not in paired[1] and query.how is How.FULL)
    return results


def time_of(result: Result) -> int:
    """The event time of a result."""
    return max(row.at for row in result if row is not None)


def shape_of(box: Box) -> Shape:
    """How event time moves through a box."""
    return plan(network((ONE, TWO), (box,)), OWNER).fragments[-1].shape


rows = st.lists(
    st.builds(Row, st.integers(1, 40), st.just(0), st.sampled_from((1, 1, 1, 2, None))), max_size=5
)


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    """Batches without the rows that are late in them, and a last one that closes everything."""
    found: list[Batch] = []
    late = place = 0
    for _ in range(draw(st.integers(1, 6))):
        sides = []
        for _ in range(2):
            side = [replace(row, place=place + i) for i, row in enumerate(draw(rows))]
            place += len(side)
            sides.append(tuple(row for row in side if row.at > late))
        watermark = late + draw(st.integers(0, 12))
        found.append(Batch(sides[0], sides[1], watermark))
        late = watermark
    return [*found, Batch((), (), END_MS)]


def check(query: Query, shape: Shape, given_batches: Sequence[Batch]) -> None:
    """Each result is emitted once, none too late, and equally after a rebuild at any position."""
    join = SparkJoin(query)
    came = [join.run(batch) for batch in given_batches]
    assert sum(came, Counter()) == all_at_once(
        query, all_of(given_batches, "left"), all_of(given_batches, "right")
    )
    for at, batch in enumerate(given_batches):
        watermark = Millis(batch.watermark)
        promised = promise(shape, eviction_ms=watermark, passed_ms=None, previous_ms=None)
        later = [time_of(result) for results in came[at + 1 :] for result in results]
        assert promised is None or all(time > promised for time in later)
        from_ms, read = kept_from(shape, watermark, StreamName("one")), given_batches[: at + 1]
        left, right = (
            tuple(row for row in all_of(read, side) if from_ms is None or row.at >= from_ms)
            for side in ("left", "right")
        )
        rebuilt = SparkJoin(query)
        rebuilt.run(Batch(left, right, batch.watermark))
        assert [rebuilt.run(batch) for batch in given_batches[at + 1 :]] == came[at + 1 :]


def all_of(given_batches: Iterable[Batch], side: str) -> list[Row]:
    """The rows of a side of some batches."""
    return [row for batch in given_batches for row in getattr(batch, side)]


@given(st.sampled_from(How), st.integers(-9, 9), st.integers(0, 9), batches())
def test_a_join_emits_an_unmatched_row_once_no_partner_can_come(
    how: How, lower: int, length: int, given_batches: list[Batch]
) -> None:
    """A row without an accepted partner is emitted, for any batches, above every promise."""
    box = joined("pairs", ONE, TWO, (("k", "k"),), {"k": "`left`.`k`"}, (lower, lower + length))
    query = Query(how, lower, lower + length)
    check(query, shape_of(replace(box, how=how)), given_batches)


@given(st.integers(0, 9), batches())
def test_deduplication_keeps_the_first_of_each_run(within: int, given_batches: list[Batch]) -> None:
    """As record-by-record processing does, in the order of event time and position."""
    query = Query(How.LEFT, 0, within, lambda one, other: other < one)
    both = [Batch(batch.left, batch.left, batch.watermark) for batch in given_batches]
    check(query, shape_of(deduplicated("once", ONE, ("k",), within)), both)
    last: dict[int, int] = {}
    kept = set()
    for row in sorted(all_of(both, "left"), key=lambda row: (row.at, row.place)):
        if row.key is None or row.key not in last or row.at - last[row.key] > within:
            kept.add(row)
        if row.key is not None:
            last[row.key] = row.at
    results = all_at_once(query, all_of(both, "left"), all_of(both, "right"))
    assert kept == {one for one, other in results if other is None}
