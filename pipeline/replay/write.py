"""Transactional write of a replay's results: all of them in one Kafka transaction.

A topic that a replay created is empty to readers of committed records until its last record is
committed, also after a run was killed. So a topic with a visible record is complete. A replay
without results creates no topic.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice

from brokers.kafka_interface import TopicAdmin, TransactionWriter
from brokers.records import NewTopicSpec
from pipeline.clock import Clock, Deadline
from pipeline.errors import MedusaError, RefusedError
from pipeline.lanes.result_headers import RESULT_ID

Result = tuple[bytes | None, bytes, int, int, bytes | None]
"""Key, value, timestamp in ms, partition or -1 (by key), result id if it has one."""

TRANSACTION_S = 900
"""Transaction timeout: Kafka's default for the maximum that brokers allow."""
WRITE_WITHIN_S = 780.0
COMMIT_WITHIN_S = 100.0
START_WITHIN_S = 60.0
RECORDS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Target:
    """Target topic of a replay.

    Args:
        spec: the topic, created if it does not exist.
        check: raises RefusedError if the topic exists and contains a record; called when every
            other run is fenced from it.
        report: called with the number of written records, after each portion.
    """

    spec: NewTopicSpec
    check: Callable[[], None]
    report: Callable[[int], None]


def write(
    results: Iterable[Result],
    target: Target,
    writer: TransactionWriter,
    topics: TopicAdmin,
    clock: Clock,
) -> int:
    """Write all results in one transaction and return their number; none: no topic is created.

    Raises:
        RefusedError: the topic contains records, or writing exceeds the transaction timeout.
        FencedError: another run into the same topic began.
        UnavailableError, RetryError: no record is visible; run it again.
    """
    rest = iter(results)
    first = next(rest, None)
    if first is None:
        return 0
    writer.start(Deadline.after(clock, START_WITHIN_S, "ending an earlier run"))
    target.check()
    created = topics.create_topics((target.spec,))
    done = False
    try:
        with one_transaction(writer, clock):
            count = _written(chain((first,), rest), target, writer, clock)
        done = True
        return count
    finally:
        if not done:
            with suppress(MedusaError):
                topics.delete_topics(created)


@contextmanager
def one_transaction(writer: TransactionWriter, clock: Clock) -> Iterator[None]:
    """A transaction around the block: committed after it, aborted if it or the commit fails."""
    committed = False
    try:
        writer.begin()
        yield
        writer.commit(Deadline.after(clock, COMMIT_WITHIN_S, "committing"))
        committed = True
    finally:
        if not committed:
            with suppress(MedusaError):
                writer.abort(Deadline.after(clock, START_WITHIN_S, "giving up"))


def _written(
    results: Iterator[Result], target: Target, writer: TransactionWriter, clock: Clock
) -> int:
    deadline = Deadline.after(clock, WRITE_WITHIN_S, "writing")
    count = 0
    while part := list(islice(results, RECORDS_AT_ONCE)):
        for key, value, timestamp_ms, partition, result in part:
            writer.send(
                target.spec.name,
                key,
                value,
                timestamp_ms=timestamp_ms,
                headers=() if result is None else ((RESULT_ID, result),),
                partition=partition,
            )
        count += len(part)
        target.report(count)
        if deadline.passed:
            raise RefusedError(
                f"{count} records were written in {WRITE_WITHIN_S:g} s and there are more, but a "
                "transaction cannot last longer; all of it was given up",
                place=f"topic {target.spec.name}",
                hint="replay it in shorter pieces, each into a topic of its own.",
            )
    return count
