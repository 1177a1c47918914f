"""Redrive: sends dead letters to their fragment again, exactly once."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

from brokers.kafka_interface import RecordReader
from pipeline.clock import Clock, Deadline
from pipeline.dead_letters.choose import LetterFilter
from pipeline.dead_letters.foresight import Closed, closed
from pipeline.dead_letters.letter import Identity, Letter
from pipeline.dead_letters.originals import with_originals
from pipeline.dead_letters.redrive_rules import (
    SCHEMA_NOT_FOUND,
    Rules,
    Tally,
    kept_from,
    read_partitions,
    select_unsent,
    source_paths,
)
from pipeline.dead_letters.send import send
from pipeline.errors import RefusedError, SchemaError
from pipeline.ids import BoxName, Millis, SchemaHandle
from pipeline.lanes.source_ids import answered_by
from pipeline.operations.connections import Connections
from pipeline.operations.dead_letters.letters import (
    letters_of,
    records_of_rows,
    redrive_topic,
    sent_again,
)
from pipeline.operations.fragments import label, plan_of
from pipeline.operations.positions import present_marker
from pipeline.operations.topics import topic_ends
from pipeline.planner.plan import Fragment
from schemas.avro import AvroSchema
from schemas.client import RegistryClient
from schemas.codec import decode
from schemas.logical import Native
from schemas.wire import Framed, Part, identified


@dataclass(frozen=True, slots=True)
class Redriven:
    """Result of a redrive or its preview.

    Args:
        sent: number of dead letters that are sent.
        late: of those, the number that would be late now.
        untimed: of those, the number whose event time is unknown.
        already_sent: number that were sent before.
        refused: reason → number that are not sent, largest first.
        box: the box whose windows or rows decide what is late.
        closed_ms: the event time up to which that box has closed; None: nothing.
    """

    sent: int
    late: int
    untimed: int
    already_sent: int
    refused: Mapping[str, int]
    box: BoxName
    closed_ms: Millis | None


class Redrive:
    """One redrive of one fragment.

    Args:
        fragment: the fragment.
        matching: the filter of its dead letters.
        limit: the maximum number to send; None: all.
        connections: to all servers.
        clock: of retention and of deadlines.

    Raises:
        RefusedError: the network is not deployed any more; the redrive topic is limited in size, so
            that it may have lost records of what was sent; or it is gone.
    """

    def __init__(
        self,
        fragment: Fragment,
        matching: LetterFilter,
        limit: int | None,
        connections: Connections,
        clock: Clock,
    ) -> None:
        self._fragment = fragment
        self._filter = matching
        self._limit = limit
        self._connections = connections
        self._clock = clock
        self._schemas: dict[SchemaHandle, bool] = {}
        self._forgotten: set[SchemaHandle] = set()
        self._topic = redrive_topic(plan_of(fragment, connections), fragment, connections)
        self._rules, self._closed = self._state()

    def preview(self) -> Redriven:
        """Compute what would be sent; changes nothing.

        Raises:
            UnavailableError, RetryError: a server does not answer, or a topic was not read to its
                end.
        """
        tally = Tally()
        for _ in self._chosen(tally):
            pass
        return self._result(tally)

    def send(self, deadline: Deadline) -> Redriven:
        """Send letters again, by the catalog as it is now.

        Fences all other redrives of the fragment, then reads what was sent before. The redrive
        topic is created only if there is something to send.

        Args:
            deadline: for fencing.

        Raises:
            FencedError: another redrive of the fragment began.
            RefusedError: as in the constructor; or the topic cannot be created.
            UnavailableError, RetryError: run it again; it continues.
        """
        self._rules, self._closed = self._state()
        connections, names, tally = self._connections, self._fragment.names, Tally()
        writer = connections.redriver(names)
        writer.start(deadline)
        letters = self._chosen(tally)
        first = next(letters, None)
        if first is None:
            return self._result(tally)
        self._topic.create()
        count = len(topic_ends(names.redrive, connections))
        marker = present_marker(self._fragment, connections)
        partitions = read_partitions(marker, names.redrive, count)
        again = (self._with_schema(letter) for letter in chain((first,), letters))
        send(again, names.redrive, partitions, writer, self._clock)
        connections.topics.await_decided(names.redrive)
        return self._result(tally)

    def check(self, found: Redriven) -> None:
        """Raise if dead letters matched and none of them can be sent again.

        Raises:
            RefusedError: with the reasons.
        """
        if not found.refused or found.sent or found.already_sent:
            return
        name = label(self._fragment)
        reasons = "; ".join(f"{count} {why}" for why, count in found.refused.items())
        raise RefusedError(
            f"no dead letter can be sent again: {reasons}",
            place=f"fragment {name}",
            hint=f"`medusa replay {name} --from TIME` computes results again into a new topic, "
            "with late records counted in.",
        )

    def _state(self) -> tuple[Rules, Closed]:
        """The present redrive rules and closed event time."""
        topic, config = self._fragment.names.redrive, dict(self._topic.planned.config)
        if self._topic.is_there():
            config = dict(self._connections.topics.topic_configs([topic]).get(topic, {}))
        if int(config.get("retention.bytes", -1)) >= 0:
            raise RefusedError(
                "the topic is limited in size, so that it may lose the record of what was sent",
                place=f"topic {topic}",
                hint="set its retention.bytes to -1.",
            )
        retention_ms = int(config.get("retention.ms", -1))
        kept_from_ms = kept_from(retention_ms, Millis(self._clock.now_ms()))
        marker = present_marker(self._fragment, self._connections)
        sources = () if marker is None else marker.sources
        most = config.get("max.message.bytes")
        rules = Rules(
            source_paths(self._fragment, sources),
            kept_from_ms,
            self._has_schema,
            answered_by(self._fragment, sources),
            topic,
            None if most is None else int(most),
        )
        return rules, closed(self._fragment, marker)

    def _result(self, tally: Tally) -> Redriven:
        return Redriven(
            tally.sent,
            tally.late,
            tally.untimed,
            tally.already,
            tally.refusals,
            self._closed.box,
            self._closed.closed_ms,
        )

    def _chosen(self, tally: Tally) -> Iterator[Letter]:
        sent = sent_again(self._topic, self._connections)
        letters = self._matching(sent)
        return select_unsent(letters, sent, self._rules, self._limit, tally, self._late)

    def _matching(self, sent: Container[Identity]) -> Iterator[Letter]:
        """The dead letters that match, with their originals if unsent."""
        letters = letters_of(self._fragment, self._connections)
        return with_originals(
            (letter for letter in letters if self._filter.matches(letter)),
            lambda letter: letter.identity not in sent and self._rules.needs_original(letter),
            lambda some: records_of_rows(some, self._reader, self._connections),
        )

    @cached_property
    def _reader(self) -> RecordReader:
        """Reader of originals, opened at first use."""
        return self._connections.reader()

    def _late(self, letter: Letter) -> bool | None:
        decode_with = partial(decoded_value, registry=self._connections.registry)
        return self._closed.would_be_late(letter, decode_with)

    def _has_schema(self, schema: SchemaHandle) -> bool:
        """Whether the registry has a schema; one lookup per schema in a run."""
        if schema not in self._schemas:
            try:
                found = self._connections.registry.schema_of(schema)
            except SchemaError:  # no lane could read it either
                found = None
            self._schemas[schema] = found is not None
        return self._schemas[schema]

    def _with_schema(self, letter: Letter) -> Letter:
        """Clear its schema from the catalog's missing schemas, so that lanes look it up again."""
        schema = letter.schema
        if letter.reason != SCHEMA_NOT_FOUND or schema is None:
            return letter
        if schema not in self._forgotten:
            self._connections.catalog.missing_schemas.forget(schema)
            self._forgotten.add(schema)
        return letter


def decoded_value(
    letter: Letter, reader: AvroSchema, registry: RegistryClient
) -> Mapping[str, Native] | None:
    """The value of a letter's record, decoded for a reader schema; None: it cannot be decoded."""
    framed = identified(letter.record.value, letter.original_headers, Part.VALUE)
    if not isinstance(framed, Framed):
        return None
    try:
        writer = registry.schema_of(framed.schema)
        found = None if writer is None else decode(writer, reader, framed.body)
    except SchemaError:
        return None
    return found if isinstance(found, Mapping) else None
