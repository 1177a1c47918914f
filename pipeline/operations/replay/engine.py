"""Spark session of a replay, opened at first use, and event times of single records."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from brokers.log_reader import first_timestamp
from pipeline.errors import RefusedError
from pipeline.ids import Millis, Offset
from pipeline.markers.positions import InputPartition
from pipeline.network.model import ExternalStream
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import label
from pipeline.operations.replay.fragment import ReplayedFragment

if TYPE_CHECKING:
    from pipeline.spark.run.replay import Recomputer


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """A record of an input; `input`: the name of the stream, or its topic."""

    input: str
    partition: int
    offset: Offset

    def __str__(self) -> str:
        return f"{self.input}/{self.partition}/{self.offset}"


class ReplayEngine:
    """Recomputation of records and results of a fragment.

    Args:
        what: the fragment.
        connections: own the session and close it.
        report: receives a line for each long step.
    """

    def __init__(
        self, what: ReplayedFragment, connections: Connections, report: Callable[[str], None]
    ) -> None:
        self.what = what
        self.report = report
        self._connections = connections

    @cached_property
    def recomputer(self) -> "Recomputer":
        """The fragment's recomputer, in a Spark session."""
        self.report("opening a Spark session")
        return self._connections.recomputer(self.what.fragment, self.what.topic_ids)

    def event_time(self, place: RecordPlace) -> Millis:
        """Event time of a record, to use as the start or end of a replay.

        For an external stream, Spark computes it; for a derived one, it is the Kafka timestamp.

        Raises:
            RefusedError: there is no such input or record.
        """
        fragment, offset, topics = self.what.fragment, place.offset, self._connections.topics
        stream = next((s for s in fragment.inputs if place.input in {s.name, s.topic}), None)
        if stream is None:
            raise RefusedError(
                f"{place.input} is no input of {label(fragment)}",
                hint=f"there is: {', '.join(sorted(s.topic for s in fragment.inputs))}.",
            )
        at = InputPartition(stream.name, stream.topic, place.partition)
        start = topics.start_offsets([at.topic]).get(at.topic, {}).get(at.partition)
        end = topics.end_offsets([at.topic]).get(at.topic, {}).get(at.partition)
        if start is None or end is None or not start <= offset < end:
            holds = "does not exist" if start is None else f"holds the offsets {start} up to {end}"
            raise RefusedError(
                f"there is no record at offset {offset}: the partition {holds}",
                place=f"topic {at.topic}, partition {at.partition}",
                hint="`medusa offsets show` lists the existing offsets.",
            )
        if isinstance(stream, ExternalStream):
            return self.recomputer.event_time(at, offset)
        reader = self._connections.reader()
        found = first_timestamp(reader, at.topic, at.partition, (offset, end))
        if found is None:
            raise RefusedError(f"there is no committed record at or behind {place}")
        return found
