"""`medusa replay`: recomputation of results from the input log, or corrections of them."""

from collections import Counter
from collections.abc import Mapping

import click

from pipeline.cli.completing import fragments
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.times import parse_time, time_text
from pipeline.clock import rfc3339
from pipeline.counting import counted
from pipeline.errors import UsageError
from pipeline.event_log.event import EventKind
from pipeline.ids import Millis, Offset, TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import label
from pipeline.operations.replay.corrections import (
    check_correctable,
    comparison_input,
    correction_writer,
    differences,
    publish_corrections,
)
from pipeline.operations.replay.engine import RecordPlace, ReplayEngine
from pipeline.operations.replay.fragment import ReplayedFragment, replayed_fragment
from pipeline.operations.replay.inputs import ReplayInput, replay_input, replay_period
from pipeline.operations.replay.output import output_topic
from pipeline.operations.replay.run import Replayed, replay
from pipeline.replay.corrections import Change, Correction
from pipeline.replay.period import Interval
from schemas.json_value import JsonObject

NOTHING_DONE = "nothing was done; --yes does it"


@click.command("replay")
@click.argument("name", metavar="NETWORK.BOX", shell_complete=fragments)
@click.option("--from", "start", metavar="TIME|RECORD", required=True, help="Results from here on.")
@click.option("--to", "end", metavar="TIME|RECORD", help="Results before this; default: all.")
@click.option("--into", metavar="TOPIC", help="A new topic; default: OUTPUT.replay-N.")
@click.option(
    "--as-corrections", is_flag=True, help="Into the output itself, only what differs, by id."
)
@click.option("--incomplete", is_flag=True, help="Do with what is left where records are gone.")
@click.option("--yes", is_flag=True, help="Do it; without this, only print what would be done.")
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
    an input and means its event time. Late records are counted in. The running fragment, its
    output, its positions and its state stay as they are.

    All results become visible at once, or none: a topic that shows records is complete.

    With --as-corrections they are compared with the content of the output, and only differences are
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
        replayed = replayed_fragment(name, connections)
        engine = ReplayEngine(replayed, connections, session.printer.note)
        now_ms = session.clock.now_ms()
        requested = Interval(
            _time_of(start, now_ms, engine),
            _time_of(end, now_ms, engine) if end else None,
        )
        if as_corrections:
            if into is not None or incomplete:
                raise UsageError("--as-corrections goes with neither --into nor --incomplete")
            _correct(engine, requested, session, connections, yes=yes)
            return
        spec = output_topic(replayed, into, connections)
        with session.printer.waiting("looking at the inputs"):
            period = replay_period(replayed, requested, connections)
            found = replay_input(replayed, period, connections, incomplete=incomplete)
        data = {**_data(replayed, found), "into": spec.name, "partitions": spec.partitions}
        if not yes:
            text = [*_heading(replayed, found, spec.name, "would replay"), NOTHING_DONE]
            session.printer.show({**data, "dry_run": True}, "\n".join(text))
            return
        done = replay(found, spec, engine, connections, session.clock)
        _log(session, connections, EventKind.REPLAYED, replayed, spec.name, done.written)
    data |= {"dry_run": False, "written": done.written, **_left_out(done.left_out, done.failed)}
    text = [*_heading(replayed, found, spec.name, "replayed"), *_outcome(done, spec.name)]
    session.printer.show(data, "\n".join(text))


def _correct(
    engine: ReplayEngine,
    requested: Interval,
    session: Session,
    connections: Connections,
    *,
    yes: bool,
) -> None:
    """Compute results, compare them with the output and, with `yes`, publish corrections."""
    replayed, topic = engine.what, engine.what.fragment.output.topic
    check_correctable(replayed, connections)
    writer = correction_writer(replayed, connections, session.clock) if yes else None
    with session.printer.waiting("looking at the inputs and the output"):
        compared = comparison_input(replayed, requested, connections)
    differ = differences(compared, engine)
    if writer is not None:
        publish_corrections(replayed, differ, writer, connections, session.clock)
        number = len(differ.corrections)
        _log(session, connections, EventKind.CORRECTED, replayed, topic, number)
    counts = Counter(one.change for one in differ.corrections)
    data = {
        **_data(replayed, compared.found),
        "into": topic,
        **{change.value: counts[change] for change in Change},
        "dry_run": not yes,
        **_left_out(differ.left_out, differ.failed),
    }
    text = [
        *_heading(replayed, compared.found, topic, "corrected" if yes else "would correct"),
        *_left_out_lines(differ.left_out, differ.failed),
        *_correction_lines(topic, differ.corrections, len(compared.published), done=yes),
        *([] if yes or not differ.corrections else [NOTHING_DONE]),
    ]
    session.printer.show(data, "\n".join(text))


