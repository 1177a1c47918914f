"""`outputs`: the streams that leave a network under a topic name of the user's choice."""

from collections.abc import Collection
from dataclasses import dataclass

from pipeline.ids import StreamName, TopicName
from pipeline.nearest import nearest_first
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.model import Box, Output
from pipeline.network.streams import PARTITIONS_MAX
from pipeline.network.topics import read_retention
from pipeline.network.yaml_reader import YamlMap


@dataclass(frozen=True, slots=True)
class OutputDraft:
    """An output as written. `retention_ms` is None where the network's holds."""

    stream: Text
    topic: Text
    partitions: int
    retention_ms: int | None
    corrections: bool

    @property
    def output(self) -> Output:
        """The output, once nothing is wrong with it."""
        return Output(
            stream=StreamName(self.stream.value),
            topic=TopicName(self.topic.value),
            partitions=self.partitions,
            corrections=self.corrections,
            retention_ms=self.retention_ms,
        )


def read_outputs(
    fields: Fields,
    partitions: int,
    boxes: Collection[str],
    streams: Collection[str],
    report: Report,
) -> tuple[OutputDraft, ...]:
    """Take the outputs out of the document; what is wrong is reported.

    Args:
        fields: the document.
        partitions: of the topic of an output that says nothing.
        boxes: every box, sound or not.
        streams: every stream from outside.
        report: where mistakes go.
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
    fields.finish()
    return None if topic is None else OutputDraft(stream, topic, number, retention, corrections)


def check_finality(
    outputs: Collection[OutputDraft], boxes: Collection[Box], report: Report
) -> None:
    """Boxes read records that are final; they would count a correction as one more record."""
    for output in outputs:
        readers = [box.name for box in boxes if output.stream.value in box.inputs]
        if output.corrections and readers:
            report.add(
                f"output {output.stream.value} may be corrected, but box {readers[0]} reads it",
                output.stream.line,
                hint="leave corrections out; or copy the stream with a map and put that out.",
            )
