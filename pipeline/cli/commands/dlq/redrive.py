"""`medusa dlq redrive`: dead letters to their fragment again, each of them once."""

from collections.abc import Container, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Any

import click

from brokers.kafka.reader import TopicReader
from pipeline.cli.commands.deploy import confirm
from pipeline.cli.completing import fragments
from pipeline.cli.connections import Connections
from pipeline.cli.letters import (
    ends_of,
    fragment_of,
    label,
    letters_of,
    plan_of,
    reason_option,
    records_of_rows,
    redrive_topic,
    sent_again,
)
from pipeline.cli.options import timeout_option, with_session
from pipeline.cli.positions import present_marker
from pipeline.cli.session import Session
from pipeline.clock import Clock, Deadline, rfc3339
from pipeline.counting import counted
from pipeline.dead_letters.choose import Wanted
from pipeline.dead_letters.foresight import Closed, closed
from pipeline.dead_letters.letter import Identity, Letter
from pipeline.dead_letters.originals import with_originals
from pipeline.dead_letters.redrive import (
    SCHEMA_NOT_FOUND,
    Rules,
    Tally,
    chosen,
    kept_from,
    read_partitions,
    reads,
)
from pipeline.dead_letters.send import send
from pipeline.errors import RefusedError, SchemaError
from pipeline.ids import BoxName, Millis, SchemaHandle
from pipeline.lanes.sources import answered_by
from pipeline.planner.plan import Fragment
from schemas.avro import AvroSchema
from schemas.codec import decode
from schemas.wire import Framed, Part, identified


