"""Write times of a lane's batches, from its commit markers: parts of a window's latency."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.harness import PARTITIONS, Stack
from benchmarks.sides import Run
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.reader import TopicReader
from brokers.kafka_interface import FETCH_WAIT_RANGE_MS
from pipeline.ids import TopicName
from pipeline.markers.codec import decode_marker
from pipeline.markers.commit_marker import CommitMarker


@dataclass(frozen=True, slots=True)
class LaneLog:
    """Write times of a lane's batches: (event time reached, ms), in order."""

    progressed: tuple[tuple[int, int], ...]
    evicted: tuple[tuple[int, int], ...]
    names = (
        "batch with that reading written",
        "batch that closes the window written",
        "held by the reader",
    )

    def parts(self, end_ms: int, needed_ms: float, held_ms: float) -> tuple[float, ...]:
        """Duration of each step for one window, in ms."""
        reached = [_first(log, end_ms - 1, held_ms) for log in (self.progressed, self.evicted)]
        return tuple(later - earlier for earlier, later in pairwise([needed_ms, *reached, held_ms]))


def _first(log: Sequence[tuple[int, int]], event_ms: int, otherwise: float) -> float:
    return next((at for to, at in log if to >= event_ms), otherwise)


def lane_log(stack: Stack, run: Run) -> LaneLog:
    """Read the commit markers of the fragment that writes a run's last output."""
    markers = markers_of(stack, run.network, run.last_box)
    return LaneLog(
        progressed=tuple(
            (min(m.progress.values()), m.written_at_ms)
            for m in markers
            if len(m.progress) == PARTITIONS
        ),
        evicted=tuple((m.eviction_ms, m.written_at_ms) for m in markers if m.eviction_ms),
    )


def markers_of(stack: Stack, network: str, fragment: str) -> list[CommitMarker]:
    """The commit markers of a fragment, as far as they are kept."""
    topic = f"local.{network}.{fragment}.markers"
    return [decode_marker(value, topic) for _, _, value in topic_records(stack, topic)]


def topic_records(stack: Stack, topic: str) -> list[tuple[int, int, bytes]]:
    """The current records of a topic: partition, timestamp in ms, value."""
    admin = KafkaAdmin(stack.bootstrap_servers, 30.0)
    name = TopicName(topic)
    starts, ends = admin.start_offsets([name])[name], admin.end_offsets([name])[name]
    with TopicReader(stack.bootstrap_servers, 30.0, fetch_wait_ms=FETCH_WAIT_RANGE_MS) as reader:
        reader.assign({name: starts})
        return [
            (record.partition, record.timestamp_ms, record.value or b"")
            for record in reader.read_to({name: ends})
        ]
