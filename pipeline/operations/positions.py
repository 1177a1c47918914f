"""Positions of fragments in their input partitions, by the last commit marker, with lags."""

from collections.abc import Mapping
from dataclasses import dataclass

from brokers.log_reader import LogReader, first_timestamp
from pipeline.deploy.writers import pending_succession
from pipeline.errors import RefusedError
from pipeline.ids import Millis, Offset, StreamName, TopicName
from pipeline.lanes.source_ids import carry, planned_sources
from pipeline.markers.codec import decode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions, by_topic
from pipeline.names import FragmentNames
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import label
from pipeline.planner.plan import Fragment


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """The position of a fragment in one input partition.

    Args:
        position: the next offset to read; None: the fragment never ran, or not with this
            partition, or begins anew at its next start.
        log_start: the oldest offset of the partition.
        end: its committed end.
        next_ms: the Kafka timestamp of the first record at or after the position; None: there is
            none, or the position is older than the log.
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
    """The last commit marker of a fragment; as of `marker_in`."""
    return marker_in(names, connections.servers.log)


def marker_in(names: FragmentNames, log: LogReader) -> CommitMarker | None:
    """The last commit marker of a fragment; None if it never ran.

    Raises:
        NoSuchTopicError: its marker topic does not exist.
    """
    topic = names.markers
    last = log.last(topic)
    if last is None or last.value is None:
        return None
    return decode_marker(last.value, f"topic {topic}")


def present_marker(fragment: Fragment, connections: Connections) -> CommitMarker | None:
    """The last commit marker of a fragment, in the stream names of the deployed version.

    None: it never ran, or it begins anew at its next start, since another fragment has written its
    output; then no earlier position counts.
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


def input_positions(fragment: Fragment, connections: Connections) -> tuple[PartitionPosition, ...]:
    """The positions of a fragment in its input partitions, of those topics that exist.

    Raises:
        NoSuchTopicError: its marker topic does not exist.
    """
    marker = present_marker(fragment, connections)
    read: Positions = {} if marker is None else marker.end
    positions = {(at.input, at.topic, at.partition): offset for at, offset in read.items()}
    topics = sorted({stream.topic for stream in fragment.inputs})
    starts = connections.topics.start_offsets(topics)
    ends = connections.topics.end_offsets(topics)
    found = []
    reader = connections.reader()
    for stream in fragment.inputs:
        for partition, end in sorted(ends.get(stream.topic, {}).items()):
            start = starts.get(stream.topic, {}).get(partition, end)
            position = positions.get((stream.name, stream.topic, partition))
            found.append(
                PartitionPosition(
                    input=stream.name,
                    topic=stream.topic,
                    partition=partition,
                    position=position,
                    log_start=start,
                    end=end,
                    next_ms=None
                    if position is None or position < start
                    else first_timestamp(reader, stream.topic, partition, (position, end)),
                )
            )
    return tuple(found)


def committed_positions(
    fragment: Fragment, connections: Connections
) -> Mapping[TopicName, Mapping[int, Offset]]:
    """The next offset to read of every input partition that a fragment has read.

    Raises:
        RefusedError: it has not run yet.
        NoSuchTopicError: its marker topic does not exist.
    """
    marker = last_marker(fragment.names, connections)
    if marker is None:
        raise RefusedError(
            "the fragment has not run yet, so it has no positions",
            place=f"fragment {label(fragment)}",
            hint="`medusa status` shows whether a node has claimed it.",
        )
    return by_topic(marker.end, {stream.topic for stream in fragment.inputs})
