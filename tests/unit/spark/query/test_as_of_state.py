from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.promise import kept_from, promise
from pipeline.boundaries.release import LEAST_WATERMARK_MS
from pipeline.ids import Millis, StreamName
from pipeline.network.boxes.shape import Shape
from pipeline.planner.planner import plan
from pipeline.spark.query.as_of_state import (
    NOTHING,
    Bucket,
    Kept,
    KeyState,
    New,
    Result,
    Settled,
    Version,
    Waiting,
    bucket_again_ms,
    bucket_of,
    bucket_text,
    decoded,
    encoded,
    settle,
    settle_bucket,
)
from tests.unit.planner.networks import OWNER, as_of_join, column, external, network

ONE, TWO = external("one", column("k")), external("two", column("k"))
END_MS = 1_000


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of a key in a batch, and the watermark in force in it."""

    waiting: tuple[Waiting, ...]
    versions: tuple[Version, ...]
    watermark_ms: Millis


def run(batches: Sequence[Batch], within_ms: int) -> list[tuple[Result, ...]]:
    """The results of each batch, as Spark calls: with new rows, and when the key is due.

    A key without rows in a batch is not called before it is due, which must change nothing.
    """
    kept, again_ms = NOTHING, None
    found = list[tuple[Result, ...]]()
    for batch in batches:
        due = again_ms is not None and again_ms < batch.watermark_ms
        if not (batch.waiting or batch.versions or due):
            found.append(())
            continue
        settled = settle(kept, batch.waiting, batch.versions, batch.watermark_ms, within_ms)
        kept, again_ms = settled.state, settled.again_ms
        assert again_ms is None or again_ms >= max(1, batch.watermark_ms)  # as Spark wants it
        assert (again_ms is None) == (kept == NOTHING)
        found.append(settled.results)
    assert kept == NOTHING
    return found


def all_at_once(batches: Sequence[Batch], within_ms: int) -> list[Result]:
    """Each row with the last version that is not after it, looked up one by one."""
    versions = sorted(version for batch in batches for version in batch.versions)
    found = []
    for row in (row for batch in batches for row in batch.waiting):
        before = [v.row for v in versions if 0 <= row.at_ms - v.at_ms <= within_ms]
        found.append(Result(row.at_ms, row.row, before[-1] if before else None))
    return sorted(found, key=lambda result: result.left)


def shape_of(within_ms: int) -> Shape:
    """How event time moves through the box."""
    box = as_of_join("h", ONE, TWO, (("k", "k"),), {"k": "`left`.`k`"}, within_ms)
    return plan(network((ONE, TWO), (box,)), OWNER).fragments[-1].shape


times = st.lists(st.integers(1, 40), max_size=4)


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    """Batches without the rows that are late in them, and a last one that closes everything."""
    found: list[Batch] = []
    late = place = 0
    for _ in range(draw(st.integers(1, 6))):
        rows, versions = [
            [
                (at_ms, str(place + i).zfill(3))
                for i, at_ms in enumerate(draw(times))
                if at_ms > late
            ]
            for place in (place, place + 10)
        ]
        place += 20
        watermark = late + draw(st.integers(0, 12))
        watermark = late if watermark < LEAST_WATERMARK_MS else watermark
        found.append(
            Batch(
                tuple(Waiting(at_ms, name.encode()) for at_ms, name in rows),
                tuple(Version(at_ms, name, name.encode()) for at_ms, name in versions),
                Millis(watermark),
            )
        )
        late = watermark
    return [*found, Batch((), (), Millis(END_MS))]


@given(batches(), st.integers(0, 30))
def test_each_row_is_emitted_once_with_the_version_of_its_time(
    given_batches: list[Batch], within_ms: int
) -> None:
    """For any batches, and in the order of event time within one; none below a promise."""
    came = run(given_batches, within_ms)
    everything = [result for results in came for result in results]
    assert sorted(everything, key=lambda result: result.left) == all_at_once(
        given_batches, within_ms
    )
    shape = shape_of(within_ms)
    for at, batch in enumerate(given_batches):
        assert [r.at_ms for r in came[at]] == sorted(r.at_ms for r in came[at])
        assert all(result.at_ms <= batch.watermark_ms for result in came[at])
        watermark = batch.watermark_ms
        promised = promise(shape, eviction_ms=watermark, passed_ms=None, previous_ms=None)
        later = [result.at_ms for results in came[at + 1 :] for result in results]
        assert promised is None or all(at_ms > promised for at_ms in later)


@given(batches(), st.integers(0, 30))
def test_a_rebuild_gives_the_same_results(given_batches: list[Batch], within_ms: int) -> None:
    """From the log that is kept for it, in one batch, at any position."""
    came = run(given_batches, within_ms)
    shape = shape_of(within_ms)
    for at, batch in enumerate(given_batches[:-1]):
        rows_from_ms, versions_from_ms = (
            kept_from(shape, batch.watermark_ms, StreamName(stream)) or 0
            for stream in ("one", "two")
        )
        read = given_batches[: at + 1]
        again = Batch(
            tuple(row for one in read for row in one.waiting if row.at_ms >= rows_from_ms),
            tuple(v for one in read for v in one.versions if v.at_ms >= versions_from_ms),
            batch.watermark_ms,
        )
        assert run([again, *given_batches[at + 1 :]], within_ms)[1:] == came[at + 1 :]


@given(batches(), st.integers(0, 30))
def test_one_batch_gives_the_results_of_many(given_batches: list[Batch], within_ms: int) -> None:
    """A replay has no watermark: all rows are present."""
    settled = settle(
        NOTHING,
        (row for batch in given_batches for row in batch.waiting),
        (version for batch in given_batches for version in batch.versions),
        None,
        within_ms,
    )
    everything = sorted(settled.results, key=lambda result: result.left)
    assert everything == all_at_once(given_batches, within_ms)
    assert (settled.state, settled.again_ms) == (NOTHING, None)


def test_only_versions_that_may_still_match_are_kept() -> None:
    """The latest below event time, and later ones; until it is too old."""
    versions = [Version(at_ms, "", b"%d" % at_ms) for at_ms in (3, 5, 9, 12)]
    first = settle(NOTHING, (), versions, Millis(10), 20)
    assert [version.at_ms for version in first.state.versions] == [9, 12]
    second = settle(first.state, (), (), Millis(13), 20)
    assert ([version.at_ms for version in second.state.versions], second.again_ms) == ([12], 32)
    assert settle(second.state, (), (), Millis(32), 20) == Settled((), NOTHING, None)


@given(
    st.lists(st.builds(Waiting, st.integers(), st.binary())),
    st.lists(st.builds(Version, st.integers(), st.text(), st.binary())),
)
def test_the_state_round_trips_as_text(rows: list[Waiting], versions: list[Version]) -> None:
    """Bytes of any kind."""
    kept = KeyState(tuple(rows), tuple(versions))
    assert decoded(encoded(kept)) == kept


def of_key(batch: Batch, key: int) -> Batch:
    """The rows of one of three keys in a batch."""
    return Batch(
        tuple(row for row in batch.waiting if int(row.row) % 3 == key),
        tuple(version for version in batch.versions if int(version.row) % 3 == key),
        batch.watermark_ms,
    )


@given(batches(), st.integers(0, 30))
def test_keys_of_a_bucket_are_independent(given_batches: list[Batch], within_ms: int) -> None:
    """Each has the results that it has alone, whenever another one causes a call."""
    bucket: Bucket = {}
    came: list[Result] = []
    for batch in given_batches:
        parts = {str(key): of_key(batch, key) for key in range(3)}
        new = {
            key: New(list(part.waiting), list(part.versions))
            for key, part in parts.items()
            if part.waiting or part.versions
        }
        results, bucket = settle_bucket(bucket, new, batch.watermark_ms, within_ms)
        again_ms = bucket_again_ms(bucket)
        assert again_ms is None or again_ms >= max(1, batch.watermark_ms)  # as Spark wants it
        assert bucket_of(bucket_text(bucket)) == bucket
        came += results
    alone = ([of_key(batch, key) for batch in given_batches] for key in range(3))
    apart = [result for some in alone for results in run(some, within_ms) for result in results]
    assert bucket == {}
    assert sorted(came, key=str) == sorted(apart, key=str)


def test_only_new_or_due_keys_of_a_bucket_are_read() -> None:
    """The others stay unread and unchanged."""
    asleep = Kept(50, "not even looked at")
    waits = Kept(20, encoded(KeyState((Waiting(21, b"row"),))))
    results, left = settle_bucket({"a": asleep, "b": waits}, {}, Millis(30), 10)
    assert results == (Result(21, b"row", None),)
    assert left == {"a": asleep}
