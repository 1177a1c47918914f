"""Limit of a fragment's batches; sampling itself is tested on Kafka."""

from typing import cast

from pipeline.ids import Offset, StreamName, TopicName
from pipeline.markers.positions import InputPartition, Positions
from pipeline.spark.run.batch_sizer import BatchLimit, BatchSizer
from tests.unit.boundaries.support import SPEED, positions
from tests.unit.spark.run.fork_world import bounded

TENTATIVE = TopicName("tolls.speed.tentative")


class Sizer:
    """Records what is sampled."""

    def __init__(self) -> None:
        self.asked: list[Positions] = []

    def records_at_once(self, start: Positions) -> int | None:
        """As many as it was asked."""
        self.asked.append(start)
        return len(self.asked)


def at(offset: int) -> Positions:
    """A position in the tentative topic of the same input."""
    return {InputPartition(StreamName(SPEED.stream), TENTATIVE, 0): Offset(offset)}


def test_what_a_fork_may_read_is_sampled_once_it_is_known_from_where() -> None:
    """What is at the beginning of its topic may be gone: then nothing else would be sampled."""
    sizer = Sizer()
    limit = BatchLimit(cast("BatchSizer", sizer), bounded(None), {TENTATIVE})
    assert limit.at({**positions(SPEED, 0), **at(0)}) == 1
    assert limit.at(positions(SPEED, 0)) == 1
    assert limit.at({**positions(SPEED, 0), **at(7)}) == 2
    assert sizer.asked == [positions(SPEED, 0), {**positions(SPEED, 0), **at(7)}]
