"""Positions: the next offsets to read, per (input, topic, partition)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeline.ids import Millis, Offset, SourceId, StreamName, TopicId, TopicName
from pipeline.names import is_redrive


@dataclass(frozen=True, slots=True, order=True)
class InputPartition:
    """One partition of one topic, as one input of a fragment reads it."""

    input: StreamName
    topic: TopicName
    partition: int


Positions = Mapping[InputPartition, Offset]
"""The next offset to read, for every partition that a lane is assigned."""


@dataclass(frozen=True, slots=True)
class MarkedSource:
    """A source of a lane in a commit marker.

    Args:
        id: constant as long as the fragment exists, independent of the stream's name.
        name: of its stream; a label.
        definition: digest of the settings that decide the rows of its records; contains no name.
        timing: digest of the settings that decide their event times.
        topics: (name, id) of its topics: first the one that carries the stream, then the fragment's
            redrive topic, if there is one.
        skipped_ms: records at or below this event time were settled before the source was first
            read, and are skipped; None: none are.
        settled_ms: derived records at or below this event time may come late, since the fragment
            had promised more under another plan; None: none may.
        begun: whether a batch has read records of its topic.
    """

    id: SourceId
    name: StreamName
    definition: str
    timing: str
    topics: tuple[tuple[TopicName, TopicId], ...]
    skipped_ms: Millis | None = None
    settled_ms: Millis | None = None
    begun: bool = False

    @property
    def topic_id(self) -> TopicId:
        """The id of the topic that carries the stream."""
        return self.topics[0][1]

    @property
    def redrive(self) -> tuple[TopicName, TopicId] | None:
        """The redrive topic, by name and id; None: it reads none."""
        return next((topic for topic in self.topics[1:] if is_redrive(topic[0])), None)

    @property
    def records(self) -> frozenset[TopicName]:
        """The topics that carry its records."""
        carrying = (self.topics[0], self.redrive)
        return frozenset(topic[0] for topic in carrying if topic is not None)


@dataclass(frozen=True, slots=True)
class LeftSource:
    """A source that is no longer read, with its positions.

    Args:
        source: under its name when it was last read; so are the partitions below.
        end: positions in the topics that carry its records.
        needed: the oldest positions that the state still needs.
        progress: largest event time seen per partition.
    """

    source: MarkedSource
    end: Positions
    needed: Positions
    progress: Mapping[InputPartition, Millis]


def by_topic(
    positions: Positions, topics: Collection[TopicName]
) -> dict[TopicName, dict[int, Offset]]:
    """Positions in some topics, without their inputs, sorted.

    Where two inputs share a topic, the lower position counts: a reader that begins there misses
    nothing.
    """
    found: dict[TopicName, dict[int, Offset]] = {}
    for at, offset in sorted(positions.items()):
        if at.topic in topics:
            known = found.setdefault(at.topic, {})
            known[at.partition] = min(offset, known.get(at.partition, offset))
    return found
