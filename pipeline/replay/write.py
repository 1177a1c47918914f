"""Writes the results of a replay: all of them in one Kafka transaction, or none.

A topic that a replay made holds nothing until its last record is committed. So a run that is killed
leaves a topic in which no reader of committed records sees anything, and a topic that shows a
record is complete. A replay without any result makes no topic.
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
"""Key, value, timestamp in ms, partition or -1, id if it has one."""

TRANSACTION_S = 900
"""How long a transaction may be open: Kafka's own default for the most that brokers allow."""
WRITE_WITHIN_S = 780.0
COMMIT_WITHIN_S = 100.0
START_WITHIN_S = 60.0
RECORDS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Target:
    """Where a replay writes.

    Args:
        spec: the topic, as it is created if it is not there.
        check: raises RefusedError when the topic is there and holds something; called once no
            other run can write into it any more.
        tell: hears how many records are written, now and then.
    """

    spec: NewTopicSpec
    check: Callable[[], None]
    tell: Callable[[int], None]


def write(
    results: Iterable[Result],
    target: Target,
    writer: TransactionWriter,
    topics: TopicAdmin,
    clock: Clock,
) -> int:
    """Write all results in one transaction; returns how many, and makes no topic for none.

    Raises:
        RefusedError: the topic holds something, or a transaction cannot last as long as it takes.
        FencedError: another run into the same topic began.
        UnavailableError, RetryError: nothing of it is visible; run it again.
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
    """Commit what the block sends; give all of it up if the block or the commit fails."""
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
        target.tell(count)
        if deadline.passed:
            raise RefusedError(
                f"{count} records were written in {WRITE_WITHIN_S:g} s and there are more, but a "
                "transaction cannot last longer; all of it was given up",
                place=f"topic {target.spec.name}",
                hint="replay it in shorter pieces, each into a topic of its own.",
            )
    return count
