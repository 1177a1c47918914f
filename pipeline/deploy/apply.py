"""Deployment of a network: comparison, validation, then idempotent steps in a fixed order.

1. Schemas, inputs first. Registering a registered schema changes nothing.
2. Topics. Creating an existing topic changes nothing.
3. The catalog, in one compare-and-set. No node sees the new version before this step.

A deploy that is interrupted between two steps leaves unused schemas and topics; running it again
finds them and continues. Of two concurrent deploys, the one that loses the compare-and-set changes
nothing more and fails with `RetryError`.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from brokers.records import MADE_AGAIN, NewTopicSpec, TopicDescription
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import FragmentRecord, NetworkRecord, NetworkVersionRecord
from pipeline.clock import Clock
from pipeline.counting import counted
from pipeline.deploy.desired import Facts, desired_fragments
from pipeline.deploy.documents import Document, plan_document, replan_or_none
from pipeline.deploy.gather import (
    Clients,
    Recorded,
    filled_topics,
    gather,
    last_markers,
    other_networks,
)
from pipeline.deploy.kept_by_need import foreign_readers
from pipeline.deploy.others import Taken, conflicts
from pipeline.deploy.registry_interface import Registry
from pipeline.deploy.review import inputs_of, review
from pipeline.deploy.subject_schemas import (
    adopts_newest,
    kept_schema_warning,
    undecided_fragments,
    with_deployed_schemas,
)
from pipeline.deploy.writers import Successions, recorded_writers
from pipeline.errors import DeployError, Problem, RetryError
from pipeline.ids import (
    FragmentName,
    NetworkId,
    NetworkLife,
    NetworkVersion,
    ParticipantId,
    TopicId,
    TopicName,
)
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.changes import Changes
from pipeline.planner.diff import changes
from pipeline.planner.digest import plan_digest
from pipeline.planner.plan import NewTopic, Plan
from pipeline.planner.state import NO_CHOICES, Choices

_RETRY_HINT = "run it again: its changes may be different by now."

Report = Callable[[str], None]
"""Callback with a short description of each step."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Clients of the servers of a deploy; `new_life` returns the id of a network's new life."""

    catalog: Catalog
    topics: TopicAdmin
    registry: Registry
    clock: Clock
    log: LogReader
    new_life: Callable[[], NetworkLife]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Difference between a document's plan and the deployed state.

    Args:
        document: the document to deploy.
        plan: its plan.
        recorded: the network's records in the catalog.
        changes: the changes that a deploy would make.
        topic_ids: Kafka's ids of the topics that existed.
        successions: the fragments whose output was last written by another fragment.
        markers: the last commit markers of the fragments that had run.
        filled_before: the output topics that held records before the network first wrote them.
    """

    document: Document
    plan: Plan
    recorded: Recorded
    changes: Changes
    topic_ids: Mapping[TopicName, str]
    successions: Successions = field(default_factory=Successions)
    markers: Mapping[FragmentName, CommitMarker] = field(default_factory=dict)
    filled_before: frozenset[TopicName] = frozenset()

    def check(self) -> None:
        """Reject a comparison with problems.

        Raises:
            DeployError: contains all problems.
        """
        problems = self.changes.problems
        if problems:
            raise DeployError(tuple(_in_file(problem, self.document.file) for problem in problems))


@dataclass(frozen=True, slots=True)
class Deployed:
    """Result of a deploy.

    Args:
        version: the deployed version.
        changed: whether the catalog was changed; if not, nothing starts, stops or restarts.
        fragments: the fragment records after the deploy.
        created: the topics that this call created.
        registered: the subjects under which this call registered a schema.
    """

    network: NetworkId
    version: NetworkVersion
    changed: bool
    fragments: tuple[FragmentRecord, ...]
    created: tuple[TopicName, ...]
    registered: tuple[str, ...]

    @property
    def name(self) -> str:
        """`network@version`."""
        return f"{self.network}@{self.version}"


def compare(
    document: Document, owner: ParticipantId, servers: Servers, choices: Choices = NO_CHOICES
) -> Comparison:
    """Plan a document and compare it with the deployed state; read-only.

    Args:
        document: the document to deploy.
        owner: the participant that deploys it.
        servers: the servers to read from.
        choices: the user's choices for states that do not fit.

    Raises:
        UnavailableError: a server does not answer.
    """
    plan = plan_document(document, owner)
    recorded, version = _recorded(plan.network, servers.catalog)
    old = replan_or_none(version)  # it only explains differences
    found = _compared(document, plan, (recorded, old), servers, choices)
    undecided = undecided_fragments(found.changes)
    other = with_deployed_schemas(document, version, plan, undecided)
    if other is None:
        return found
    deployed, kept = (recorded, old), plan_document(other, owner)
    again = _compared(other, kept, deployed, servers, choices)
    fitting = undecided - undecided_fragments(again.changes)
    if not fitting:
        return found
    if choices.named:
        unchosen = Choices(inputs=choices.inputs)
        without = _compared(other, kept, deployed, servers, unchosen).changes
        if adopts_newest(choices.named, (plan, kept), without):
            return found
    warnings = (*again.changes.warnings, kept_schema_warning(again.plan, plan, fitting))
    return replace(again, changes=replace(again.changes, warnings=warnings))


def _compared(
    document: Document,
    plan: Plan,
    deployed: tuple[Recorded, Plan | None],
    servers: Servers,
    choices: Choices,
) -> Comparison:
    """Compare a planned document with the deployed version and its plan."""
    recorded, old = deployed
    clients = Clients(servers.topics, servers.log, servers.registry, servers.catalog)
    around = gather(plan, recorded, choices, clients)
    found = review(plan, changes(plan, old, around.current, choices), around, document.schemas)
    ids = {topic.name: topic.topic_id for topic in around.current.topics}
    return Comparison(
        document=document,
        plan=plan,
        recorded=recorded,
        changes=found,
        topic_ids=ids,
        successions=around.successions,
        markers=around.markers,
        filled_before=around.filled_before,
    )


def deploy(comparison: Comparison, servers: Servers, report: Report) -> Deployed:
    """Apply the changes of a comparison.

    Raises:
        DeployError: the comparison has problems; nothing was changed.
        RetryError: the network, or a compared topic, was changed since the comparison.
        UnavailableError: a server does not answer. Running it again continues from there.
    """
    comparison.check()
    _check_topics(comparison, servers)
    found, network = comparison.changes, comparison.plan.network
    taken = _check_writers(comparison, servers)
    servers.catalog.format.ensure(network.participant)
    for schema in found.register:
        report(f"registering schema {schema.subject}")
        servers.registry.register(schema.subject, schema.schema_json)
    begun = servers.catalog.deploys.begun(network)
    created = created_by_unfinished_deploys(begun, servers.topics, taken)
    own = tuple(topic.name for topic in found.create_topics if not topic.external)
    if found.create_topics:
        report(f"creating {counted(len(found.create_topics), 'topic')}")
        for new in found.create_topics:
            if new.external:
                report(f"input topic {new.name} does not exist: creating it too")
        servers.catalog.deploys.begin(network, own)
        new_topics = servers.topics.create_topics(tuple(map(spec_of, found.create_topics)))
        servers.catalog.deploys.end(network, tuple(set(own).difference(new_topics)))
        created += new_topics
    for topic in _adopted(comparison, created):
        report(f"topic {topic} was there before: output goes into it, and it is never removed")
    done = _commit(comparison, servers, tuple(sorted(created)))
    servers.catalog.deploys.end(network, (*begun, *own))
    return done


def created_by_unfinished_deploys(
    begun: tuple[TopicName, ...], topics: TopicAdmin, taken: Container[TopicName]
) -> tuple[TopicName, ...]:
    """The topics that interrupted deploys created, of those that they were about to create.

    A topic that contains records was created by others, since no fragment has run yet. So was one
    that another network writes (`taken`).
    """
    existing = topics.describe(begun)
    filled = filled_topics(existing, topics)
    return tuple(topic for topic in existing if topic not in filled and topic not in taken)


def _adopted(comparison: Comparison, created: tuple[TopicName, ...]) -> tuple[TopicName, ...]:
    """The output topics that others created and that this network writes for the first time."""
    recorded = comparison.recorded
    known = {topic for record in recorded.fragments for topic, _ in record.topic_ids}
    known |= set(recorded.network.made_topics if recorded.network else ())
    outputs = (fragment.output.topic for fragment in comparison.plan.fragments)
    return tuple(topic for topic in outputs if topic not in known.union(created))


def _commit(comparison: Comparison, servers: Servers, created: tuple[TopicName, ...]) -> Deployed:
    """Write the new version to the catalog, unless the catalog is already equal to it."""
    plan, recorded = comparison.plan, comparison.recorded
    before = recorded.network
    last = before.version if before else NetworkVersion(0)
    ids = _topic_ids(plan, servers.topics, comparison.topic_ids)
    version = NetworkVersion(last + 1)
    found = comparison.changes
    facts = Facts(
        ids, version, found.chosen, found.begins, comparison.successions, comparison.markers
    )
    fragments = desired_fragments(plan, recorded.fragments, facts)
    life = before.life if before else servers.new_life()
    made = _made(plan, before, (*created, *_read_before_recorded(comparison, ids)))
    writers = recorded_writers(before.writers if before else (), plan, ids)
    earlier = before.filled_before if before else ()
    filled = sorted({*earlier, *(TopicId(ids[one]) for one in comparison.filled_before)})
    network = NetworkRecord(plan.network, version, life, made, writers, tuple(filled))
    registered = tuple(schema.subject for schema in found.register)
    if before is not None and _same(network, fragments, comparison):
        return Deployed(plan.network, last, False, fragments, created, registered)
    record = NetworkVersionRecord(
        network=plan.network,
        version=version,
        document=comparison.document.text,
        schemas=tuple(sorted(comparison.document.schemas.items())),
        digest=plan_digest(plan),
        deployed_at_ms=servers.clock.now_ms(),
        code=tuple(sorted(comparison.document.code.items())),
    )
    expected = before.version if before else None
    _check_markers(comparison, fragments, servers)
    _check_writers(comparison, servers)
    servers.catalog.networks.deploy(network, record, fragments, expected, recorded.fragments)
    return Deployed(plan.network, version, True, fragments, created, registered)


def _same(
    network: NetworkRecord, fragments: tuple[FragmentRecord, ...], comparison: Comparison
) -> bool:
    before = comparison.recorded
    return (
        not comparison.changes.new_version
        and before.network is not None
        and before.network.made_topics == network.made_topics
        and before.network.writers == network.writers
        and before.network.filled_before == network.filled_before
        and sorted(before.fragments, key=_name)
        == sorted(_with_costs_of(before.fragments, fragments), key=_name)
    )


def _with_costs_of(
    before: tuple[FragmentRecord, ...], fragments: tuple[FragmentRecord, ...]
) -> tuple[FragmentRecord, ...]:
    """The new records with the recorded costs: another estimate alone changes nothing."""
    costs = {record.fragment: record.cost_us for record in before}
    return tuple(replace(one, cost_us=costs.get(one.fragment, one.cost_us)) for one in fragments)


def _name(record: FragmentRecord) -> str:
    return record.fragment


def _made(
    plan: Plan, before: NetworkRecord | None, created: tuple[TopicName, ...]
) -> tuple[TopicName, ...]:
    """The topics that `destroy` may remove: created now or by an earlier deploy, never inputs."""
    external = {topic.name for topic in plan.topics if topic.external}
    earlier = before.made_topics if before else ()
    return tuple(sorted({*earlier, *created} - external))


def _read_before_recorded(
    comparison: Comparison, topic_ids: Mapping[TopicName, str]
) -> tuple[TopicName, ...]:
    """The redrive topics that fragments have read and that the catalog does not contain.

    The catalog was restored from a state before their creation. They were created by the network
    if it creates topics.
    """
    if not comparison.plan.auto_create:
        return ()
    recorded = {topic for one in comparison.recorded.fragments for topic, _ in one.topic_ids}
    read = (marker.redrive for marker in comparison.markers.values())
    return tuple(
        topic
        for topic, topic_id in filter(None, read)
        if topic not in recorded and topic_ids.get(topic) == topic_id
    )


def _topic_ids(
    plan: Plan, topics: TopicAdmin, compared: Mapping[TopicName, str]
) -> dict[TopicName, str]:
    """The ids of the plan's topics; all must exist, except those that are created when needed."""
    described = topics.describe([topic.name for topic in plan.topics])
    needed = (topic.name for topic in plan.topics if not topic.when_needed)
    missing = [name for name in needed if name not in described]
    if missing:
        raise RetryError(
            f"topic {missing[0]} is gone again", hint="is somebody else removing topics? try again."
        )
    _check_ids(described, compared)
    return {name: facts.topic_id for name, facts in described.items()}


