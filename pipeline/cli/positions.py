"""Positions of fragments for people and other tools: the last commit marker beside the topics."""

from collections.abc import Mapping
from dataclasses import dataclass

from brokers.kafka.reader import TopicReader
from pipeline.cli.connections import Connections
from pipeline.deploy.writers import pending_succession
from pipeline.ids import Millis, Offset, StreamName, TopicName
from pipeline.lanes.sources import carry, planned_sources
from pipeline.markers.codec import decode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions
from pipeline.names import FragmentNames
from pipeline.planner.plan import Fragment


@dataclass(frozen=True, slots=True)
class Standing:
    """How one input partition of a fragment stands.

    Args:
        position: the next offset to read; None: the fragment never ran, or not with this
            partition, or begins anew when it starts.
        log_start: the oldest offset that the partition holds.
        end: its committed end.
        next_ms: the Kafka timestamp of the record at the position, or of the first one after it;
            None: there is none, or the position is not in the log any more.
    """

    input: StreamName
    topic: TopicName
    partition: int
    position: Offset | None
    log_start: Offset
    end: Offset
    next_ms: Millis | None

    @property
    def lag(self) -> int | None:
        """Offsets between position and end, at least the number of records; None: unknown."""
        return None if self.position is None else max(0, self.end - self.position)


def last_marker(names: FragmentNames, connections: Connections) -> CommitMarker | None:
    """The last commit marker of a fragment; None if it never ran."""
    topic = names.markers
    last = connections.servers.log.last(topic)
    if last is None or last.value is None:
        return None
    return decode_marker(last.value, f"topic {topic}")


def present_marker(fragment: Fragment, connections: Connections) -> CommitMarker | None:
    """The last commit marker in the names that the deployed version has.

    None: it never ran, or it begins anew when it starts, where another fragment has written. Then
    it goes on from nothing that it has read before.
    """
    names = fragment.names
    record = connections.catalog.fragments.get(names.network, names.fragment)
    marker = last_marker(names, connections)
    if record is None or marker is None:
        return None
    network = connections.catalog.networks.get(names.network)
    if network is None or pending_succession(record, network.life, marker) is not None:
        return None
    planned = planned_sources(fragment, dict(record.topic_ids))
    return carry(marker, planned, record.decided(network.life)).marker


def standings(fragment: Fragment, connections: Connections) -> tuple[Standing, ...]:
    """How the partitions of a fragment's input streams stand; of topics that exist."""
    marker = present_marker(fragment, connections)
    known: Positions = {} if marker is None else marker.end
    named = {(at.input, at.topic, at.partition): offset for at, offset in known.items()}
    topics = sorted({stream.topic for stream in fragment.inputs})
    starts = connections.topics.start_offsets(topics)
    ends = connections.topics.end_offsets(topics)
    found = []
    reader = connections.reader()
    for stream in fragment.inputs:
        for partition, end in sorted(ends.get(stream.topic, {}).items()):
            start = starts.get(stream.topic, {}).get(partition, end)
            position = named.get((stream.name, stream.topic, partition))
            found.append(
                Standing(
                    input=stream.name,
                    topic=stream.topic,
                    partition=partition,
                    position=position,
                    log_start=start,
                    end=end,
                    next_ms=None
                    if position is None or position < start
                    else first_time(stream.topic, partition, (position, end), reader),
                )
            )
    return tuple(found)


def first_time(
    topic: TopicName, partition: int, offsets: tuple[Offset, Offset], reader: TopicReader
) -> Millis | None:
    """The Kafka timestamp of the first record in a range of offsets; None: it holds none."""
    start, end = offsets
    if start >= end:
        return None
    reader.assign({topic: {partition: start}})
    first = next(iter(reader.read_to({topic: {partition: end}})), None)
    return None if first is None else first.timestamp_ms


def starting_offsets(
    positions: Mapping[TopicName, Mapping[int, Offset]],
) -> dict[str, dict[str, int]]:
    """Positions as Spark's `startingOffsets` takes them: partitions are text."""
    return {
        str(topic): {str(partition): int(offset) for partition, offset in sorted(offsets.items())}
        for topic, offsets in positions.items()
    }
