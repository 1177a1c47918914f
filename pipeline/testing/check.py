"""Checker of a test: the test as written and its network in, steps ready to run out. Pure.

A stream that a test reads needs a topic; a box without one gets one in the test only.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Final, TypeVar

from pipeline.errors import DocumentError, InputError, Problem
from pipeline.ids import Millis, NetworkId, ParticipantId, StreamName, TopicName
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.names import derived_topic, stream_of_box
from pipeline.nearest import nearest_first
from pipeline.network.boxes.traits import traits
from pipeline.network.model import Box, Network, Output
from pipeline.planner import planner
from pipeline.planner.plan import Plan
from pipeline.testing import records
from pipeline.testing.compare import Expected, as_json
from pipeline.testing.dead_letters import LETTER_FIELDS, RECORD, VALUES
from pipeline.testing.document import (
    DeadLettersWritten,
    ExpectWritten,
    Records,
    SendWritten,
    StepWritten,
    TestWritten,
    Written,
)
from pipeline.testing.records import Line, Schemas
from pipeline.testing.steps import (
    Advance,
    Expect,
    ExpectDeadLetters,
    Send,
    Sent,
    Settle,
    Step,
    Wait,
)
from schemas.avro import AvroSchema, parse
from schemas.codec import to_json
from schemas.logical import Native

UNDATED: Final = Millis(4_102_444_800_000)
"""The Kafka timestamp of a record that is sent without one, the year 2100: later than any event
time of a test."""
OWNER: Final = ParticipantId("test")

T = TypeVar("T")

ReadFile = Callable[[str], bytes]
"""The bytes of a file that a test names; raises InputError."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of a network under test.

    Args:
        plan: the network's.
        external: the Avro schema of each external stream.
        derived: the Avro schema of each stream that a box writes to a topic.
    """

    plan: Plan
    external: Mapping[StreamName, AvroSchema]
    derived: Mapping[StreamName, AvroSchema]

    @property
    def schemas(self) -> dict[StreamName, AvroSchema]:
        """The Avro schema of each stream that has one."""
        return {**self.external, **self.derived}

    @property
    def topics(self) -> dict[StreamName, TopicName]:
        """The topic of each stream."""
        found = {i.name: i.topic for f in self.plan.fragments for i in f.inputs}
        return found | {f.output.name: f.output.topic for f in self.plan.fragments}


@dataclass(frozen=True, slots=True)
class Checked:
    """A test ready to run.

    Args:
        streams: of its network.
        schemas: ids of the schemas of all its records.
        writers: for each stream, the schemas of the records sent to it, besides its own.
        partitions: of topics with more than one.
        steps: in order.
    """

    streams: Streams
    schemas: Schemas
    writers: Mapping[StreamName, tuple[str, ...]]
    partitions: Mapping[TopicName, int]
    steps: tuple[Step, ...]


def streams_of(network: Network, looked_at: Sequence[StreamName]) -> Streams:
    """Plan a network so that all streams that the test reads have a topic.

    Raises:
        DocumentError: the plan cannot be made.
    """
    boxes = {StreamName(box.name): box for box in _streams_inside(network)}
    outputs = {output.stream for output in network.outputs}
    added = tuple(
        Output(
            name,
            derived_topic(NetworkId(OWNER, network.name), boxes[name].name),
            network.partitions,
        )
        for name in dict.fromkeys(looked_at)
        if name in boxes and name not in outputs
    )
    plan = planner.plan(replace(network, outputs=(*network.outputs, *added)), OWNER)
    return Streams(
        plan=plan,
        external={s.name: parse(s.schema_json) for s in network.streams},
        derived={f.output.name: parse(f.output.schema_json) for f in plan.fragments},
    )


def _streams_inside(network: Network) -> tuple[Box, ...]:
    """The boxes with an output stream; of a route only its branches."""
    return tuple(box for box in network.boxes if not traits(box).private)


def check(written: TestWritten, network: Network, read_file: ReadFile) -> Checked:
    """Make a test ready to run.

    Raises:
        DocumentError: every mistake in its steps and records.
    """
    looked_at = [StreamName(s.stream.value) for s in written.steps if isinstance(s, ExpectWritten)]
    checker = Checker(written.file, network, streams_of(network, looked_at), read_file)
    return Checked(
        steps=checker.steps(written.steps),
        streams=checker.streams,
        schemas=checker.schemas,
        writers=checker.writers,
        partitions=checker.partitions,
    )


@dataclass
class Checker:
    """Prepares steps, and collects their schemas and partitions.

    Args:
        file: the document of the steps.
        network: the network under test.
        streams: its streams.
        read_file: reads the files that steps name.
        schemas: ids of the schemas of all records.
        writers: as in `Checked`.
        partitions: as in `Checked`.
    """

    file: str
    network: Network
    streams: Streams
    read_file: ReadFile
    schemas: Schemas = field(default_factory=Schemas)
    writers: dict[StreamName, tuple[str, ...]] = field(default_factory=dict)
    partitions: dict[TopicName, int] = field(default_factory=dict)
    _problems: list[Problem] = field(default_factory=list)

    def steps(self, written: Iterable[StepWritten]) -> tuple[Step, ...]:
        """Steps ready to run.

        Raises:
            DocumentError: every mistake in them.
        """
        self._problems = []
        found = [self._step(step) for step in written]
        if self._problems:
            raise DocumentError(tuple(self._problems))
        return tuple(step for step in found if step is not None)

    def _step(self, written: StepWritten) -> Step | None:
        match written:
            case SendWritten():
                return self._send(written)
            case ExpectWritten():
                return self._expect(written)
            case DeadLettersWritten(letters, line):
                found = self._valid(self._dead_letter(Line(one, self.file)) for one in letters)
                return ExpectDeadLetters(tuple(found), f"{self.file}:{line}")
            case Advance() | Wait() | Settle():
                return written

    def _send(self, written: SendWritten) -> Step | None:
        name = StreamName(written.stream.value)
        schema = self.streams.external.get(name)
        if schema is None:
            what = (
                "a box writes it" if name in self.network.by_name() else "there is no such stream"
            )
            choices = nearest_first(name, tuple(self.streams.external))
            self._problem(f"send: {name}: {what}", written.stream.line, choices)
            return None
        topic = self.streams.topics.get(name)
        if topic is None:  # no box reads it, so it has no results
            return None
        self.partitions[topic] = max(self.partitions.get(topic, 1), written.partition + 1)
        sent = self._valid(self._sent(written, name, schema))
        at_ms = UNDATED if written.timestamp_ms is None else written.timestamp_ms
        made = (Sent(value, key, written.partition, at_ms) for value, key in sent)
        return Send(name, tuple(made))

    def _sent(
        self, written: SendWritten, name: StreamName, schema: AvroSchema
    ) -> Iterator[tuple[bytes, bytes | None] | Problem]:
        field_name = None if written.key is None else written.key.value
        for one in self._lines(written.records):
            if isinstance(one, Problem):
                yield one
                continue
            line, own = one
            if own is not None and own.text != schema.text:
                self.writers[name] = tuple(dict.fromkeys((*self.writers.get(name, ()), own.text)))
            used = own or schema
            value = records.encoded(line, used, self.schemas.id_of(used.text))
            key = records.key_of(line, field_name) if field_name is not None else None
            if isinstance(value, Problem):
                yield value
            else:
                yield key if isinstance(key, Problem) else (value, key)

    def _expect(self, written: ExpectWritten) -> Step | None:
        name = StreamName(written.stream.value)
        schema = self.streams.derived.get(name)
        if schema is None:
            self._problem(
                f"expect: {name}: {self._why_not(name)}",
                written.stream.line,
                nearest_first(name, tuple(box.name for box in _streams_inside(self.network))),
            )
            return None
        lines = self._lines(written.records)
        found = self._valid(
            one if isinstance(one, Problem) else records.expected(one[0], schema) for one in lines
        )
        return Expect(name, tuple(found), written.in_order, f"{self.file}:{written.line}")

    def _why_not(self, name: StreamName) -> str:
        """Why a test cannot expect records of a stream."""
        if name in self.streams.external:
            return "it comes from outside"
        box = next((box for box in self.network.boxes if stream_of_box(box.name) == name), None)
        if box is None:
            return "there is no such box"
        if traits(box).private:
            return f"it is a {box.kind}, and its branches are streams"
        return "it has no topic here: name it in looked_at"

    def _lines(self, given: Records) -> Iterator[tuple[Line, AvroSchema | None] | Problem]:
        """Records with their places, and the schema of their file, if it has one."""
        if given.file is None:
            yield from ((Line(one, self.file), None) for one in given.written)
            return
        name = str(PurePath(self.file).parent / given.file.value)
        try:
            content = self.read_file(given.file.value)
        except InputError as error:
            yield Problem(f"{name}: {error.message}", self.file, given.file.line)
            return
        if not name.endswith(records.AVRO_FILE):
            for line in records.json_lines(content, name):
                yield line if isinstance(line, Problem) else (line, None)
            return
        found = records.container(content, name)
        if isinstance(found, Problem):
            yield found
            return
        schema, values = found
        for number, value in enumerate(values, start=1):
            yield Line(Written(to_json(schema, value), number), name), schema

    def _dead_letter(self, line: Line) -> Expected | Problem:
        """An expected dead letter; the fields of its record, or values, are separate entries."""
        value = line.written.value
        if not isinstance(value, dict):
            return line.problem("", "a dead letter is a mapping")
        unknown = self._unknown(value, line)
        if unknown is not None:
            return unknown
        values = value.get(VALUES, {})
        if not isinstance(values, dict):
            return line.problem(f"/{VALUES}", "they are a mapping: a name and a value of each")
        plain = {name: part for name, part in value.items() if name not in {RECORD, VALUES}}
        plain |= {f"{VALUES}.{name}": part for name, part in as_json(values).items()}
        inner = self._original(line) if RECORD in value else Expected({}, {}, "")
        if isinstance(inner, Problem):
            return inner
        fields = {f"{RECORD}.{name}": part for name, part in inner.fields.items()}
        shown = {f"{RECORD}.{name}": part for name, part in inner.shown.items()}
        return Expected(plain | fields, as_json(plain) | shown, line.place())

    def _unknown(self, letter: Mapping[str, Native], line: Line) -> Problem | None:
        """A problem with fields that dead letters do not have."""
        reasons, streams = [reason.value for reason in Reason], [*self.network.by_name()]
        allowed: Mapping[str, Sequence[str]] = {
            "reason": reasons,
            "stream": streams,
            "box": streams,
        }
        for name, value in letter.items():
            if name not in LETTER_FIELDS:
                names = ", ".join(LETTER_FIELDS)
                return line.problem(f"/{name}", f"a dead letter has none (there is: {names})")
            if name in allowed and value not in allowed[name]:
                names = ", ".join(nearest_first(str(value), allowed[name]))
                return line.problem(f"/{name}", f"there is no such {name} (there is: {names})")
        return None

    def _original(self, line: Line) -> Expected | Problem:
        """The record of a dead letter."""
        value = line.written.value
        schema = self.streams.schemas.get(StreamName(str(value.get("stream"))))
        if schema is None:
            return line.problem(f"/{RECORD}", "its stream has to be named: one that has a topic")
        written = Written(value[RECORD], line.written.line_of(f"/{RECORD}"))
        return records.expected(Line(written, line.file), schema)

    def _valid(self, found: Iterator[T | Problem]) -> list[T]:
        """The valid elements; the problems are collected."""
        valid: list[T] = []
        for one in found:
            if isinstance(one, Problem):
                self._problems.append(one)
            else:
                valid.append(one)
        return valid

    def _problem(self, message: str, line: int, choices: tuple[str, ...]) -> None:
        self._problems.append(Problem(message, self.file, line, choices=choices))
