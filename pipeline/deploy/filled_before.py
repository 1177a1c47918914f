"""Output topics with records from before their network first wrote them. Pure.

A topic that the network did not create outlives it. Results of an earlier life have Kafka's id of
the topic as those of the present one have, and the lane that begins anew computes them once more:
a fragment that reads both counts them twice. Boundaries of an earlier life promise what is not so.
"""

from collections.abc import Collection, Iterator, Mapping

from pipeline.catalog.records import NetworkRecord
from pipeline.errors import Problem
from pipeline.ids import FragmentName, TopicId, TopicName
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import boundaries_topic
from pipeline.planner.plan import DerivedStream, Fragment, Plan


def filled_before(
    plan: Plan,
    network: NetworkRecord | None,
    markers: Mapping[FragmentName, CommitMarker],
    topic_ids: Mapping[TopicName, str],
    filled: Collection[TopicName],
) -> frozenset[TopicName]:
    """The output topics with records, or boundaries, from before this network first wrote them.

    Args:
        plan: the plan to deploy.
        network: as deployed; None before its first deploy.
        markers: the last ones of the fragments that have run: what one of these has written is
            continued, whatever the catalog knows of it.
        topic_ids: of the plan's topics that exist.
        filled: the plan's topics that contain records.
    """
    written = dict(network.writers if network else ())
    before = frozenset(network.filled_before if network else ())

    def is_filled(fragment: Fragment) -> bool:
        topic, marker = fragment.output.topic, markers.get(fragment.name)
        topic_id = topic_ids.get(topic)
        if topic_id is None:
            return False
        if TopicId(topic_id) in written:
            return topic_id in before
        if marker is not None and marker.left_output(topic_id) is not None:
            return False
        return topic in filled or boundaries_topic(topic) in filled

    return frozenset(one.output.topic for one in plan.fragments if is_filled(one))


def read_after_all(plan: Plan, before: Collection[TopicName]) -> Iterator[Problem]:
    """The fragments that read such a topic: they would count what is in it once more."""
    for fragment in plan.fragments:
        for stream in fragment.inputs:
            if isinstance(stream, DerivedStream) and stream.topic in before:
                yield Problem(
                    f"topic {stream.topic}, which {fragment.name} reads, held records or "
                    "boundaries before this network first wrote it: results of an earlier deploy "
                    "would count a second time",
                    box=fragment.name,
                    hint=f"name another topic for the output {stream.name}, or none; or, if nobody "
                    f"needs what is in it, destroy the network if it is deployed, delete "
                    f"{stream.topic} and {boundaries_topic(stream.topic)}, and deploy again.",
                )
