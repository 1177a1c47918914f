"""Metrics of the records of a batch: counts, largest event times, unknown schemas. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pipeline.ids import Millis, SchemaHandle
from pipeline.markers.positions import InputPartition
from pipeline.spark.query.lowered import AssignedTopic, Source, TopicRole
from schemas import wire


@dataclass(frozen=True, slots=True)
class BatchMetrics:
    """Metrics of the records of a batch; the fields are those of `BatchFacts`."""

    records: int
    bad: int
    unknown: tuple[SchemaHandle, ...]
    largest: Mapping[InputPartition, Millis]
    failed: Mapping[str, int] = field(default_factory=dict)
    skipped: int = 0


def most_advanced(
    source: Source, topic: AssignedTopic, partition: int, largest_ms: int
) -> Iterator[tuple[InputPartition, Millis]]:
    """Partitions whose event time a valid record advances; a redriven one may be of any."""
    again = topic.role is TopicRole.REDRIVE
    for one in range(topic.partitions) if again else (partition,):
        yield InputPartition(source.input, topic.topic, one), Millis(largest_ms)


def schemas_of(prefixes: Iterable[bytes]) -> tuple[SchemaHandle, ...]:
    """The distinct schemas of some prefixes, in the order of the prefixes."""
    named = (wire.handle(prefix) for prefix in sorted(set(prefixes)))
    return tuple(handle for handle in named if handle is not None)
