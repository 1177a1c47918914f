"""Checks of reads against the transactions in the broker's log. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from brokers.records import KafkaRecord
from pipeline.ids import TopicName
from tests.faults.history import Finding, Kind, Place, place_of
from tests.faults.segments import NO_PRODUCER, Batch, Log, Outcome, outcomes

Records = Iterable[KafkaRecord]


@dataclass(frozen=True, slots=True)
class Reads:
    """The recorded data of some topics.

    Args:
        logs: their partitions in the broker's files.
        committed: records of a reader with `read_committed` after the run.
        uncommitted: records of one with `read_uncommitted` after the run.
        observed: records of one with `read_committed` during the run.
        compacted: topics from which older records may have been deleted.
    """

    logs: tuple[Log, ...]
    committed: tuple[KafkaRecord, ...]
    uncommitted: tuple[KafkaRecord, ...]
    observed: tuple[KafkaRecord, ...]
    compacted: frozenset[TopicName] = frozenset()


def check_reads(reads: Reads) -> tuple[Finding, ...]:
    """No aborted record was read, no committed one is missing, and none has changed."""
    return (
        *_aborted(reads),
        *_unseen(reads),
        *_gaps(reads),
        *_changed(reads),
    )


def check_writers(logs: Iterable[Log], *, guarded: bool) -> tuple[Finding, ...]:
    """A superseded writer never writes again.

    Args:
        logs: partitions that one fragment, or one agent for it, writes to.
        guarded: whether all of it must be in transactions of one producer.
    """
    found: list[Finding] = []
    for log in logs:
        followed: set[tuple[int, int]] = set()
        last: tuple[int, int] | None = None
        for batch in log.batches:
            writer = (batch.producer, batch.epoch)
            if guarded and not batch.transactional:
                text = f"{log.place(batch.first)} was written by {_writer(writer)}"
                found.append(Finding(Kind.UNGUARDED, text))
            if last is not None and writer != last:
                followed.add(last)
            # A broker ends a fenced producer's open transaction under that producer's next epoch.
            if writer in followed and batch.outcome is not Outcome.ABORT:
                text = f"{log.place(batch.first)} was written by {_writer(writer)}, although a "
                found.append(Finding(Kind.ZOMBIE, f"{text}newer one had written before"))
            last = writer
    if guarded:
        found += _one_producer(logs)
    return tuple(found)


def _one_producer(logs: Iterable[Log]) -> Iterator[Finding]:
    owners: dict[int, Place] = {}
    for log in logs:
        for batch in log.batches:
            owners.setdefault(batch.producer, log.place(batch.first))
    if len(owners) > 1:
        places = ", ".join(f"{_writer((p, 0))} at {place}" for p, place in owners.items())
        text = f"more than one transactional id wrote: {places}"
        yield Finding(Kind.UNGUARDED, text)


def _aborted(reads: Reads) -> Iterator[Finding]:
    """Findings: committed reads of aborted records, or of records missing from the other reads."""
    fate: dict[Place, str] = {}
    for log in reads.logs:
        for batch, outcome in outcomes(log):
            if outcome is not Outcome.COMMIT:
                how = "was aborted" if outcome is Outcome.ABORT else "is open"
                for offset in range(batch.first, batch.last + 1):
                    fate[log.place(offset)] = f"its transaction {how}"
    there = {place_of(record) for record in reads.uncommitted}
    for record in _once((*reads.committed, *reads.observed)):
        place = place_of(record)
        why = fate.get(place)
        if why is None and place not in there and place.topic not in reads.compacted:
            why = "no reader of uncommitted records finds it"
        if why is not None:
            text = f"{place} was read with read_committed, but {why}"
            yield Finding(Kind.ABORTED, text)


def _unseen(reads: Reads) -> Iterator[Finding]:
    seen = {place_of(record) for record in reads.committed}
    for log in reads.logs:
        if log.topic in reads.compacted:
            continue
        ended = [batch for batch, outcome in outcomes(log) if outcome is Outcome.COMMIT]
        plain = [b for b in log.batches if not b.transactional and b.outcome is None]
        for batch in (*ended, *plain):
            for offset in range(batch.first, batch.last + 1):
                place = log.place(offset)
                if place not in seen:
                    yield Finding(Kind.UNSEEN, f"{place} is committed, but was not read")


def _gaps(reads: Reads) -> Iterator[Finding]:
    for log in reads.logs:
        if log.topic in reads.compacted:
            continue
        for before, after in pairwise(log.batches):
            if after.first != before.last + 1:
                text = f"{log.place(after.first)} follows on offset {before.last}"
                yield Finding(Kind.GAP, text)


def _changed(reads: Reads) -> Iterator[Finding]:
    final = {place_of(record): record for record in reads.committed}
    for record in reads.observed:
        place = place_of(record)
        now = final.get(place)
        if now is None:
            if place.topic not in reads.compacted:
                yield Finding(Kind.CHANGED, f"{place} was read with read_committed and is gone")
        elif now != record:
            text = f"{place} was {_short(record)} and is {_short(now)}"
            yield Finding(Kind.CHANGED, text)


def by_topic(logs: Iterable[Log]) -> Mapping[TopicName, tuple[Log, ...]]:
    """The logs of each topic."""
    found: dict[TopicName, tuple[Log, ...]] = {}
    for log in logs:
        found[log.topic] = (*found.get(log.topic, ()), log)
    return found


def data_batches(log: Log) -> Iterator[Batch]:
    """The batches with data records."""
    return (batch for batch in log.batches if batch.outcome is None)


def _once(records: Records) -> Iterator[KafkaRecord]:
    return iter({place_of(record): record for record in records}.values())


def _writer(writer: tuple[int, int]) -> str:
    producer, epoch = writer
    if producer == NO_PRODUCER:
        return "a producer without an id"
    return f"producer {producer}, its epoch {epoch}"


def _short(record: KafkaRecord) -> str:
    return f"key {(record.key or b'')[:40]!r}, value {(record.value or b'')[:80]!r}"
