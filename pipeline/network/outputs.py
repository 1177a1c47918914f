"""`outputs`: the streams published under a topic name chosen by the user."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeline.availability import Availability
from pipeline.ids import BoxName, StreamName, TopicName
from pipeline.nearest import nearest_first
from pipeline.network.availability import read_availability
from pipeline.network.declared import Declared
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.model import Box, KeyFormat, Output
from pipeline.network.placement import Placement, read_placement
from pipeline.network.priority import read_priority
from pipeline.network.reliability import read_reliability
from pipeline.network.streams import PARTITIONS_MAX
from pipeline.network.topics import read_retention
from pipeline.network.types import DataType, Scalar
from pipeline.priority import Priority
from pipeline.reliability import Reliability
from pipeline.yaml_reader import YamlMap

ONE_FORM: Mapping[KeyFormat, tuple[DataType, ...]] = {
    KeyFormat.STRING: (Scalar.STRING, Scalar.INT, Scalar.LONG, Scalar.BOOLEAN),
    KeyFormat.RAW: (Scalar.BYTES, Scalar.INT, Scalar.LONG),
}
"""Key types that every client serializes to the same bytes, in formats other than Avro."""


@dataclass(frozen=True, slots=True)
class OutputDraft:
    """An output as written. `retention_ms` is None for the network's."""

    stream: Text
    topic: Text
    partitions: int
    retention_ms: int | None
    corrections: bool
    key_format: KeyFormat
    placement: Placement
    reliability: Declared[Reliability]
    priority: Declared[Priority]
    availability: Declared[Availability]

    @property
    def output(self) -> Output:
        """The output, if all of it is valid."""
        return Output(
            stream=StreamName(self.stream.value),
            topic=TopicName(self.topic.value),
            partitions=self.partitions,
            corrections=self.corrections,
            key_format=self.key_format,
            retention_ms=self.retention_ms,
            nodes=self.placement.nodes,
            reliability=self.reliability.value,
            priority=self.priority.value,
            availability=self.availability.value,
        )


def read_outputs(
    fields: Fields,
    partitions: int,
    boxes: Collection[str],
    streams: Collection[str],
    report: Report,
) -> tuple[OutputDraft, ...]:
    """Read the outputs of the document; mistakes are reported.

    Args:
        fields: the document.
        partitions: default of an output's topic.
        boxes: every box, valid or not.
        streams: every external stream.
        report: receives mistakes.
    """
    found: list[OutputDraft] = []
    node = fields.mapping("outputs")
    for key, value in node.entries if node else ():
        what = f"output {key.text}"
        if key.text not in boxes:
            message = (
                f"{what} is a stream from outside: it has a topic already"
                if key.text in streams
                else f"{what} names no box"
            )
            report.add(message, key.line, choices=nearest_first(key.text, sorted(boxes)))
        if not isinstance(value, YamlMap):
            report.add(f"{what} must be a mapping", value.line, hint="write {topic: NAME}")
            continue
        inner = Fields(value, what, report)
        inner.line = key.line
        draft = _read_output(Text(key.text, key.line), inner, partitions)
        if draft is not None and key.text in boxes:
            found.append(draft)
    return tuple(found)


def _read_output(stream: Text, fields: Fields, partitions: int) -> OutputDraft | None:
    topic = fields.text("topic", required=True)
    number = fields.integer("partitions", partitions, low=1, high=PARTITIONS_MAX)
    retention = read_retention(fields)
    corrections = fields.boolean("corrections", default=False)
    formats = tuple(one.value for one in KeyFormat)
    key_format = KeyFormat(fields.choice("key_format", formats, KeyFormat.AVRO.value))
    placement = read_placement(fields, BoxName(stream.value))
    reliability = read_reliability(fields, BoxName(stream.value))
    priority = read_priority(fields, BoxName(stream.value))
    availability = read_availability(fields, BoxName(stream.value))
    fields.finish()
    if topic is None:
        return None
    return OutputDraft(
        stream,
        topic,
        number,
        retention,
        corrections,
        key_format,
        placement,
        reliability,
        priority,
        availability,
    )


def check_finality(
    outputs: Collection[OutputDraft], boxes: Collection[Box], report: Report
) -> None:
    """Check that no box reads corrections, which it would count as additional records."""
    for output in outputs:
        readers = [box.name for box in boxes if output.stream.value in box.inputs]
        if output.corrections and readers:
            report.add(
                f"output {output.stream.value} may be corrected, but box {readers[0]} reads it",
                output.stream.line,
                hint="leave corrections out; or copy the stream with a map and put that out.",
            )


def check_keys(outputs: Collection[OutputDraft], boxes: Collection[Box], report: Report) -> None:
    """Check that a key other than Avro is one non-null column of a type with one form."""
    by_name = {str(box.name): box for box in boxes}
    for output in outputs:
        box = by_name.get(output.stream.value)
        wrong = None if box is None else _unwritable(box, output.key_format)
        if wrong is not None:
            message, hint = wrong
            report.add(
                f"output {output.stream.value} has key_format {output.key_format.value}, {message}",
                output.stream.line,
                hint=hint,
            )


def _unwritable(box: Box, key_format: KeyFormat) -> tuple[str, str] | None:
    """Why a box's key cannot be written in a format, and a hint; None: it can."""
    types = ONE_FORM.get(key_format)
    if types is None:
        return None
    if len(box.key) != 1:
        found = f"the key ({', '.join(box.key)})" if box.key else "no key of its own"
        return (
            f"which takes a key of one column, but box {box.name} has {found}",
            f"write key: [COLUMN] at box {box.name}, or leave key_format out.",
        )
    column = next(c for c in box.columns if c.name == box.key[0])
    if column.type not in types:
        choices = ", ".join(map(str, types))
        return (
            f"but the key column {column.name} is {column.type}, not one of {choices}",
            "CAST it in a map box, or leave key_format out.",
        )
    if column.nullable:
        return (
            f"but the key column {column.name} can be null, and such a record would have no key",
            f"write coalesce({column.name}, …) in a map box, or leave key_format out.",
        )
    return None
