"""Limit of a fragment's batches; sampling itself is tested on Kafka."""

from typing import cast

from pipeline.boundaries.next_batch import Limits
from pipeline.ids import Offset, StreamName, TopicName
from pipeline.lanes.batch_size import RECORDS_PER_BATCH
from pipeline.markers.positions import InputPartition, Positions
from pipeline.spark.run.batch_sizer import BatchLimit, BatchSizer
from tests.unit.boundaries.support import SPEED, positions
from tests.unit.spark.run.fork_world import bounded

TENTATIVE = TopicName("tolls.speed.tentative")


class Sizer:
    """Records what is sampled."""

    def __init__(self) -> None:
        self.asked: list[Positions] = []
        self.is_empty = False

    def records_at_once(self, start: Positions) -> int | None:
        """As many as it was asked."""
        self.asked.append(start)
        return None if self.is_empty else len(self.asked)


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


def test_limits_without_a_sample_trust_few_records() -> None:
    """Of an empty topic the size of its records is not known."""
    sizer = Sizer()
    sizer.is_empty = True
    limit = BatchLimit(cast("BatchSizer", sizer), bounded(None))
    empty = limit.limits(positions(SPEED, 0), 200)
    assert empty == Limits(RECORDS_PER_BATCH, 200).before_samples()
    assert limit.sample(positions(SPEED, 0)) is None
    sizer.is_empty = False
    assert limit.limits(positions(SPEED, 1), 200) == Limits(3, 200)
    sizer.is_empty = True
    assert limit.limits(positions(SPEED, 5), 0) == Limits(RECORDS_PER_BATCH)