def _log(
    session: Session,
    connections: Connections,
    kind: EventKind,
    replayed: ReplayedFragment,
    into: TopicName,
    results: int,
) -> None:
    names = replayed.fragment.names
    session.log_event(
        connections,
        kind,
        network=names.network.name,
        fragment=names.fragment,
        into=into,
        results=str(results),
    )


def _time_of(text: str, now_ms: Millis, engine: ReplayEngine) -> Millis:
    """Event time of an argument TIME or TOPIC/PARTITION/OFFSET.

    Raises:
        UsageError: the argument is neither.
        RefusedError: there is no such record in the fragment's inputs.
    """
    if "/" not in text:
        return parse_time(text, now_ms)
    topic, *numbers = text.split("/")
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):  # noqa: PLR2004 - both
        raise UsageError(
            f"{text!r} is neither a time nor a record",
            hint="write 2026-01-31T12:00:00Z, 90s, 5m, 2h or 1d for so long ago, or "
            "TOPIC/PARTITION/OFFSET for the event time of the record there.",
        )
    partition, offset = (int(number) for number in numbers)
    return engine.event_time(RecordPlace(topic, partition, Offset(offset)))


def _data(replayed: ReplayedFragment, found: ReplayInput) -> JsonObject:
    names, period = replayed.fragment.names, found.period
    return {
        "network": names.network.name,
        "fragment": names.fragment,
        "version": replayed.version,
        "results_from": rfc3339(period.results_from_ms),
        "results_until": time_text(period.results_until_ms),
        "input_from": rfc3339(period.input_from_ms),
        "input_until": time_text(period.input_until_ms),
        "reads": [
            {
                "input": one.input,
                "topic": one.topic,
                "partition": one.partition,
                "start": one.start,
                "end": one.end,
                "first_record": time_text(since),
                "incomplete": one.gone,
            }
            for one, since in zip(found.ranges, found.since, strict=True)
        ],
        "offsets": found.offsets,
        "late_counted_in": found.late,
        "dead_letters_judged_again": found.judged_again,
    }


def _heading(
    replayed: ReplayedFragment, found: ReplayInput, into: TopicName, before: str
) -> list[str]:
    period = found.period
    lines = [
        f"{before} {label(replayed.fragment)} of version {replayed.version} into {into}",
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


def _outcome(done: Replayed, into: TopicName) -> list[str]:
    lines = _left_out_lines(done.left_out, done.failed)
    if done.written:
        return [*lines, f"{counted(done.written, 'result')} written to {into}, complete"]
    return [*lines, f"there are no results; {into} is empty"]


def _correction_lines(
    topic: TopicName, found: tuple[Correction, ...], compared: int, *, done: bool
) -> list[str]:
    counts = Counter(one.change for one in found)
    parts = ", ".join(f"{counts[change]} {change.value}" for change in Change)
    lines = [f"  compared with {counted(compared, 'result')} in {topic}: {parts}"]
    if not found:
        lines.append("nothing has to be corrected")
    elif done:
        lines.append(f"{counted(len(found), 'correction')} written to {topic}")
    return lines


def _left_out(records: Mapping[str, int], results: Mapping[str, int]) -> JsonObject:
    return {"left_out": dict(records), "failed_results": dict(results)}


def _left_out_lines(records: Mapping[str, int], results: Mapping[str, int]) -> list[str]:
    return [
        f"  records that cannot be processed: {_reasons(records)}",
        f"  results that cannot be computed: {_reasons(results)}",
    ]


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in counts.items()) or "none"


def _interval(from_ms: Millis, until_ms: Millis | None) -> str:
    return f"from {rfc3339(from_ms)}" + (
        " on" if until_ms is None else f", before {rfc3339(until_ms)}"
    )
