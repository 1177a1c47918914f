"""Detection of acknowledged records that Kafka has lost, when a lane starts. Pure.

A marker contains offsets below which records existed: input that was read, and output that was
written. A topic that ends below them has lost records in Kafka itself, for instance by an unclean
leader election. New records there would get offsets that had identified other records.
"""

from brokers.records import Ends
from pipeline.errors import RefusedError
from pipeline.ids import FragmentName, TopicName
from pipeline.markers.commit_marker import CommitMarker

_HINT = (
    "restore the topic, or deploy with `--state {fragment}=empty` to go on without these records"
)


def lost_input(marker: CommitMarker, ends: Ends, fragment: FragmentName) -> RefusedError | None:
    """Error for an input topic that ends below the positions read; None: there is none.

    Args:
        marker: the last one.
        ends: ends of the topics, open transactions included; missing topics are not checked.
        fragment: for the advice.
    """
    for at, read in sorted(marker.reached.items()):
        end = ends.get(at.topic, {}).get(at.partition, read)
        if end < read:
            return RefusedError(
                f"everything before offset {read} was read, but the topic ends at {end}: "
                "records were lost in Kafka itself",
                place=f"topic {at.topic}, partition {at.partition}",
                hint=_HINT.format(fragment=fragment),
            )
    return None


def lost_output(
    marker: CommitMarker, topic: TopicName, topic_id: str, ends: Ends, fragment: FragmentName
) -> RefusedError | None:
    """Error for an output topic that ends below the acknowledged ends; None: it does not.

    Args:
        marker: the last one.
        topic: the output.
        topic_id: Kafka's id of it; a marker of another output topic is not compared.
        ends: as for `lost_input`.
        fragment: for the advice.
    """
    if marker.output != topic_id:
        return None
    for partition, written in sorted(marker.output_ends.items()):
        end = ends.get(topic, {}).get(partition, written)
        if end < written:
            return RefusedError(
                f"everything before offset {written} was written and acknowledged, but the topic "
                f"ends at {end}: results were lost in Kafka itself",
                place=f"topic {topic}, partition {partition}",
                hint=_HINT.format(fragment=fragment) + ", which readers may have read",
            )
    return None
