"""Properties of settlers, whatever they are interrupted by."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from pipeline.tentative.generation import Generation
from pipeline.tentative.records import DoneMark, TentativeRecord, TentativeResult, Undo
from tests.profiles import examples
from tests.unit.tentative.world import ALL, IDS, PARTITIONS, STEPS, TRUTH, World

Steps = Sequence[tuple[str, int, int]]
STABLE_FIRST: Steps = (("stable", 2, 0), ("promise", 0, 0), ("settle", 0, 0), ("result", 2, 0))
"""A stable result above the promise is read before its tentative twin."""


def run(truth: Sequence[bytes | None], steps: Steps, last: int = ALL) -> World:
    """A world after these steps, and after a last settlement that sends so many records."""
    world = World(truth)
    for step in steps:
        world.step(*step)
    world.finish(last)
    return world


def generations(records: Sequence[TentativeRecord]) -> set[Generation]:
    """The generations of records."""
    return {record.generation for record in records}


@settings(max_examples=examples(300))
@given(TRUTH, STEPS)
@example([b"v0"] * IDS, STABLE_FIRST)
def test_each_tentative_id_is_settled_exactly_once(
    truth: Sequence[bytes | None], steps: Steps
) -> None:
    """It has a stable result, or one undo, whatever the forks and the crashes were."""
    world = run(truth, steps)
    records = list(world.records())
    told = {record.id for record in records if isinstance(record, TentativeResult)}
    stable = {record.id for log in world.stable for record in log}
    undone = Counter(record.id for record in records if isinstance(record, Undo))
    assert undone == Counter(told - stable)
    assert world.settling.open_results == 0
    event(f"undone: {len(undone)}, confirmed or replaced: {len(told & stable)}")


@settings(max_examples=examples(300))
@given(TRUTH, STEPS, st.integers(0, 6))
def test_the_done_mark_comes_last(truth: Sequence[bytes | None], steps: Steps, last: int) -> None:
    """In each partition; also when the marks of some partitions were lost in a crash."""
    world = run(truth, steps, last)
    world.step("crash", 0, 0)
    world.finish()
    records = list(world.records())
    for log in world.tentative:
        marked: set[Generation] = set()
        for record in log:
            if isinstance(record, DoneMark):
                marked.add(record.generation)
            else:
                assert record.generation not in marked
        assert marked >= generations(records)


@settings(max_examples=examples(200))
@given(TRUTH, STEPS, st.integers(0, 6))
def test_a_promise_of_a_mark_has_passed_its_generation(
    truth: Sequence[bytes | None], steps: Steps, last: int
) -> None:
    """So a reader that was promised as much has nothing of it left."""
    world = run(truth, steps, last)
    records = list(world.records())
    promised = {one.generation: one.promised_ms for one in records if isinstance(one, DoneMark)}
    for record in records:
        if not isinstance(record, DoneMark) and record.generation in promised:
            assert record.timestamp_ms <= promised[record.generation]
    assert len(world.tentative) == PARTITIONS
