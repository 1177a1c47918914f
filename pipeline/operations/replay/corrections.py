"""Corrections: comparison of published results of a fragment with recomputed ones."""

from collections.abc import Mapping
from dataclasses import dataclass

from brokers.kafka_interface import TransactionWriter
from pipeline.clock import Clock, Deadline
from pipeline.counting import counted
from pipeline.errors import RefusedError, RetryError
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import label
from pipeline.operations.networks import deployed_plans
from pipeline.operations.replay.engine import ReplayEngine
from pipeline.operations.replay.fragment import ReplayedFragment
from pipeline.operations.replay.inputs import (
    ReplayInput,
    kept_offsets,
    replay_input,
    replay_period,
)
from pipeline.replay.corrections import (
    Correction,
    LatestRecord,
    corrections,
    latest_records,
    publish,
)
from pipeline.replay.period import Interval, Period
from pipeline.replay.ranges import possibly_empty_ranges
from pipeline.replay.write import START_WITHIN_S


@dataclass(frozen=True, slots=True)
class ComparisonInput:
    """Input of a comparison: published results by id, and the records to recompute them from."""

    published: Mapping[bytes, LatestRecord]
    found: ReplayInput


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences between published and recomputed results.

    Args:
        corrections: the records that make the published results equal.
        left_out: input records that cannot be processed, by reason.
        failed: results that cannot be computed, by reason.
    """

    corrections: tuple[Correction, ...]
    left_out: Mapping[str, int]
    failed: Mapping[str, int]


def check_correctable(what: ReplayedFragment, connections: Connections) -> None:
    """Raise unless the fragment's output can be corrected.

    Raises:
        RefusedError: the output does not declare `corrections: true`, or a fragment reads it, whose
            results from a record are final.
    """
    output = what.fragment.output
    place = f"topic {output.topic}"
    if not output.corrections:
        raise RefusedError(
            "the output takes no corrections: its records carry no ids",
            place=place,
            hint=f"write `corrections: true` at the output {output.name}, if its readers let a "
            "later record with an id take the place of the earlier one; or replay into a topic of "
            "its own.",
        )
    plans = deployed_plans(connections.catalog)
    readers = [
        label(fragment, connections.participant)
        for plan in plans
        for fragment in plan.fragments
        if output.topic in {stream.topic for stream in fragment.inputs}
    ]
    if readers:
        raise RefusedError(
            f"the output cannot be corrected while a fragment reads it: {', '.join(readers)}",
            place=place,
            hint="a fragment would count a correction as one more record: replay into a topic of "
            "its own.",
        )


def correction_writer(
    what: ReplayedFragment, connections: Connections, clock: Clock
) -> TransactionWriter:
    """Writer of corrections; fences all other runs that correct the same output.

    Raises:
        UnavailableError, RetryError: Kafka does not answer in time.
    """
    writer = connections.replayer(what.fragment.names, what.fragment.output.topic)
    writer.start(Deadline.after(clock, START_WITHIN_S, "ending an earlier run"))
    return writer


def comparison_input(
    what: ReplayedFragment, asked: Interval, connections: Connections
) -> ComparisonInput:
    """Read the published results of a period and find their inputs; changes nothing.

    Raises:
        RefusedError: the fragment has not reached the end of the period, or a topic no longer
            contains all that is needed.
        RetryError: a transaction in the output topic stays open.
    """
    period = replay_period(what, asked, connections, published=True)
    # Before the inputs, so that those contain the records of all these results: a lane without
    # state publishes late ones at any time.
    published = published_results(what, period, connections)
    return ComparisonInput(published, replay_input(what, period, connections, incomplete=False))


def differences(compared: ComparisonInput, engine: ReplayEngine) -> Differences:
    """Compute the results again and compare; changes nothing.

    Raises:
        RetryError: Spark failed.
        RefusedError: the results have no ids.
    """
    recomputer, found = engine.recomputer, compared.found
    engine.report(f"judging {counted(found.offsets, 'offset')} of the inputs")
    left_out = recomputer.left_out(found.ranges, found.period)
    engine.report("computing")
    results = recomputer.results(found.ranges, found.period)
    differ = tuple(corrections(compared.published, results))
    return Differences(differ, dict(left_out), dict(recomputer.failed))


def publish_corrections(
    what: ReplayedFragment,
    found: Differences,
    writer: TransactionWriter,
    connections: Connections,
    clock: Clock,
) -> None:
    """Write corrections into the output in one transaction, and wait until it is decided.

    Raises:
        FencedError: another run that corrects the same output has begun.
        UnavailableError, RetryError: nothing of it is visible; run it again.
    """
    topic = what.fragment.output.topic
    publish(found.corrections, topic, writer, clock)
    connections.topics.await_decided(topic)


def published_results(
    what: ReplayedFragment, period: Period, connections: Connections
) -> dict[bytes, LatestRecord]:
    """The last published record of each result of a period, by id.

    Raises:
        RefusedError: the output topic no longer contains all of them, or has records without ids.
        RetryError: results of the period may be in a transaction that does not end.
    """
    output = what.fragment.output
    if not connections.topics.await_decided(output.topic):
        raise RetryError(
            "a transaction in the topic stays open",
            place=f"topic {output.topic}",
            hint="run it again",
        )
    kept = kept_offsets(output, period.results_from_ms, connections)
    read = possibly_empty_ranges(kept, incomplete=False)
    reader = connections.reader()
    reader.assign({output.topic: {one.partition: one.start for one in read}})
    ends = {output.topic: {one.partition: one.end for one in read}}
    return latest_records(reader.read_to(ends), period)
