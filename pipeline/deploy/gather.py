"""Reads of the deployed state, which pure code compares with the plan."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from brokers.records import TopicDescription
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import DesiredState, FragmentRecord, NetworkRecord, NodeRecord
from pipeline.deploy.documents import replan_or_none
from pipeline.deploy.filled_before import filled_before
from pipeline.deploy.inputs import Inputs, changed_inputs, read_inputs
from pipeline.deploy.kept_by_need import Removed, by_need, lost_topics
from pipeline.deploy.others import Others, Taken, written_topics
from pipeline.deploy.registered import registered_schemas
from pipeline.deploy.registry_interface import Registry
from pipeline.deploy.review import Surroundings, inputs_of
from pipeline.deploy.waits import MeasuredReader, external_topics
from pipeline.deploy.writers import Successions, successions
from pipeline.ids import (
    FragmentId,
    FragmentName,
    Millis,
    NetworkId,
    ParticipantId,
    TopicId,
    TopicName,
)
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames
from pipeline.planner.changes import Current, DeployedFragment, ExistingTopic
from pipeline.planner.inputs import ChangedInput
from pipeline.planner.plan import DerivedStream, Fragment, Plan
from pipeline.planner.state import Choices, KeptState


@dataclass(frozen=True, slots=True)
class Recorded:
    """The catalog's records of a network; empty before its first deploy.

    Args:
        digest: of the deployed version.
    """

    network: NetworkRecord | None = None
    digest: str = ""
    fragments: tuple[FragmentRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Clients:
    """Clients of the servers that `gather` reads from."""

    topics: TopicAdmin
    log: LogReader
    registry: Registry
    catalog: Catalog


def gather(plan: Plan, recorded: Recorded, choices: Choices, clients: Clients) -> Surroundings:
    """Read the topics and subjects of the plan and of deployed fragments, and other networks."""
    topics, registry = clients.topics, clients.registry
    known = frozenset(topic for record in recorded.fragments for topic, _ in record.topic_ids)
    names = sorted(known.union(topic.name for topic in plan.topics))
    described = topics.describe(names)
    configs = topics.topic_configs(described)
    filled = filled_topics(described, topics)
    has_run = _has_run(plan, filled)
    records = {record.fragment: record for record in recorded.fragments}
    markers = _markers(plan.fragments, has_run, clients.log)
    inputs = read_inputs(described, topics, _read_before(markers), recorded.network)
    ids = {topic: TopicId(facts.topic_id) for topic, facts in described.items()}
    found = _successions(plan, recorded, markers, ids)
    continued = {name: one for name, one in markers.items() if name not in found}
    others = other_networks(plan.network, clients.catalog)
    repeated = _repeated((*markers.values(), *_of_removed_writers(plan, recorded, ids, clients)))
    changed = changed_inputs(plan, records, markers, inputs, found)
    unchanged = _unchanged(plan, records, inputs)
    going_on = () if choices.some else unchanged.difference(_beginning(changed))
    compared = [fragment for fragment in plan.fragments if fragment.name not in going_on]
    states = _states(compared, records, choices, continued, inputs, found)
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
            schemas=registered_schemas(plan, unchanged, registry),
            states=states,
            oldest=_oldest(plan, states, described, clients.log),
            inputs=changed,
            anew=frozenset({*found.found, *found.pending}),
            repeated=frozenset(topic for topic, one in ids.items() if one in repeated),
        ),
        filled=filled,
        known=known,
        filled_before=filled_before(plan, recorded.network, markers, ids, filled),
        others=others,
        removed=_removed(plan, others, records, markers, inputs, found),
        nodes=_open_nodes(plan.network.participant, clients.catalog),
        places=_places(plan.network, recorded, clients.catalog),
        catalog=clients.catalog.snapshot(plan.network.participant),
        waits=_waits(plan, clients.catalog),
        successions=found,
        markers=markers,
    )


def _successions(
    plan: Plan,
    recorded: Recorded,
    markers: Mapping[FragmentName, CommitMarker],
    topic_ids: Mapping[TopicName, TopicId],
) -> Successions:
    """Fragments whose output was last written by another fragment; none at a first deploy."""
    network = recorded.network
    if network is None:
        return Successions()
    records = {record.fragment: record for record in recorded.fragments}
    return successions(plan, (network.life, network.writers), records, markers, topic_ids)


def _unchanged(
    plan: Plan, records: Mapping[FragmentName, FragmentRecord], inputs: Inputs
) -> frozenset[FragmentName]:
    """The fragments whose deployed version equals the planned one."""
    changed = (f.name for f in plan.fragments if inputs.is_changed(f, records.get(f.name)))
    return frozenset(f.name for f in plan.fragments).difference(changed)


def _beginning(changed: Mapping[FragmentName, tuple[ChangedInput, ...]]) -> set[FragmentName]:
    """The fragments that begin to read an input."""
    return {name for name, inputs in changed.items() if any(one.begins for one in inputs)}


def _others(
    plan: Plan, described: Iterable[TopicName], topics: TopicAdmin
) -> tuple[TopicName, ...]:
    """The names of all topics, if an input is missing: it may be one of them, misspelled."""
    inputs = {topic.name for topic in plan.topics if topic.external}
    return topics.topic_names() if inputs.difference(described) else ()


def _deployed(record: FragmentRecord) -> DeployedFragment:
    return DeployedFragment(
        name=record.fragment,
        digest=record.digest,
        running=record.is_wanted,
        topic_ids=record.topic_ids,
        paused=record.desired is DesiredState.PAUSED,
        nodes=record.nodes,
        apart=record.apart,
        reliability=record.reliability,
        priority=record.priority,
    )


def _open_nodes(participant: ParticipantId, catalog: Catalog) -> tuple[NodeRecord, ...]:
    """The nodes that are up and not drained."""
    drained = catalog.drains.of(participant)
    return tuple(one for one in catalog.nodes.of(participant) if one.node not in drained)


def _places(
    network: NetworkId, recorded: Recorded, catalog: Catalog
) -> Mapping[FragmentName, NodeRecord]:
    """The fragments that should run and whose owner is up, with that node."""
    up = {one.node: one for one in catalog.nodes.of(network.participant)}
    owners = catalog.owners.of(network) if recorded.network else {}
    wanted = {record.fragment for record in recorded.fragments if record.is_wanted}
    return {
        one.fragment: up[owner.node]
        for one, owner in owners.items()
        if one.fragment in wanted and owner.node in up
    }


def filled_topics(described: Iterable[TopicName], topics: TopicAdmin) -> frozenset[TopicName]:
    """The topics that contain at least one record."""
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
    """The fragments that have a commit marker: all that ever started."""
    return frozenset(f.name for f in plan.fragments if f.names.markers in filled)


def last_markers(
    fragments: Iterable[Fragment], topics: TopicAdmin, log: LogReader
) -> dict[FragmentName, CommitMarker]:
    """The last commit markers of fragments that have run."""
    every = tuple(fragments)
    existing = topics.describe([fragment.names.markers for fragment in every])
    filled = filled_topics(existing, topics)
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


def _repeated(markers: Iterable[CommitMarker]) -> set[str]:
    """The ids of the topics in which results may come twice."""
    return {output for marker in markers for output in marker.repeated}


def _of_removed_writers(
    plan: Plan,
    recorded: Recorded,
    topic_ids: Mapping[TopicName, TopicId],
    clients: Clients,
) -> Iterator[CommitMarker]:
    """The last markers of fragments that are not in a plan, and have written what it reads."""
    writers = dict(recorded.network.writers if recorded.network else ())
    every = {
        name
        for fragment in plan.fragments
        for stream in fragment.inputs
        if isinstance(stream, DerivedStream) and stream.topic in topic_ids
        for name in writers.get(topic_ids[stream.topic], ())
    }
    gone = sorted(every.difference(fragment.name for fragment in plan.fragments))
    topics = [FragmentNames(FragmentId(plan.network, name)).markers for name in gone]
    for topic in sorted(filled_topics(clients.topics.describe(topics), clients.topics)):
        record = clients.log.last(topic)
        if record is not None and record.value is not None:
            yield codec.decode_marker(record.value, f"topic {topic}")


def _read_before(markers: Mapping[FragmentName, CommitMarker]) -> set[TopicName]:
    """The topics that fragments have read; they may not read them any more."""
    return {source.topics[0][0] for marker in markers.values() for source in marker.sources}


def _states(
    fragments: Iterable[Fragment],
    records: Mapping[FragmentName, FragmentRecord],
    choices: Choices,
    markers: Mapping[FragmentName, CommitMarker],
    inputs: Inputs,
    successions: Successions,
) -> dict[FragmentName, KeptState]:
    """The states of some fragments.

    `markers`: those of the fragments that continue.
    """
    found: dict[FragmentName, KeptState] = {}
    for fragment in fragments:
        marker = markers.get(fragment.name)
        if marker is None or marker.nothing_read:
            continue
        if fragment.stateful_box is None and fragment.name not in choices.named:
            continue
        begins = successions.begins(records.get(fragment.name))
        same = inputs.carried(fragment, marker, begins).same
        found[fragment.name] = KeptState(marker.state, marker.incarnation, same, marker.boundary_ms)
    return found


def _removed(
    plan: Plan,
    others: Others,
    records: Mapping[FragmentName, FragmentRecord],
    markers: Mapping[FragmentName, CommitMarker],
    inputs: Inputs,
    found: Successions,
) -> Removed:
    """What is gone of topics that are kept by need; an unchanged fragment has lost nothing."""
    topics = frozenset(
        topic
        for topic in by_need(plan, others)
        if any(start > 0 for start in inputs.starts.get(topic, {}).values())
    )
    lost: dict[FragmentName, tuple[TopicName, ...]] = {}
    for fragment in plan.fragments:
        marker, record = markers.get(fragment.name), records.get(fragment.name)
        if marker is not None and inputs.is_changed(fragment, record):
            carried = inputs.carried(fragment, marker, found.begins(record)).marker
            lost[fragment.name] = lost_topics(fragment, carried, topics, inputs.starts)
    return Removed(topics, lost)


def _oldest(
    plan: Plan,
    states: Mapping[FragmentName, KeptState],
    described: Mapping[TopicName, TopicDescription],
    log: LogReader,
) -> dict[TopicName, Millis]:
    """The oldest timestamps of the inputs of fragments whose state may be computed again."""
    topics = {
        stream.topic
        for fragment in plan.fragments
        if (kept := states.get(fragment.name)) and not kept.fits(fragment)
        for stream in fragment.inputs
        if stream.topic in described
    }
    found = ((topic, log.oldest_ms(topic, described[topic].partitions)) for topic in sorted(topics))
    return {topic: at_ms for topic, at_ms in found if at_ms is not None}


def _waits(plan: Plan, catalog: Catalog) -> tuple[MeasuredReader, ...]:
    """The participant's fragments whose waits were measured, as last reported."""
    if not any(fragment.may_be_tentative for fragment in plan.fragments):
        return ()
    versions = catalog.versions.deployed(plan.network.participant)
    statuses = catalog.statuses.of(*(record.network for record, _ in versions))
    waits = {FragmentId(one.network, one.fragment): one.waits for one in statuses}
    return tuple(
        MeasuredReader(fragment.names.id, external_topics(fragment), found)
        for record, version in versions
        if (deployed := replan_or_none(version)) is not None
        for fragment in deployed.fragments
        if (found := waits.get(FragmentId(record.network, fragment.name))) is not None
    )


def other_networks(ours: NetworkId, catalog: Catalog) -> Others:
    """What all other deployed networks, of all participants, do with topics; stopped ones too."""
    taken: dict[TopicName, Taken] = {}
    read: dict[TopicName, NetworkId] = {}
    for record, version in catalog.versions.deployed():
        if record.network == ours:
            continue
        made = Taken(record.network, "a topic", readable=True)
        taken.update(dict.fromkeys(record.made_topics, made))
        plan = replan_or_none(version)  # without a plan, only the topics that it created
        if plan is None:
            continue
        taken.update(written_topics(plan))
        if record.network.participant != ours.participant:
            read.update({stream.topic: record.network for stream in inputs_of(plan)})
    return Others(taken, read)
