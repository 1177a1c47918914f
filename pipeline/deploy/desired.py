"""What the catalog shall hold after a deploy. Pure."""

from collections.abc import Iterator, Mapping

from pipeline.catalog.records import DesiredState, FragmentRecord
from pipeline.ids import FragmentName, NetworkVersion, TopicName
from pipeline.names import tentative_topic
from pipeline.planner.digest import fragment_digest
from pipeline.planner.plan import DerivedStream, Fragment, Plan


def desired_fragments(
    plan: Plan,
    before: tuple[FragmentRecord, ...],
    topic_ids: Mapping[TopicName, str],
    version: NetworkVersion,
) -> tuple[FragmentRecord, ...]:
    """A record for every fragment of the plan; one that did not change keeps its version.

    Args:
        plan: what is wanted.
        before: the records of the deployed version.
        topic_ids: Kafka's ids of the plan's topics, all of which exist by now.
        version: the number that a changed fragment gets.
    """
    known = {record.fragment: record for record in before}
    return tuple(_record(fragment, known, topic_ids, version) for fragment in plan.fragments)


def _record(
    fragment: Fragment,
    known: Mapping[FragmentName, FragmentRecord],
    topic_ids: Mapping[TopicName, str],
    version: NetworkVersion,
) -> FragmentRecord:
    digest = fragment_digest(fragment)
    ids = tuple((topic, topic_ids[topic]) for topic in sorted(set(positioned_topics(fragment))))
    old = known.get(fragment.name)
    unchanged = old is not None and (old.digest, old.topic_ids) == (digest, ids)
    return FragmentRecord(
        network=fragment.names.network,
        fragment=fragment.name,
        version=old.version if old is not None and unchanged else version,
        desired=DesiredState.RUNNING,
        digest=digest,
        topic_ids=ids,
    )


def positioned_topics(fragment: Fragment) -> Iterator[TopicName]:
    """The topics in which a fragment has positions, or others have positions in its output.

    If one of these is deleted and made again, the positions mean other records. Dead letters and
    boundaries are not among them: they can be made anew without harm.
    """
    for stream in fragment.inputs:
        yield stream.topic
        if isinstance(stream, DerivedStream):
            yield tentative_topic(stream.topic)
    yield fragment.output.topic
    yield fragment.names.redrive
    yield fragment.names.advances
    yield fragment.names.markers