@click.command("redrive")
@click.argument("fragment", shell_complete=fragments)
@reason_option("Only those with this reason.")
@click.option("--limit", type=click.IntRange(min=1), help="Send at most so many.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be sent.")
@timeout_option(60)
@with_session
def command(
    session: Session,
    fragment: str,
    reason: str | None,
    limit: int | None,
    timeout: float,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """Send the dead letters of FRAGMENT to it again, byte for byte, once.

    They go into the fragment's own redrive topic, so nobody else reads them twice. A letter that
    was sent is not sent a second time, also when a run was killed; one that fails again is a new
    dead letter with a higher attempt. Late records cannot be sent again, and of failed results only
    those of as-of joins, as long as the record of the left row is in its topic.

    \b
    Examples:
      medusa dlq redrive tolls.tow_dispatch --dry-run
      medusa dlq redrive tow_dispatch --reason schema_not_found --yes
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    wanted = Wanted(reason=reason)
    with session.connect() as connections:
        run = _Run(fragment_of(fragment, connections), wanted, limit, connections, session.clock)
        rules = run.rules()
        if dry_run or not yes:
            with session.printer.waiting("reading dead letters"):
                tally = run.looked_at(rules)
        if not dry_run:
            if not yes:
                session.printer.note(_words(tally, "this would send", run.closed))
                confirm(session, f"send {counted(tally.sent, 'dead letter')} again?")
            deadline = Deadline.after(session.clock, timeout, "beginning to send again")
            with session.printer.waiting("sending dead letters again"):
                tally = run.sent(run.rules(), deadline)  # somebody may have deployed meanwhile
        name = label(run.fragment)
    if tally.refused and not tally.sent and not tally.already:
        raise RefusedError(
            f"no dead letter can be sent again: {_refusals(tally)}",
            place=f"fragment {name}",
            hint=f"`medusa replay {name} --from TIME` computes results again into a new topic, "
            "with late records counted in.",
        )
    data = {
        "fragment": name,
        "dry_run": dry_run,
        "sent": tally.sent,
        "late": {"box": run.closed.box, "count": tally.late, "unknown": tally.untimed},
        "already_sent": tally.already,
        "refused": [{"reason": why, "count": n} for why, n in tally.refusals.items()],
    }
    session.printer.show(data, _words(tally, "would send" if dry_run else "sent", run.closed))


class _Run:
    """One call on one fragment."""

    def __init__(
        self,
        fragment: Fragment,
        wanted: Wanted,
        limit: int | None,
        connections: Connections,
        clock: Clock,
    ) -> None:
        self.fragment = fragment
        self._wanted = wanted
        self._limit = limit
        self._connections = connections
        self._clock = clock
        self._schemas: dict[SchemaHandle, bool] = {}
        self._forgotten: set[SchemaHandle] = set()
        self._topic = redrive_topic(plan_of(fragment, connections), fragment, connections)
        self.closed = Closed(BoxName(fragment.name))

    def rules(self) -> Rules:
        """What decides now.

        Raises:
            RefusedError: the redrive topic is limited in size, so it may forget what was sent; or
                as `RedriveTopic.is_there` says.
        """
        topic, config = self.fragment.names.redrive, dict(self._topic.planned.config)
        if self._topic.is_there():
            config = dict(self._connections.topics.topic_configs([topic]).get(topic, {}))
        if int(config.get("retention.bytes", -1)) >= 0:
            raise RefusedError(
                "the topic is limited in size, so that it may forget what was sent",
                place=f"topic {topic}",
                hint="set its retention.bytes to -1.",
            )
        retention_ms = int(config.get("retention.ms", -1))
        kept_from_ms = kept_from(retention_ms, Millis(self._clock.now_ms()))
        marker = present_marker(self.fragment, self._connections)
        sources = () if marker is None else marker.sources
        self.closed = closed(self.fragment, marker)
        decided = answered_by(self.fragment, sources)
        most = config.get("max.message.bytes")
        return Rules(
            reads(self.fragment, sources),
            kept_from_ms,
            self._has_schema,
            decided,
            topic,
            None if most is None else int(most),
        )

    def looked_at(self, rules: Rules) -> Tally:
        """What would be done."""
        tally = Tally()
        sent = sent_again(self._topic, self._connections)
        for _ in chosen(self._asked(sent, rules), sent, rules, self._limit, tally, self._late):
            pass
        return tally

    def sent(self, rules: Rules, deadline: Deadline) -> Tally:
        """Do it. First every other run is ended, then it counts what was sent before.

        The topic is created once there is something to send.
        """
        connections, names, tally = self._connections, self.fragment.names, Tally()
        writer = connections.redriver(names)
        writer.start(deadline)
        sent = sent_again(self._topic, connections)
        letters = chosen(self._asked(sent, rules), sent, rules, self._limit, tally, self._late)
        first = next(letters, None)
        if first is None:
            return tally
        self._topic.create()
        count = len(ends_of(names.redrive, connections))
        marker = present_marker(self.fragment, connections)
        partitions = read_partitions(marker, names.redrive, count)
        told = (self._told(letter) for letter in chain((first,), letters))
        send(told, names.redrive, partitions, writer, self._clock)
        connections.topics.await_decided(names.redrive)
        return tally

    def _asked(self, sent: Container[Identity], rules: Rules) -> Iterator[Letter]:
        """The letters that are asked for, with the records that they name."""
        letters = letters_of(self.fragment, self._connections)
        return with_originals(
            (letter for letter in letters if self._wanted.holds(letter)),
            lambda letter: letter.identity not in sent and rules.wants_original(letter),
            lambda some: records_of_rows(some, self._reader, self._connections),
        )

    @cached_property
    def _reader(self) -> TopicReader:
        """What reads single records."""
        return self._connections.reader()

    def _late(self, letter: Letter) -> bool | None:
        return self.closed.would_be_late(letter, self._decoded)

    def _decoded(self, letter: Letter, reader: AvroSchema) -> Mapping[str, Any] | None:
        framed = identified(letter.record.value, letter.original_headers, Part.VALUE)
        if not isinstance(framed, Framed):
            return None
        try:
            writer = self._connections.registry.schema_of(framed.schema)
            found = None if writer is None else decode(reader, writer, framed.body)
        except SchemaError:
            return None
        return found if isinstance(found, Mapping) else None

    def _has_schema(self, schema: SchemaHandle) -> bool:
        """Whether the registry has a schema; it is asked once in a run."""
        if schema not in self._schemas:
            try:
                found = self._connections.registry.schema_of(schema)
            except SchemaError:  # no lane could read it either
                found = None
            self._schemas[schema] = found is not None
        return self._schemas[schema]

    def _told(self, letter: Letter) -> Letter:
        """Before a letter is sent, let lanes look its schema up again."""
        schema = letter.schema
        if letter.reason != SCHEMA_NOT_FOUND or schema is None:
            return letter
        if schema not in self._forgotten:
            self._connections.catalog.missing_schemas.forget(schema)
            self._forgotten.add(schema)
        return letter


def _words(tally: Tally, before: str, by_now: Closed) -> str:
    lines = [f"{before} {counted(tally.sent, 'dead letter')} again"]
    if tally.late and by_now.closed_ms is not None:
        until = rfc3339(by_now.closed_ms)
        lines.append(f"  {tally.late} of them late: box {by_now.box} has closed all up to {until}")
    if tally.untimed:
        lines.append(f"  {tally.untimed} of them perhaps late: their event time is not known here")
    if tally.already:
        lines.append(f"  {tally.already} sent before")
    lines += [f"  {count} not sent: {why}" for why, count in tally.refusals.items()]
    return "\n".join(lines)


def _refusals(tally: Tally) -> str:
    return "; ".join(f"{count} {why}" for why, count in tally.refusals.items())
