"""Fragment records of the catalog after a deploy. Pure."""

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
from pipeline.labels import format_selector
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.cost import estimated_cost_us
from pipeline.planner.digest import fragment_digest
from pipeline.planner.inputs import Begins
from pipeline.planner.plan import Fragment, Plan
from pipeline.planner.state import OnChange
from pipeline.reliability import Mode


@dataclass(frozen=True, slots=True)
class Facts:
    """Contents of the records that the plan does not determine.

    Args:
        topic_ids: Kafka's ids of the plan's topics that exist.
        version: the version number of changed fragments.
        chosen: the choices for states, each with the incarnation of the lane that it applies to.
        begins: the beginnings of inputs that were never read, as chosen in this deploy.
        successions: the fragments whose output was last written by another fragment.
        markers: the last ones of the fragments that have run.
    """

    topic_ids: Mapping[TopicName, str]
    version: NetworkVersion
    chosen: Mapping[FragmentName, tuple[OnChange, Incarnation]] = field(default_factory=dict)
    begins: Mapping[FragmentName, tuple[Begins, ...]] = field(default_factory=dict)
    successions: Successions = field(default_factory=Successions)
    markers: Mapping[FragmentName, CommitMarker] = field(default_factory=dict)


def desired_fragments(
    plan: Plan, before: tuple[FragmentRecord, ...], facts: Facts
) -> tuple[FragmentRecord, ...]:
    """Compute the record of every fragment of the plan; an unchanged one keeps its version.

    Paused fragments stay paused. An unchanged fragment keeps its earlier choice; neither a redrive
    topic created since nor another placement, reliability or priority counts as a change.
    """
    old = {record.fragment: record for record in before}
    return tuple(_record(fragment, old.get(fragment.name), facts) for fragment in plan.fragments)


def _record(fragment: Fragment, old: FragmentRecord | None, facts: Facts) -> FragmentRecord:
    digest, name, reliability = fragment_digest(fragment), fragment.name, fragment.reliability
    topics = sorted(set(positioned_topics(fragment, facts.topic_ids)))
    ids = tuple((topic, facts.topic_ids[topic]) for topic in topics)
    # The same query reads redriven records, so their topic alone does not change the fragment.
    was = _without_redrive(fragment, old.topic_ids) if old is not None else ()
    unchanged = old is not None and old.digest == digest and was == _without_redrive(fragment, ids)
    same = old if unchanged else None
    paused = old is not None and old.desired is DesiredState.PAUSED
    output_id = TopicId(facts.topic_ids[fragment.output.topic])
    choice = facts.chosen.get(name, same.choice if same else None)
    # A new decision gets a new version, so that a lane that is starting now does not apply it.
    kept = same is not None and choice == same.choice and not facts.begins.get(name)
    version = same.version if same is not None and kept else facts.version
    marker = facts.markers.get(name)
    begun_anew = same.begun_anew if same is not None and kept else marker.anew if marker else ""
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
        begun_anew=begun_anew,
        nodes=format_selector(fragment.nodes),
        apart=fragment.apart,
        cost_us=estimated_cost_us(fragment),
        active_standbys=reliability.active_standbys,
        passive_standbys=reliability.passive_standbys,
        checkpoint_every_ms=reliability.checkpoint_every_ms,
        priority=fragment.priority,
        amnesia=reliability.mode is Mode.AMNESIA,
        may_be_tentative=fragment.may_be_tentative,
    )


def _without_redrive(
    fragment: Fragment, ids: tuple[tuple[TopicName, str], ...]
) -> tuple[tuple[TopicName, str], ...]:
    return tuple(one for one in ids if one[0] != fragment.names.redrive)


def _begins(
    fragment: Fragment, old: FragmentRecord | None, version: NetworkVersion, facts: Facts
) -> tuple[Begun, ...]:
    """Beginnings chosen now, and those that still apply of topics that are read, under any name."""
    found: dict[StreamName, Begun] = {}
    streams = {facts.topic_ids[stream.topic]: stream.name for stream in fragment.inputs}
    for begun in facts.successions.begins(old):
        stream = streams.get(begun.topic_id)
        if stream is not None:
            found[stream] = begun._replace(stream=stream)
    for one in facts.begins.get(fragment.name, ()):
        topic_id = facts.topic_ids[one.topic]
        since = NO_VERSION if one.anew else version
        decided = Begun(one.stream, topic_id, one.ranges, one.skips, one.passes_over, since)
        found[one.stream] = decided
    return tuple(found[stream] for stream in sorted(found))


def positioned_topics(fragment: Fragment, existing: Container[TopicName]) -> Iterator[TopicName]:
    """The topics in which a fragment has positions, and its output, in which readers have some.

    If one of these is deleted and created again, the positions refer to other records. Boundaries
    are not included: they can be published again without harm. Nor are dead letters: a lane
    continues without them, and only a rebuild needs them.

    Args:
        fragment: as planned.
        existing: the topics that exist; the redrive topic is created by the first redrive.
    """
    for stream in fragment.inputs:
        yield stream.topic
    yield fragment.output.topic
    if fragment.names.redrive in existing:
        yield fragment.names.redrive
    yield fragment.names.markers
