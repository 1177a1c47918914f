"""Random transactions and deletions give the same log in memory and on a real broker."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokers.embedded.stack import EmbeddedStack
from brokers.kafka_interface import Isolation, TransactionWriter
from brokers.records import Ends
from pipeline.errors import MedusaError
from pipeline.ids import Offset, TopicName, TransactionalId
from tests.conformance.conftest import (
    TIMEOUT_S,
    Cluster,
    deadline,
    embedded_cluster,
    memory_cluster,
)
from tests.conftest import WaitFor
from tests.profiles import examples

STEPS = st.lists(
    st.tuples(
        st.sampled_from(("send", "send", "begin", "write", "write", "commit", "abort", "start")),
        st.integers(0, 1),
        st.integers(0, 1),
    )
    | st.tuples(st.just("delete"), st.integers(0, 1), st.integers(0, 4)),
    max_size=14,
)


class Play:
    """Performs steps on a cluster: two transactional ids, two partitions."""

    def __init__(self, cluster: Cluster, topic: TopicName) -> None:
        self.cluster = cluster
        self.topic = topic
        self.producer = cluster.kafka.producer(TIMEOUT_S)
        self.writers = [self._started(number) for number in (0, 1)]

    def _started(self, number: int) -> TransactionWriter:
        writer = self.cluster.kafka.transactions(TransactionalId(f"{self.topic}.{number}"))
        writer.start(deadline())
        return writer

    def do(self, kind: str, one: int, other: int) -> str:
        """Perform a step; returns the name of its error, or an empty text."""
        try:
            match kind:
                case "send":
                    self.producer.send(self.topic, None, b"s", partition=other)
                    self.producer.flush(TIMEOUT_S)
                case "begin":
                    self.writers[one].begin()
                case "write":
                    self.writers[one].send(self.topic, None, b"w", timestamp_ms=1, partition=other)
                case "commit":
                    self.writers[one].commit(deadline())
                case "abort":
                    self.writers[one].abort(deadline())
                case "start":
                    self.writers[one].close()
                    self.writers[one] = self._started(one)
                case _:
                    self.cluster.admin.delete_records(self.topic, {one: Offset(other)})
        except MedusaError as error:
            return type(error).__name__
        return ""

    def state(self) -> tuple[Ends, Ends, Ends]:
        """The first and last offsets of the partitions."""
        admin, topics = self.cluster.admin, (self.topic,)
        stable, written = (admin.end_offsets(topics, isolation) for isolation in Isolation)
        return admin.start_offsets(topics), stable, written

    def records(self, isolation: Isolation) -> set[tuple[int, int, bytes | None]]:
        """All records of a reader, up to the end of its isolation level."""
        starts = self.cluster.admin.start_offsets((self.topic,))
        ends = self.cluster.admin.end_offsets((self.topic,), isolation)
        with self.cluster.kafka.reader(TIMEOUT_S, isolation=isolation) as reader:
            reader.assign(starts)
            return {(r.partition, int(r.offset), r.value) for r in reader.read_to(ends)}

    def close(self) -> None:
        """Close the connections."""
        for writer in self.writers:
            writer.close()
        self.producer.close()


def sensible(steps: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """The steps that a driver allows, so without calls outside a transaction."""
    found, opened = [], {0: False, 1: False}
    for step in steps:
        kind, one, _ = step
        if kind in {"write", "commit", "abort"} and not opened[one]:
            continue
        if kind == "begin" and opened[one]:
            continue
        opened[one] = {"begin": True, "commit": False, "abort": False, "start": False}.get(
            kind, opened[one]
        )
        found.append(step)
    return found


@pytest.mark.system
@given(steps=STEPS)
@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_memory_and_broker_agree_on_random_steps(
    embedded_stack: EmbeddedStack, wait_for: WaitFor, steps: list[tuple[str, int, int]]
) -> None:
    """The same steps have the same outcomes, and leave the same log in both."""
    memory, real = memory_cluster(), embedded_cluster(embedded_stack)
    plays = [Play(one, one.topic()) for one in (memory, real)]
    here, there = plays
    try:
        for step in sensible(steps):
            assert there.do(*step) == here.do(*step), step
            expected = [next(iter(one.values())) for one in here.state()]
            wait_for(
                lambda expected=expected: (
                    [next(iter(one.values())) for one in there.state()] == expected
                ),  # type: ignore[misc]
                f"{step}: {expected}",
                within_s=TIMEOUT_S,
            )
        for isolation in Isolation:
            assert there.records(isolation) == here.records(isolation)
    finally:
        for play in plays:
            play.close()
