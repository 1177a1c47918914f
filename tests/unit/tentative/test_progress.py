"""Progress of a generation in its tentative topic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.records import KafkaRecord
from pipeline.boundaries.deadline import Since, Watch
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis, TopicId, TopicName
from pipeline.lanes.result_headers import PROGRESS
from pipeline.network.boxes.shape import Windowed
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.tentative.generation import Generation
from pipeline.tentative.progress import HeldBoundary, Progress, held_boundaries, progress_of
from pipeline.tentative.records import Unread, decode

ID = TopicId("one")
FIRST = Generation(Epoch(2), 1)
TIMES = st.integers(0, 10**15).map(Millis)


def record(progress: Progress, **headers: bytes) -> KafkaRecord:
    """A record of it, of which headers may be others."""
    found = {**dict(progress.headers(ID)), **headers}
    topic, made = TopicName("out.tentative"), tuple(found.items())
    return KafkaRecord(topic, 0, Offset(0), Millis(1), None, None, made)


@given(
    st.integers(1, 500),
    st.just(Millis(-1)) | TIMES,
    st.just(Millis(-1)) | TIMES,
    st.lists(st.builds(HeldBoundary, TIMES, st.integers(0, 10**9)), max_size=5),
)
def test_what_is_written_is_read(
    partitions: int, begins: Millis, complete: Millis, held: list[HeldBoundary]
) -> None:
    """Readers of results ignore it."""
    progress = Progress(FIRST, partitions, begins, complete, tuple(held))
    assert progress_of(record(progress), ID) == progress
    assert decode(record(progress), ID) is Unread.PROGRESS


@pytest.mark.parametrize(
    "text", [b"", b"1", b"1 2", b"1 2 3 4", b"1 2 x", b"1 2 3 4:5 ", b"-1 2 3"]
)
def test_a_damaged_one_is_none(text: bytes) -> None:
    """So is one of another topic."""
    progress = Progress(FIRST, 1)
    assert progress_of(record(progress, **{PROGRESS: text}), ID) is None
    assert progress_of(record(progress), TopicId("other")) is None


def test_what_is_held_back_is_a_boundary_of_the_output() -> None:
    """Of windows: until just before the end of the next one."""
    moments = (Since(Millis(19), SteadyMillis(100)), Since(Millis(35), SteadyMillis(160)))
    shape = Windowed(TumblingWindow(size_ms=10, offset_ms=0))
    found = held_boundaries(Watch(1_000, moments), shape, SteadyMillis(200))
    assert found == (HeldBoundary(Millis(29), 100), HeldBoundary(Millis(39), 40))
