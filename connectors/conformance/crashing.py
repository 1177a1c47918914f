"""Crashes at every step: what a process does to the outside is counted, and ends at one of them."""

from collections.abc import Callable

from brokers.kafka_interface import ANY_PARTITION, TRANSACTION_MS
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.writers import MemoryTransactions
from brokers.records import Headers
from pipeline.clock import Clock, Deadline
from pipeline.ids import TopicName, TransactionalId

STEPS_MAX = 10_000


class Crash(BaseException):
    """The process ends here, as by kill -9."""


class Steps:
    """Counts steps, and ends the process at one of them; None: at none."""

    def __init__(self, crash_at: int | None = None) -> None:
        self._crash_at = crash_at
        self.taken = 0

    def __call__(self) -> None:
        """One step.

        Raises:
            Crash: at the step that was asked for.
        """
        self.taken += 1
        if self.taken == self._crash_at:
            raise Crash


def each_crash(run: Callable[[Steps], None]) -> int:
    """Run with a crash at step 1, at step 2 and so on, until a run ends without one.

    Args:
        run: begins anew each time; handles the crash, and goes on as a new process would.

    Returns:
        The number of crashes.
    """
    for at in range(1, STEPS_MAX):
        steps = Steps(at)
        run(steps)
        if steps.taken < at:
            return at - 1
    raise AssertionError(f"a run has more than {STEPS_MAX} steps")


class CrashingKafka(MemoryKafka):
    """Kafka in memory, whose transactions have a step before and after each of their calls."""

    def __init__(self, clock: Clock, step: Steps) -> None:
        super().__init__(clock)
        self._step = step

    def transactions(
        self, transactional_id: TransactionalId, transaction_ms: int = TRANSACTION_MS
    ) -> MemoryTransactions:
        """A transactional writer, not started."""
        del transaction_ms
        return _CrashingTransactions(self, transactional_id, self._step)


class _CrashingTransactions(MemoryTransactions):
    def __init__(
        self, kafka: CrashingKafka, transactional_id: TransactionalId, step: Steps
    ) -> None:
        super().__init__(kafka, transactional_id)
        self._step = step

    def start(self, deadline: Deadline) -> None:
        self._step()
        super().start(deadline)
        self._step()

    def begin(self) -> None:
        super().begin()
        self._step()

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int,
        headers: Headers = (),
        partition: int = ANY_PARTITION,
    ) -> None:
        super().send(
            topic, key, value, timestamp_ms=timestamp_ms, headers=headers, partition=partition
        )
        self._step()

    def commit(self, deadline: Deadline) -> None:
        self._step()
        super().commit(deadline)
        self._step()
