"""Whether a cluster has room for a node, from what its workers have left."""

import pytest

from pipeline.errors import UnavailableError
from pipeline.settings import Settings, combine
from pipeline.spark.master import WorkerSeen, megabytes, words

MASTER = "spark://one:7077"


def settings(memory: str) -> Settings:
    """Settings of a node on a cluster."""
    return combine((("flag", {"spark.master": MASTER, "spark.executor_memory": memory}),))


@pytest.mark.parametrize(
    ("memory", "expected"), [("2g", 2048), ("512m", 512), ("2048K", 2), ("1t", 1024 * 1024)]
)
def test_memory_is_read_as_spark_writes_it(memory: str, expected: int) -> None:
    """In either case of the letter."""
    assert megabytes(memory) == expected


def test_only_workers_with_room_for_an_executor_count() -> None:
    """A core without memory is of no use."""
    workers = (WorkerSeen(4, 2048), WorkerSeen(1, 1024), WorkerSeen(8, 1023))
    assert words(workers, settings("1g")) == "3 workers, 5 free cores for executors"


@pytest.mark.parametrize(
    "workers", [(), (WorkerSeen(0, 9000),), (WorkerSeen(4, 1023), WorkerSeen(0, 1024))]
)
def test_a_cluster_without_room_is_told(workers: tuple[WorkerSeen, ...]) -> None:
    """With how much a node wants, and what to do."""
    with pytest.raises(UnavailableError, match="a free core and 1g of free memory") as caught:
        words(workers, settings("1g"))
    assert MASTER in caught.value.place
    assert "spark.cores" in caught.value.hint
