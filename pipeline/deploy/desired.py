"""What the catalog shall hold after a deploy. Pure."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from pipeline.catalog.records import Begun, DesiredState, FragmentRecord
from pipeline.deploy.writers import Successions
from pipeline.ids import (
    NO_VERSION,
    FragmentName,
    Incarnation,
    NetworkVersion,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.planner.digest import fragment_digest
from pipeline.planner.inputs import Begins
from pipeline.planner.plan import Fragment, Plan
from pipeline.planner.state import OnChange


@dataclass(frozen=True, slots=True)
class Facts:
    """What the records hold beside the plan.

    Args:
        topic_ids: Kafka's ids of the plan's topics that exist by now.
        version: the number that a changed fragment gets.
        chosen: what was chosen for states, and for which lives of their lanes.
        begins: where fragments begin to read what they have never read, as far as chosen now.
        successions: the fragments whose output another one wrote last.
    """

    topic_ids: Mapping[TopicName, str]
    version: NetworkVersion
    chosen: Mapping[FragmentName, tuple[OnChange, Incarnation]] = field(default_factory=dict)
    begins: Mapping[FragmentName, tuple[Begins, ...]] = field(default_factory=dict)
    successions: Successions = field(default_factory=Successions)


def desired_fragments(
    plan: Plan, before: tuple[FragmentRecord, ...], facts: Facts
) -> tuple[FragmentRecord, ...]:
    """A record for every fragment of the plan; one that did not change keeps its version.

    What is paused stays so. A choice that was made before stays for a fragment that did not change,
    be it that it has got its redrive topic.
    """
    known = {record.fragment: record for record in before}
    return tuple(_record(fragment, known.get(fragment.name), facts) for fragment in plan.fragments)


def _record(fragment: Fragment, old: FragmentRecord | None, facts: Facts) -> FragmentRecord:
    digest, name = fragment_digest(fragment), fragment.name
    topics = sorted(set(positioned_topics(fragment, facts.topic_ids)))
    ids = tuple((topic, facts.topic_ids[topic]) for topic in topics)
    # What is sent again reaches the same query, so that the topic for it changes nothing else.
    was = _but_redriven(fragment, old.topic_ids) if old is not None else ()
    unchanged = old is not None and old.digest == digest and was == _but_redriven(fragment, ids)
    same = old if unchanged else None
    paused = old is not None and old.desired is DesiredState.PAUSED
    output_id = TopicId(facts.topic_ids[fragment.output.topic])
    choice = facts.chosen.get(name, same.choice if same else None)
    # What is decided anew is of another version, so that a lane that starts by now does not do it.
    kept = same is not None and choice == same.choice and not facts.begins.get(name)
    version = same.version if same is not None and kept else facts.version
    return FragmentRecord(
        network=fragment.names.network,
        fragment=name,
        version=version,
        desired=DesiredState.PAUSED if paused else DesiredState.RUNNING,
        digest=digest,
        topic_ids=ids,
        choice=choice,
        begins=_begins(fragment, old, version, facts),
        succeeds=facts.successions.of(name, facts.version, output_id)
        or (same.succeeds if same else None),
    )


def _but_redriven(
    fragment: Fragment, ids: tuple[tuple[TopicName, str], ...]
) -> tuple[tuple[TopicName, str], ...]:
    return tuple(one for one in ids if one[0] != fragment.names.redrive)


def _begins(
    fragment: Fragment, old: FragmentRecord | None, version: NetworkVersion, facts: Facts
) -> tuple[Begun, ...]:
    """What was chosen now, and before for topics that it still reads, under any name."""
    found: dict[StreamName, Begun] = {}
    streams = {facts.topic_ids[stream.topic]: stream.name for stream in fragment.inputs}
    for begun in old.begins if old is not None else ():
        stream = streams.get(begun.topic_id)
        if stream is not None:
            found[stream] = begun._replace(stream=stream)
    for one in facts.begins.get(fragment.name, ()):
        topic_id = facts.topic_ids[one.topic]
        since = NO_VERSION if one.anew else version
        decided = Begun(one.stream, topic_id, one.ranges, one.skips, one.passes_over, since)
        found[one.stream] = decided
    return tuple(found[stream] for stream in sorted(found))


def positioned_topics(fragment: Fragment, there: Container[TopicName]) -> Iterator[TopicName]:
    """The topics in which a fragment has positions, or others have positions in its output.

    If one of these is deleted and made again, the positions mean other records. Boundaries are not
    among them: they can be made anew without harm. Nor are dead letters: a lane goes on without
    them, and only a rebuild needs those that were written.

    Args:
        fragment: as planned.
        there: the topics that exist; its redrive topic does once there was something to send again.
    """
    for stream in fragment.inputs:
        yield stream.topic
    yield fragment.output.topic
    if fragment.names.redrive in there:
        yield fragment.names.redrive
    yield fragment.names.advances
    yield fragment.names.markers
