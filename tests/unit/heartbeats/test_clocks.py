"""Offsets of clocks, by heartbeats."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.records import KafkaRecord
from pipeline.heartbeats.clocks import ClockOffset, offset_of_reader, offsets_of_nodes
from pipeline.heartbeats.codec import encode
from pipeline.heartbeats.heartbeat import DELIVERY_MS, Heartbeat
from pipeline.ids import Millis, NodeId, Offset, SteadyMillis, TopicName

N1, N2 = NodeId("n1"), NodeId("n2")
LIVES = {N1: Millis(7), N2: Millis(8)}
NOW = 1_700_000_000_000
times = st.integers(min_value=-(10**7), max_value=10**7)


def stamped(at_ms: int, value: bytes = b"?") -> KafkaRecord:
    """A record that the broker has appended at a time of its clock."""
    return KafkaRecord(TopicName("t"), 0, Offset(0), Millis(at_ms), None, value)


def beat(node: NodeId, wall_ms: int | None, life: int | None = None) -> bytes:
    """A heartbeat."""
    wall = None if wall_ms is None else Millis(wall_ms)
    of = LIVES[node] if life is None else Millis(life)
    return encode(Heartbeat(node, of, 1, SteadyMillis(0), 0, wall_ms=wall))


@given(times, st.lists(st.integers(0, DELIVERY_MS), min_size=1))
def test_the_offset_of_a_node_is_in_the_range(ahead_ms: int, delays_ms: Sequence[int]) -> None:
    """However long deliveries take."""
    records = [
        stamped(NOW + at, beat(N1, NOW + at - delay_ms + ahead_ms))
        for at, delay_ms in enumerate(delays_ms)
    ]
    (found,) = offsets_of_nodes(records, LIVES)
    assert found.node == N1
    assert found.least_ms <= ahead_ms <= found.most_ms
    assert abs(found.sure_ms) <= abs(ahead_ms)


@given(times, st.lists(st.integers(0, 2_000), min_size=1), st.integers(0, 500))
def test_the_offset_of_the_reader_is_in_the_range(
    ahead_ms: int, appended_ms: Sequence[int], read_ms: int
) -> None:
    """Of the machine that reads, while it does."""
    began_ms, ended_ms = NOW + ahead_ms, NOW + max(appended_ms) + read_ms + ahead_ms
    records = [stamped(NOW + at) for at in appended_ms]
    found = offset_of_reader(records, Millis(began_ms), Millis(ended_ms))
    assert found is not None
    assert found.least_ms <= ahead_ms <= found.most_ms


def test_without_heartbeats_nothing_is_known() -> None:
    """Nor by those of other lives, of earlier versions, and of records that are none."""
    assert offset_of_reader((), Millis(1), Millis(2)) is None
    others = [beat(N1, NOW, life=6), beat(N2, None), b"?"]
    assert offsets_of_nodes([stamped(NOW, value) for value in others], LIVES) == ()


@pytest.mark.parametrize(
    ("least_ms", "most_ms", "sure_ms"), [(3, 9, 3), (-3, 9, 0), (-9, -3, -3), (0, 0, 0)]
)
def test_what_is_sure_is_the_end_of_the_range_nearer_to_none(
    least_ms: int, most_ms: int, sure_ms: int
) -> None:
    """Ahead or behind; neither, if it may be either."""
    assert ClockOffset(N1, least_ms, most_ms).sure_ms == sure_ms