def _check_topics(comparison: Comparison, servers: Servers) -> None:
    """Check, before anything is changed, that the compared topics still exist unchanged."""
    described = servers.topics.describe(comparison.topic_ids)
    gone = next((name for name in comparison.topic_ids if name not in described), None)
    if gone is not None:
        raise RetryError(
            "the topic was deleted since it was compared with the network; nothing was changed",
            place=f"topic {gone}",
            hint=_RETRY_HINT,
        )
    _check_ids(described, comparison.topic_ids)


def _check_markers(
    comparison: Comparison, records: Iterable[FragmentRecord], servers: Servers
) -> None:
    """Check that the last markers of changed fragments still continue the compared ones.

    Lanes progress while a user confirms a deploy. That matters only if a lane has begun otherwise.
    """
    known = {record.fragment: record for record in comparison.recorded.fragments}
    changed = {record.fragment for record in records if record != known.get(record.fragment)}
    fragments = [f for f in comparison.plan.fragments if f.name in changed]
    for name, now in last_markers(fragments, servers.topics, servers.log).items():
        then = comparison.markers.get(name)
        if not now.nothing_read and (then is None or not now.continues(then)):
            raise RetryError(
                "its lane has begun otherwise since it was compared with the network; nothing was "
                "deployed",
                place=f"fragment {comparison.plan.network}.{name}",
                hint=_RETRY_HINT,
            )


