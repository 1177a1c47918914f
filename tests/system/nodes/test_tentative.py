"""Tentative results: the node of the fork and of its stable lane is killed."""

import time
from collections.abc import Iterator

import pytest

from brokers.kafka.producer import PlainProducer
from pipeline.tentative.records import TentativeResult
from tests.system.nodes.feeds import running_nodes
from tests.system.support import Installation, kill
from tests.system.tentative import Early

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(600),
    pytest.mark.second_tier(
        "test_results_come_without_a_partition_and_are_corrected has a fork and its settlement, "
        "and the unit tests of the tentative topic a crash at each point"
    ),
]


@pytest.fixture
def producer(medusa: Installation) -> Iterator[PlainProducer]:
    """Sends readings."""
    producer = PlainProducer(medusa.stack.kafka_bootstrap_servers, 10)
    yield producer
    producer.close()


def test_the_next_owner_settles_what_a_killed_fork_has_left(
    medusa: Installation, producer: PlainProducer
) -> None:
    """It has a fork of its own, since the partition is still away; all is exact in the end."""
    with running_nodes(medusa, "forks_a") as first:
        early = Early(medusa, producer, "killed_fork")
        early.run(lambda: bool(medusa.records(early.topic)), "there are stable results")
        cut_ms = int(time.time() * 1000) + 1_000
        early.run(lambda: len(early.results(cut_ms)) > 2, "there are tentative results", away=1)
        kill(first["forks_a"])
        with running_nodes(medusa, "forks_b"):
            early.run(lambda: _epochs(early) == 2, "a fork of the next owner", away=1)
            early.run(lambda: early.is_done, "all tentative results are settled")
            early.check()


def _epochs(early: Early) -> int:
    """How many owners have had forks."""
    found = (one for one in early.tentative() if isinstance(one, TentativeResult))
    return len({one.generation.epoch for one in found})
