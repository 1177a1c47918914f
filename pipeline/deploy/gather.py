"""Reads what is there now, so that pure code can compare it with what is wanted."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from brokers.records import TopicDescription
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import DesiredState, FragmentRecord, NetworkRecord
from pipeline.deploy.documents import replan_or_none
from pipeline.deploy.inputs import Inputs, changed_inputs, look
from pipeline.deploy.others import Taken, written_topics
from pipeline.deploy.ports import Registry
from pipeline.deploy.registered import registered_schemas
from pipeline.deploy.review import Surroundings
from pipeline.deploy.writers import Successions, successions
from pipeline.ids import FragmentName, Millis, NetworkId, TopicId, TopicName
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.changes import Current, DeployedFragment, ExistingTopic
from pipeline.planner.plan import Fragment, Plan
from pipeline.planner.state import Choices, KeptState


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the catalog holds of a network; empty before its first deploy.

    Args:
        digest: of the wanted version.
    """

    network: NetworkRecord | None = None
    digest: str = ""
    fragments: tuple[FragmentRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom `gather` asks."""

    topics: TopicAdmin
    log: LogReader
    registry: Registry
    catalog: Catalog


def gather(plan: Plan, recorded: Recorded, choices: Choices, asked: Asked) -> Surroundings:
    """Ask about everything that the plan and the deployed fragments name, and about others."""
    topics, registry = asked.topics, asked.registry
    known = frozenset(topic for record in recorded.fragments for topic, _ in record.topic_ids)
    names = sorted(known.union(topic.name for topic in plan.topics))
    described = topics.describe(names)
    configs = topics.topic_configs(described)
    filled = filled_topics(described, topics)
    has_run = _has_run(plan, filled)
    records = {record.fragment: record for record in recorded.fragments}
    markers = _markers(plan.fragments, has_run, asked.log)
    inputs = look(described, topics, _read_before(markers), recorded.network)
    ids = {topic: TopicId(facts.topic_id) for topic, facts in described.items()}
    found = _successions(plan, recorded, markers, ids)
    going_on = {name: one for name, one in markers.items() if name not in found}
    states = _states(plan, records, choices, going_on, inputs)
    return Surroundings(
        current=Current(
            version=recorded.network.version if recorded.network else None,
            digest=recorded.digest,
            fragments=tuple(_deployed(record) for record in recorded.fragments),
            has_run=has_run,
            topics=tuple(
                ExistingTopic(topic, facts.partitions, facts.topic_id, configs.get(topic, {}))
                for topic, facts in sorted(described.items())
            ),
            others=_others(plan, described, topics),
            schemas=registered_schemas(plan, _going_on(plan, records, inputs), registry),
            states=states,
            oldest=_oldest(plan, states, described, asked.log),
            inputs=changed_inputs(plan, records, markers, inputs, found),
            anew=frozenset({*found.found, *found.pending}),
        ),
        filled=filled,
        known=known,
        taken=_taken(plan.network, asked.catalog),
        successions=found,
        markers=markers,
    )


def _successions(
    plan: Plan,
    recorded: Recorded,
    markers: Mapping[FragmentName, CommitMarker],
    topic_ids: Mapping[TopicName, TopicId],
) -> Successions:
    """The fragments that begin to write what another one wrote last; none at a first deploy."""
    network = recorded.network
    if network is None:
        return Successions()
    records = {record.fragment: record for record in recorded.fragments}
    return successions(plan, (network.life, network.writers), records, markers, topic_ids)


def _going_on(
    plan: Plan, records: Mapping[FragmentName, FragmentRecord], inputs: Inputs
) -> frozenset[FragmentName]:
    """The fragments that are deployed as the plan has them."""
    changed = (f.name for f in plan.fragments if inputs.is_changed(f, records.get(f.name)))
    return frozenset(f.name for f in plan.fragments).difference(changed)


def _others(
    plan: Plan, described: Iterable[TopicName], topics: TopicAdmin
) -> tuple[TopicName, ...]:
    """All topics there are, if an input is missing: it may be one of them, written wrongly."""
    inputs = {topic.name for topic in plan.topics if topic.external}
    return topics.topic_names() if inputs.difference(described) else ()


def _deployed(record: FragmentRecord) -> DeployedFragment:
    return DeployedFragment(
        name=record.fragment,
        digest=record.digest,
        running=record.desired is DesiredState.RUNNING,
        topic_ids=record.topic_ids,
        paused=record.desired is DesiredState.PAUSED,
    )


def filled_topics(described: Iterable[TopicName], topics: TopicAdmin) -> frozenset[TopicName]:
    """The topics with at least one record that was not removed."""
    names = tuple(described)
    starts, ends = topics.start_offsets(names), topics.end_offsets(names)
    return frozenset(
        name
        for name in names
        if any(
            end > starts.get(name, {}).get(partition, 0)
            for partition, end in ends.get(name, {}).items()
        )
    )


def _has_run(plan: Plan, filled: frozenset[TopicName]) -> frozenset[FragmentName]:
    """A fragment that ever started has a commit marker."""
    return frozenset(f.name for f in plan.fragments if f.names.markers in filled)


def last_markers(
    fragments: Iterable[Fragment], topics: TopicAdmin, log: LogReader
) -> dict[FragmentName, CommitMarker]:
    """The last commit markers of fragments that have run."""
    every = tuple(fragments)
    there = topics.describe([fragment.names.markers for fragment in every])
    filled = filled_topics(there, topics)
    return _markers(every, {f.name for f in every if f.names.markers in filled}, log)


def _markers(
    fragments: Iterable[Fragment], has_run: Collection[FragmentName], log: LogReader
) -> dict[FragmentName, CommitMarker]:
    found: dict[FragmentName, CommitMarker] = {}
    for fragment in fragments:
        topic = fragment.names.markers
        record = log.last(topic) if fragment.name in has_run else None
        if record is not None and record.value is not None:
            found[fragment.name] = codec.decode_marker(record.value, f"topic {topic}")
    return found


def _read_before(markers: Mapping[FragmentName, CommitMarker]) -> set[TopicName]:
    """The topics that fragments have read, whatever they read now."""
    return {source.topics[0][0] for marker in markers.values() for source in marker.sources}


def _states(
    plan: Plan,
    records: Mapping[FragmentName, FragmentRecord],
    choices: Choices,
    markers: Mapping[FragmentName, CommitMarker],
    inputs: Inputs,
) -> dict[FragmentName, KeptState]:
    """The states of the fragments that changed, or all of them when something was chosen."""
    found: dict[FragmentName, KeptState] = {}
    for fragment in plan.fragments:
        marker = markers.get(fragment.name)
        if marker is None or marker.nothing_read:
            continue
        if fragment.stateful_box is None and fragment.name not in choices.named:
            continue
        record = records.get(fragment.name)
        if choices.some or inputs.is_changed(fragment, record):
            same = inputs.carried(fragment, marker, record).same
            found[fragment.name] = KeptState(
                marker.state, marker.incarnation, same, marker.boundary_ms
            )
    return found


def _oldest(
    plan: Plan,
    states: Mapping[FragmentName, KeptState],
    described: Mapping[TopicName, TopicDescription],
    log: LogReader,
) -> dict[TopicName, Millis]:
    """How far back the inputs reach of fragments that may be computed again."""
    topics = {
        stream.topic
        for fragment in plan.fragments
        if (kept := states.get(fragment.name)) and not kept.fits(fragment)
        for stream in fragment.inputs
        if stream.topic in described
    }
    found = ((topic, log.oldest_ms(topic, described[topic].partitions)) for topic in sorted(topics))
    return {topic: at_ms for topic, at_ms in found if at_ms is not None}


def _taken(ours: NetworkId, catalog: Catalog) -> dict[TopicName, Taken]:
    """What all deployed networks but ours write, stopped ones and other participants' too."""
    found: dict[TopicName, Taken] = {}
    for record, version in catalog.versions.deployed():
        if record.network == ours:
            continue
        made = Taken(record.network, "a topic", readable=True)
        found.update(dict.fromkeys(record.made_topics, made))
        plan = replan_or_none(version)  # else what it made has to do
        if plan is not None:
            found.update(written_topics(plan))
    return found