def _check_writers(comparison: Comparison, servers: Servers) -> Mapping[TopicName, Taken]:
    """Check that no network that was deployed since the comparison writes one of its topics.

    Returns:
        The topics that other networks write.
    """
    plan = comparison.plan
    others = other_networks(plan.network, servers.catalog)
    conflicting = conflicts(plan, inputs_of(plan), others.taken)
    problems = (*conflicting, *foreign_readers(plan, others))
    replace(comparison, changes=replace(comparison.changes, problems=problems)).check()
    return others.taken


def _check_ids(
    described: Mapping[TopicName, TopicDescription], compared: Mapping[TopicName, str]
) -> None:
    for name, facts in described.items():
        if compared.get(name, facts.topic_id) != facts.topic_id:
            raise RetryError(
                f"the topic {MADE_AGAIN} since it was compared with the network; "
                "nothing was deployed",
                place=f"topic {name}",
                hint=_RETRY_HINT,
            )


def _recorded(network: NetworkId, catalog: Catalog) -> tuple[Recorded, NetworkVersionRecord | None]:
    """A network's records in the catalog, and the record of its deployed version."""
    record = catalog.networks.get(network)
    if record is None:
        return Recorded(), None
    version = catalog.versions.get(network, record.version)
    digest = version.digest if version else ""
    return Recorded(record, digest, catalog.fragments.of(network)), version


def spec_of(topic: NewTopic) -> NewTopicSpec:
    """Creation parameters of a planned topic."""
    return NewTopicSpec(topic.name, topic.partitions, topic.replication, topic.config)


def _in_file(problem: Problem, file: str) -> Problem:
    return problem if problem.file else replace(problem, file=file)
