"""Records that Kafka acknowledged and no longer has, found when a lane starts. Pure.

A marker names offsets below which records were there: those that were read, and those of the output
that were written. A topic that ends below them has lost records in Kafka itself, for instance by an
unclean leader election. What is written there next would get offsets that meant other records.
"""

from brokers.records import Ends
from pipeline.errors import RefusedError
from pipeline.ids import FragmentName, TopicName
from pipeline.markers.commit_marker import CommitMarker

_GO_ON = (
    "restore the topic, or deploy with `--state {fragment}=empty` to go on without these records"
)


def lost_input(marker: CommitMarker, ends: Ends, fragment: FragmentName) -> RefusedError | None:
    """An input topic that ends below what was read of it; None: there is none.

    Args:
        marker: the last one.
        ends: where topics end, open transactions included; one that is missing is not judged.
        fragment: for the advice.
    """
    for at, read in sorted(marker.end.items()):
        end = ends.get(at.topic, {}).get(at.partition, read)
        if end < read:
            return RefusedError(
                f"everything before offset {read} was read, but the topic ends at {end}: "
                "records were lost in Kafka itself",
                place=f"topic {at.topic}, partition {at.partition}",
                hint=_GO_ON.format(fragment=fragment),
            )
    return None


def lost_output(
    marker: CommitMarker, topic: TopicName, topic_id: str, ends: Ends, fragment: FragmentName
) -> RefusedError | None:
    """An output topic that ends below what was written to it; None: it does not.

    Args:
        marker: the last one.
        topic: the output.
        topic_id: Kafka's id of it; what the marker says of another topic does not count.
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
                hint=_GO_ON.format(fragment=fragment) + ", which readers may have read",
            )
    return None
