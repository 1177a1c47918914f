"""An input's tentative topic, as the forks of its readers use it."""

from dataclasses import dataclass, field

import pytest

from brokers.records import KafkaRecord
from pipeline.boundaries.deadline import Since
from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.tentative_input import TentativeInput
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis, TopicName
from pipeline.tentative.generation import Generation
from pipeline.tentative.progress import HeldBoundary, Progress
from pipeline.tentative.records import DoneMark, TentativeRecord, TentativeResult, encode
from pipeline.tentative.upstream import Upstream
from tests.unit.boundaries.support import SPEED

TOPIC = TopicName("tolls.speed.tentative")
FIRST, SECOND = Generation(Epoch(2), 1), Generation(Epoch(2), 2)
NOW_MS = SteadyMillis(5_000)


@dataclass
class World:
    """The topic, and what was read of it."""

    upstream: Upstream = field(default_factory=lambda: Upstream(SPEED, TOPIC, 2))
    ends: list[int] = field(default_factory=lambda: [0, 0])

    def result(self, at_ms: int, partition: int = 0, generation: Generation = FIRST) -> None:
        """A tentative result."""
        made = TentativeResult(None, b"v", Millis(at_ms), partition, b"%d" % at_ms, generation)
        self.add(made, partition)

    def add(self, one: TentativeRecord, partition: int) -> None:
        """A record."""
        sent = encode(one, SPEED.topic_id)
        at_ms = Millis(1) if sent.timestamp_ms is None else sent.timestamp_ms
        self._read(partition, at_ms, sent.value, dict(sent.headers))

    def progress(
        self,
        begins: int = -1,
        complete: int = -1,
        *held: tuple[int, int],
        generation: Generation = FIRST,
        partitions: tuple[int, ...] = (0, 1),
        count: int = 2,
    ) -> None:
        """How far the generation is, in some partitions."""
        waits = tuple(HeldBoundary(Millis(event), for_ms) for event, for_ms in held)
        made = Progress(generation, count, Millis(begins), Millis(complete), waits)
        for partition in partitions:
            self._read(partition, Millis(1), None, dict(made.headers(SPEED.topic_id)))

    def _read(
        self, partition: int, at_ms: Millis, value: bytes | None, headers: dict[str, bytes | None]
    ) -> None:
        offset = Offset(self.ends[partition])
        self.ends[partition] += 1
        found = KafkaRecord(TOPIC, partition, offset, at_ms, None, value, tuple(headers.items()))
        self.upstream.add(found, NOW_MS)

    def offer(self, cut_ms: int) -> TentativeInput | None:
        """What is offered after a cut."""
        return self.upstream.offer(Millis(cut_ms))


@pytest.fixture
def world() -> World:
    """Three results, which are complete from 9 to 39."""
    world = World()
    world.result(10)
    world.result(20, 1)
    world.result(30)
    world.progress(9, 39)
    return world


def test_an_offer_begins_with_the_first_results_after_the_cut(world: World) -> None:
    """In a partition without any, with the mark, which is a record too."""
    found = world.offer(20)
    assert found is not None
    assert found.begin == {0: 1, 1: 1}
    assert found.complete == PendingBoundary(Millis(39), {0: Offset(3), 1: Offset(2)})
    assert (found.stream, found.stable, found.topic) == (SPEED.stream, SPEED.topic, TOPIC)
    assert (found.generation, found.cut_ms) == ("2.1", 20)


@pytest.mark.parametrize("cut_ms", [8, 39, 40])
def test_there_is_no_offer_where_results_are_not_complete(world: World, cut_ms: int) -> None:
    """Below its begin, or beyond its boundary."""
    assert world.offer(cut_ms) is None
    assert world.upstream.offer(None) is None


def test_a_boundary_counts_when_it_is_in_each_partition(world: World) -> None:
    """Until then, that before it does."""
    world.result(40)
    world.progress(9, 49, partitions=(0,))
    found = world.offer(20)
    assert found is not None
    assert found.complete.boundary_ms == 39
    world.progress(9, 49, partitions=(1,))
    renewed = world.upstream.renewed(found)
    assert renewed is not None
    assert renewed.complete == PendingBoundary(Millis(49), {0: Offset(5), 1: Offset(3)})
    assert renewed.begin == found.begin


@pytest.mark.parametrize("ends", ["done", "newer", "out of order", "a dead process", "unlike"])
def test_a_generation_that_ends_is_outdated(world: World, ends: str) -> None:
    """No offer comes of it, and what was read of it does not count."""
    found = world.offer(20)
    assert found is not None
    match ends:
        case "done":
            world.add(DoneMark(1, FIRST, Millis(39)), 1)
        case "newer":
            world.progress(generation=SECOND, partitions=(1,))
        case "out of order":
            world.result(25)
        case "a dead process":
            world.result(50, generation=Generation(Epoch(1), 7))
        case _:
            world.progress(9, 49, partitions=(0,))
            world.progress(9, 59, partitions=(1,))
    assert world.upstream.renewed(found) is None
    assert world.offer(20) is None


def test_records_of_an_older_generation_in_another_partition_are_read_late(world: World) -> None:
    """Partitions are not read in one order."""
    world.progress(29, 49, generation=SECOND, partitions=(0,))
    world.result(40, 1)
    world.progress(9, 49, partitions=(1,))
    world.progress(29, 49, generation=SECOND, partitions=(1,))
    found = world.offer(30)
    assert found is not None
    assert (found.generation, found.begin) == ("2.2", {0: 3, 1: 4})


def test_what_is_held_back_is_known_since_then(world: World) -> None:
    """Also before anything is published; nothing is, once all is settled."""
    world.progress(-1, -1, (19, 400), (29, 100), generation=SECOND, partitions=(0,))
    assert world.upstream.awaited == (
        Since(Millis(19), SteadyMillis(4_600)),
        Since(Millis(29), SteadyMillis(4_900)),
    )
    world.add(DoneMark(0, SECOND, Millis(29)), 0)
    assert not world.upstream.awaited


def test_no_cut_is_before_what_was_forgotten(world: World) -> None:
    """Its results are kept no longer."""
    world.upstream.forget(Millis(20))
    assert world.offer(19) is None
    assert world.offer(20) is not None


def test_more_results_than_are_kept_are_not_offered() -> None:
    """The next generation is."""
    world = World(Upstream(SPEED, TOPIC, 2, most=1))
    world.result(10)
    world.result(20)
    world.progress(9, 39)
    assert world.offer(9) is None
    world.result(30, generation=SECOND)
    world.progress(9, 39, generation=SECOND)
    assert world.offer(9) is not None


def test_a_topic_that_has_grown_is_noticed(world: World) -> None:
    """Its new partitions are not read."""
    assert not world.upstream.has_grown
    world.progress(9, 49, count=3, partitions=(0,))
    assert world.upstream.has_grown
