import pytest

from brokers.records import KafkaRecord
from pipeline.errors import RetryError
from pipeline.ids import Millis, Offset, TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.records.selection import Selector
from pipeline.operations.records.tail import Tail, TailLimits, TailStart
from tests.unit.deploy.twins import World

TOPIC = TopicName("car-sightings")


@pytest.fixture
def world(world: World) -> World:
    """Four records, one a second."""
    world.put(*(KafkaRecord(TOPIC, 0, Offset(n), Millis(1_000 * n), None, b"") for n in range(4)))
    return world


def _offsets(world: World, connections: Connections, limits: TailLimits) -> list[int]:
    selector = Selector(connections.registry, None)
    tail = Tail(TOPIC, limits, selector, connections, world.clock)
    return [record.offset for record in tail.records()]


@pytest.mark.parametrize(
    ("start", "last", "offsets"),
    [
        (TailStart.BEGINNING, None, [0, 1, 2, 3]),
        (TailStart.NOW, None, []),
        (Millis(1_500), None, [2, 3]),
        (TailStart.BEGINNING, 1, [3]),
        (Millis(1_500), 9, [2, 3]),
    ],
)
def test_a_tail_begins_at_an_end_or_at_a_time(
    world: World,
    connections: Connections,
    start: TailStart | Millis,
    last: int | None,
    offsets: list[int],
) -> None:
    """With `last`, at most that number of those records."""
    limits = TailLimits(start, last, None, follow=False)
    assert _offsets(world, connections, limits) == offsets


def test_the_last_records_are_an_error_if_they_are_not_found_in_time(
    world: World, connections: Connections
) -> None:
    """Other tails end without error, after one poll."""
    over = world.clock.monotonic_s()
    with pytest.raises(RetryError, match="not found in time"):
        _offsets(world, connections, TailLimits(TailStart.BEGINNING, 1, over, follow=False))
    limits = TailLimits(TailStart.BEGINNING, None, over, follow=True)
    assert _offsets(world, connections, limits) == [0, 1, 2, 3]
