"""`medusa replay`: results computed again from the input log, into a topic of their own."""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import click

from brokers.records import NewTopicSpec
from pipeline.cli import correcting
from pipeline.cli.completing import fragments
from pipeline.cli.connections import Connections
from pipeline.cli.letters import label
from pipeline.cli.options import with_session
from pipeline.cli.output import Printer
from pipeline.cli.replaying import (
    Reads,
    Subject,
    asked_period,
    check_empty,
    reads,
    subject,
    target,
    time_of,
)
from pipeline.cli.session import Session
from pipeline.clock import Clock, Deadline, rfc3339
from pipeline.counting import counted
from pipeline.errors import UsageError
from pipeline.ids import Millis, Offset, TopicName
from pipeline.markers.positions import InputPartition
from pipeline.replay.corrections import corrections, publish
from pipeline.replay.period import Asked
from pipeline.replay.write import START_WITHIN_S, Target, write

if TYPE_CHECKING:
    from pipeline.spark.run.replay import Recomputer

NOTHING_DONE = "nothing was done; --yes does it"
_TOLD_EVERY_S = 5.0


@click.command("replay")
@click.argument("name", metavar="NETWORK.BOX", shell_complete=fragments)
@click.option("--from", "start", metavar="TIME|RECORD", required=True, help="Results from here on.")
@click.option("--to", "end", metavar="TIME|RECORD", help="Results before this; default: all.")
@click.option("--into", metavar="TOPIC", help="A new topic; default: OUTPUT.replay-N.")
@click.option(
    "--as-corrections", is_flag=True, help="Into the output itself, only what differs, by id."
)
@click.option("--incomplete", is_flag=True, help="Do with what is left where records are gone.")
@click.option("--yes", is_flag=True, help="Do it; without this it only says what it would do.")
@with_session
def command(
    session: Session,
    name: str,
    start: str,
    end: str | None,
    into: str | None,
    *,
    as_corrections: bool,
    incomplete: bool,
    yes: bool,
) -> None:
    """Compute results of a fragment again, from its input topics into a new topic.

    NETWORK.BOX is a fragment, or a box that it computes. A TIME is an event time:
    2026-01-31T12:00:00Z, or 90s, 5m, 2h, 1d for so long ago; a RECORD is TOPIC/PARTITION/OFFSET of
    an input and stands for its event time. Late records are counted in. The running fragment, its
    output, its positions and its state stay as they are.

    All results become visible at once, or none: a topic that shows records is complete.

    With --as-corrections they are compared with what the output holds, and only what differs is
    written into it: a record with the id of the earlier one, or without a value if there is no such
    result any more. The output has to say `corrections: true`. Without --yes it computes and
    compares, and writes nothing.

    \b
    Examples:
      medusa replay tolls.tolls --from 2h
      medusa replay tolls.tolls --from 2026-01-31T12:00:00Z --to 2026-01-31T13:00:00Z --yes
      medusa replay tow_dispatch --from car-sightings/0/1200 --into towed-again --yes
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        what = subject(name, connections)
        engine = _Engine(what, connections, session.printer)
        now_ms = session.clock.now_ms()
        event_time = engine.event_time
        asked = Asked(
            time_of(start, what.fragment, now_ms, connections, event_time),
            time_of(end, what.fragment, now_ms, connections, event_time) if end else None,
        )
        if as_corrections:
            if into is not None or incomplete:
                raise UsageError("--as-corrections goes with neither --into nor --incomplete")
            _correct(engine, asked, session, connections, yes=yes)
            return
        spec = target(what, into, connections)
        with session.printer.waiting("looking at the inputs"):
            wanted = asked_period(what, asked, connections)
            found = reads(what, wanted, connections, incomplete=incomplete)
        data = {**_data(what, found), "into": spec.name, "partitions": spec.partitions}
        if not yes:
            text = [*_words(what, found, spec.name, "would replay"), NOTHING_DONE]
            session.printer.show({**data, "dry_run": True}, "\n".join(text))
            return
        done = _done(found, spec, engine, connections, session.clock)
    data = {**data, "dry_run": False, **done}
    text = [*_words(what, found, spec.name, "replayed"), *_outcome(done, spec)]
    session.printer.show(data, "\n".join(text))


def _correct(
    engine: "_Engine", asked: Asked, session: Session, connections: Connections, *, yes: bool
) -> None:
    """Compute, compare and, with `yes`, write what differs."""
    what, printer, clock = engine.subject, session.printer, session.clock
    topic = what.fragment.output.topic
    correcting.check_agreed(what, connections)
    writer = connections.replayer(what.fragment.names, topic)
    if yes:
        writer.start(Deadline.after(clock, START_WITHIN_S, "ending an earlier run"))
    with printer.waiting("looking at the inputs and the output"):
        period = asked_period(what, asked, connections, published=True)
        # First, so that the inputs hold whatever these results were made of: a lane without state
        # publishes late ones at any time.
        stands = correcting.stands(what, period, connections)
        found = reads(what, period, connections, incomplete=False)
    recomputer = engine.recomputer
    printer.note(f"judging {counted(found.offsets, 'offset')} of the inputs")
    left_out = recomputer.left_out(found.ranges, found.period)
    printer.note("computing")
    differs = list(corrections(stands, recomputer.results(found.ranges, found.period)))
    if yes:
        publish(differs, topic, writer, clock)
        connections.topics.await_decided(topic)
    data = {
        **correcting.data(topic, _data(what, found), differs),
        "dry_run": not yes,
        "left_out": dict(left_out),
        "failed_results": dict(recomputer.failed),
    }
    text = [
        *_words(what, found, topic, "corrected" if yes else "would correct"),
        f"  records that cannot be processed: {_reasons(left_out)}",
        f"  results that cannot be computed: {_reasons(recomputer.failed)}",
        *correcting.words(topic, differs, len(stands), done=yes),
        *([] if yes or not differs else [NOTHING_DONE]),
    ]
    printer.show(data, "\n".join(text))


class _Engine:
    """The fragment in Spark, opened at first use."""

    def __init__(self, what: Subject, connections: Connections, printer: Printer) -> None:
        self._what = what
        self._connections = connections
        self.printer = printer

    @property
    def subject(self) -> Subject:
        """What is replayed."""
        return self._what

    @cached_property
    def recomputer(self) -> "Recomputer":
        """With a session of its own."""
        self.printer.note("opening a Spark session")
        return self._connections.recomputer(self._what.fragment, self._what.topic_ids)

    def event_time(self, at: InputPartition, offset: Offset) -> Millis:
        """Of one record."""
        return self.recomputer.event_time(at, offset)


def _done(
    found: Reads, spec: NewTopicSpec, engine: _Engine, connections: Connections, clock: Clock
) -> dict[str, Any]:
    """Do it; returns what came of it."""
    recomputer = engine.recomputer
    engine.printer.note(f"judging {counted(found.offsets, 'offset')} of the inputs")
    left_out = recomputer.left_out(found.ranges, found.period)
    engine.printer.note("computing")
    into = Target(spec, partial(check_empty, spec, connections), _Told(engine.printer, clock))
    writer = connections.replayer(engine.subject.fragment.names, spec.name)
    results = recomputer.results(found.ranges, found.period)
    written = write(results, into, writer, connections.topics, clock)
    connections.topics.await_decided(spec.name)
    return {
        "written": written,
        "left_out": dict(left_out),
        "failed_results": dict(recomputer.failed),
    }


class _Told:
    """Says now and then how far the writing is."""

    def __init__(self, printer: Printer, clock: Clock) -> None:
        self._printer = printer
        self._clock = clock
        self._last_s = clock.monotonic_s()

    def __call__(self, count: int) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._last_s >= _TOLD_EVERY_S:
            self._last_s = now_s
            self._printer.note(f"{counted(count, 'result')} written, not visible yet")


def _data(what: Subject, found: Reads) -> dict[str, Any]:
    names, period = what.fragment.names, found.period
    return {
        "network": names.network,
        "fragment": names.fragment,
        "version": what.version,
        "results_from": rfc3339(period.results_from_ms),
        "results_until": _time(period.results_until_ms),
        "input_from": rfc3339(period.input_from_ms),
        "input_until": _time(period.input_until_ms),
        "reads": [
            {
                "input": one.input,
                "topic": one.topic,
                "partition": one.partition,
                "start": one.start,
                "end": one.end,
                "first_record": _time(since),
                "incomplete": one.gone,
            }
            for one, since in zip(found.ranges, found.since, strict=True)
        ],
        "offsets": found.offsets,
        "late_counted_in": found.late,
        "dead_letters_judged_again": found.judged_again,
    }


def _words(what: Subject, found: Reads, into: TopicName, before: str) -> list[str]:
    period = found.period
    lines = [
        f"{before} {label(what.fragment)} of version {what.version} into {into}",
        f"  results {_interval(period.results_from_ms, period.results_until_ms)}",
        f"  made of records {_interval(period.input_from_ms, period.input_until_ms)}",
        f"  read from the log: {counted(found.offsets, 'offset')}",
    ]
    for one, since in zip(found.ranges, found.since, strict=True):
        first = "no record" if since is None else f"first record {rfc3339(since)}"
        gone = "; OLDER RECORDS MAY BE GONE" if one.gone else ""
        place = f"{one.topic}, partition {one.partition}"
        lines.append(f"    {place}: {one.start} up to {one.end}, {first}{gone}")
    lines.append(f"  late records of dead letters that are counted in: {found.late}")
    lines.append(f"  other dead letters whose records are judged again: {found.judged_again}")
    return lines


def _outcome(done: Mapping[str, Any], spec: NewTopicSpec) -> list[str]:
    lines = [f"  records that cannot be processed: {_reasons(done['left_out'])}"]
    lines.append(f"  results that cannot be computed: {_reasons(done['failed_results'])}")
    if done["written"]:
        lines.append(f"{counted(done['written'], 'result')} written to {spec.name}, complete")
    else:
        lines.append(f"there are no results; {spec.name} holds none")
    return lines


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in counts.items()) or "none"


def _interval(from_ms: Millis, until_ms: Millis | None) -> str:
    return f"from {rfc3339(from_ms)}" + (
        " on" if until_ms is None else f", before {rfc3339(until_ms)}"
    )


def _time(at_ms: Millis | None) -> str | None:
    return None if at_ms is None else rfc3339(at_ms)
