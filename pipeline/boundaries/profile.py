"""Lane profile: the inputs and the shape of a fragment, which decide how its event time moves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pipeline.ids import (
    FragmentId,
    FragmentName,
    NetworkLife,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.names import FragmentNames
from pipeline.network.boxes.shape import Shape
from pipeline.network.model import ExternalStream, Load, Silence
from pipeline.planner.plan import Fragment, FragmentInput

NO_LIFE: Final = NetworkLife("")


@dataclass(frozen=True, slots=True)
class ExternalInput:
    """An external input: event time follows the progress of each partition.

    `partitions` is the number in the plan; a lane uses the partitions that it really reads.
    """

    stream: StreamName
    topic: TopicName
    partitions: int
    lateness_ms: int
    idle_after_ms: int
    silence: Silence
    load: Load = Load.ALONG


@dataclass(frozen=True, slots=True)
class DerivedInput:
    """A derived input: event time follows the boundaries of its one `writer`.

    Args:
        stream: its name in the plan.
        topic: its topic.
        partitions: the number in the plan; a lane uses the partitions that it really reads.
        writer: the writer whose boundaries are used.
        topic_id: Kafka's id of the topic when the network was deployed. Boundaries of a topic with
            another id are ignored; empty: all are ignored.
        lateness_ms: least distance of its boundary behind the progress of its sources.
        life: of the network: what was promised in an earlier one does not count.
    """

    stream: StreamName
    topic: TopicName
    partitions: int
    writer: str
    topic_id: TopicId
    lateness_ms: int = 0
    life: NetworkLife = NO_LIFE


LaneInput = ExternalInput | DerivedInput


@dataclass(frozen=True, slots=True)
class LaneProfile:
    """Inputs and shape of a fragment."""

    inputs: tuple[LaneInput, ...]
    shape: Shape


def profile(
    fragment: Fragment, topic_ids: Mapping[TopicName, str], life: NetworkLife
) -> LaneProfile:
    """Compute a fragment's profile.

    Args:
        fragment: as planned.
        topic_ids: Kafka's ids of its topics at deploy.
        life: of its network.

    Raises:
        BrokenInvariantError: a box is of a kind that the table of traits does not have.
    """
    return LaneProfile(
        inputs=tuple(_input(fragment.names, one, topic_ids, life) for one in fragment.inputs),
        shape=fragment.shape,
    )


def _input(
    names: FragmentNames,
    stream: FragmentInput,
    topic_ids: Mapping[TopicName, str],
    life: NetworkLife,
) -> LaneInput:
    if isinstance(stream, ExternalStream):
        return ExternalInput(
            stream=stream.name,
            topic=stream.topic,
            partitions=stream.partitions,
            lateness_ms=stream.lateness_ms,
            idle_after_ms=stream.idle_after_ms,
            silence=stream.silence,
            load=stream.load,
        )
    # A fragment is named after its last box, and a box's stream carries the box's name.
    writer = FragmentNames(FragmentId(names.network, FragmentName(stream.name))).writer
    topic_id = TopicId(topic_ids.get(stream.topic, ""))
    return DerivedInput(
        stream.name, stream.topic, stream.partitions, writer, topic_id, stream.lateness_ms, life
    )
