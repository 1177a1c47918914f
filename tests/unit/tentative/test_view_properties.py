"""Properties of what a reader sees, however the topics interleave."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from hypothesis import event, given, settings
from hypothesis import strategies as st

from pipeline.tentative.generation import Generation
from pipeline.tentative.records import DoneMark, TentativeRecord, TentativeResult
from pipeline.tentative.view import Event, OnDone, OnStable, OnTentative, OnUndo, View
from tests.profiles import examples
from tests.unit.tentative.world import ALL, PARTITIONS, STEPS, TRUTH, StableRecord, World


@dataclass
class Reader:
    """Reads the topics in any order, and checks each event."""

    world: World
    view: View = field(default_factory=View)
    seen: dict[bytes, bytes] = field(default_factory=dict)
    open: dict[bytes, Generation] = field(default_factory=dict)
    closed: set[bytes] = field(default_factory=set)
    done: set[Generation] = field(default_factory=set)
    stable_read: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    tentative_read: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    promises_read: int = 0

    def turns(self) -> list[Callable[[], None]]:
        """What can be read next."""
        found: list[Callable[[], None]] = []
        for partition in range(PARTITIONS):
            if self.stable_read[partition] < len(self.world.stable[partition]):
                found.append(lambda at=partition: self.read_stable(at))  # type: ignore[misc]
            if self.tentative_read[partition] < len(self.world.tentative[partition]):
                found.append(lambda at=partition: self.read_tentative(at))  # type: ignore[misc]
        if self._covers_next():
            found.append(self.read_promise)
        return found

    def read_stable(self, partition: int) -> None:
        """Read the next stable result of a partition."""
        record = self.world.stable[partition][self.stable_read[partition]]
        self.stable_read[partition] += 1
        self.take(self.view.stable(record.id, record.value, record.timestamp_ms), stable=record)

    def read_tentative(self, partition: int) -> None:
        """Read the next record of a partition of the tentative topic."""
        record = self.world.tentative[partition][self.tentative_read[partition]]
        self.tentative_read[partition] += 1
        self.take(self.view.tentative(record))

    def read_promise(self) -> None:
        """The positions of the next boundary were read."""
        boundary_ms = self.world.promises[self.promises_read].boundary_ms
        self.promises_read += 1
        self.take(self.view.promised(boundary_ms))

    def take(self, events: Sequence[Event], stable: StableRecord | None = None) -> None:
        """Check events, and apply them to what is seen."""
        for one in events:
            match one:
                case OnTentative(result):
                    assert result.id not in self.closed
                    assert result.generation not in self.done
                    assert result.generation >= self.open.get(result.id, result.generation)
                    self.open[result.id] = result.generation
                    self.seen[result.id] = result.value
                case OnStable(_, confirms):
                    assert stable is not None
                    before = self.seen.get(stable.id)
                    assert confirms == (None if before is None else before == stable.value)
                    self._close(stable.id, told=before is not None)
                    self.seen[stable.id] = stable.value
                case OnUndo(undo):
                    self._close(undo.id, told=True)
                    del self.seen[undo.id]
                case OnDone(generation):
                    assert generation not in self.done
                    assert generation not in self.open.values()
                    self.done.add(generation)
                case _:
                    assert_never(one)

    def _close(self, result_id: bytes, *, told: bool) -> None:
        assert result_id not in self.closed or not told
        assert (self.open.pop(result_id, None) is not None) == told
        self.closed.add(result_id)

    def _covers_next(self) -> bool:
        if self.promises_read == len(self.world.promises):
            return False
        positions = self.world.promises[self.promises_read].positions
        return all(at >= end for at, end in zip(self.stable_read, positions, strict=True))


def read_all(reader: Reader, order: Sequence[int]) -> None:
    """Read everything; the numbers choose what is next."""
    at = 0
    while turns := reader.turns():
        choice = order[at % len(order)] if order else 0
        turns[choice % len(turns)]()
        at += 1


def stable_values(world: World) -> dict[bytes, bytes]:
    """What is true in the end."""
    return {record.id: record.value for log in world.stable for record in log}


def marked(world: World) -> set[Generation]:
    """The generations with a done mark."""
    return {one.generation for one in world.records() if isinstance(one, DoneMark)}


Steps = Sequence[tuple[str, int, int]]
ORDER = st.lists(st.integers(0, 11), max_size=60)
LAST = st.one_of(st.just(ALL), st.integers(0, 6))


def world_of(truth: Sequence[bytes | None], steps: Steps, last: int) -> World:
    """A world in which the boundary has passed everything."""
    world = World(truth)
    for step in steps:
        world.step(*step)
    world.finish(last)
    return world


@settings(max_examples=examples(500))
@given(TRUTH, STEPS, LAST, ORDER)
def test_what_is_seen_in_the_end_are_the_stable_results(
    truth: Sequence[bytes | None], steps: Steps, last: int, order: Sequence[int]
) -> None:
    """Whatever the order of the topics, the forks, the crashes, and the lost undos and marks."""
    world = world_of(truth, steps, last)
    reader = Reader(world)
    read_all(reader, order)
    assert reader.seen == stable_values(world)
    assert reader.open == {}
    assert reader.view.open_results == 0
    assert reader.done == marked(world)
    event(f"done: {len(reader.done)}")


@settings(max_examples=examples(300))
@given(TRUTH, STEPS, ORDER, st.data())
def test_lost_undos_and_marks_change_nothing_in_the_end(
    truth: Sequence[bytes | None], steps: Steps, order: Sequence[int], data: st.DataObject
) -> None:
    """A reader undoes by the boundary what is not undone by a record."""
    world = world_of(truth, steps, ALL)
    for log in world.tentative:
        lost = data.draw(st.lists(st.booleans(), min_size=len(log), max_size=len(log)))
        log[:] = [one for one, gone in zip(log, lost, strict=True) if not (gone and is_note(one))]
    reader = Reader(world)
    read_all(reader, order)
    assert reader.seen == stable_values(world)
    assert reader.done == marked(world)


def is_note(record: TentativeRecord) -> bool:
    """Whether it is an undo or a mark."""
    return not isinstance(record, TentativeResult)


@settings(max_examples=examples(300))
@given(TRUTH, STEPS, ORDER, st.lists(st.integers(0, 20), min_size=2, max_size=2))
def test_a_reader_may_join_anywhere(
    truth: Sequence[bytes | None], steps: Steps, order: Sequence[int], joined: Sequence[int]
) -> None:
    """One that has missed the first tentative records sees the same in the end."""
    world = world_of(truth, steps, ALL)
    reader = Reader(world)
    reader.tentative_read = [
        min(at, len(log)) for at, log in zip(joined, world.tentative, strict=True)
    ]
    read_all(reader, order)
    assert reader.seen == stable_values(world)


@settings(max_examples=examples(300))
@given(TRUTH, STEPS, ORDER)
def test_records_of_a_fenced_owner_change_nothing_in_the_end(
    truth: Sequence[bytes | None], steps: Steps, order: Sequence[int]
) -> None:
    """Results of older generations that are written again at the end of the topic."""
    world = world_of(truth, steps, ALL)
    for log in world.tentative:
        log.extend([one for one in log if isinstance(one, TentativeResult)])
    reader = Reader(world)
    read_all(reader, order)
    assert reader.seen == stable_values(world)
    assert reader.done == marked(world)
