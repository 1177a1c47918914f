"""The event time of a record of an input, which may begin or end a replay."""

from dataclasses import dataclass

from pipeline.errors import RefusedError
from pipeline.ids import Millis, Offset
from pipeline.markers.positions import InputPartition
from pipeline.network.model import ExternalStream
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import label
from pipeline.operations.replay.engine import Engine
from pipeline.operations.topics import first_timestamp


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """A record of an input; `input`: the name of the stream, or its topic."""

    input: str
    partition: int
    offset: Offset

    def __str__(self) -> str:
        return f"{self.input}/{self.partition}/{self.offset}"


def record_event_time(place: RecordPlace, engine: Engine, connections: Connections) -> Millis:
    """The event time of a record; of an external stream only Spark computes it.

    Raises:
        RefusedError: the fragment has no such input, or that no such record.
        UnavailableError: Kafka does not answer.
    """
    fragment, offset = engine.what.fragment, place.offset
    stream = next((s for s in fragment.inputs if place.input in {s.name, s.topic}), None)
    if stream is None:
        raise RefusedError(
            f"{place.input} is no input of {label(fragment)}",
            hint=f"there is: {', '.join(sorted(s.topic for s in fragment.inputs))}.",
        )
    at = InputPartition(stream.name, stream.topic, place.partition)
    starts = connections.topics.start_offsets([at.topic]).get(at.topic, {})
    ends = connections.topics.end_offsets([at.topic]).get(at.topic, {})
    start, end = starts.get(at.partition), ends.get(at.partition)
    if start is None or end is None or not start <= offset < end:
        holds = "does not exist" if start is None else f"holds the offsets {start} up to {end}"
        raise RefusedError(
            f"there is no record at offset {offset}: the partition {holds}",
            place=f"topic {at.topic}, partition {at.partition}",
            hint="`medusa offsets show` says what there is.",
        )
    if isinstance(stream, ExternalStream):
        return engine.event_time(at, offset)
    found = first_timestamp(at.topic, at.partition, (offset, end), connections.reader())
    if found is None:
        raise RefusedError(f"there is no committed record at or behind {place}")
    return found
