"""Reads what is there now, so that pure code can compare it with what is wanted."""

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import DesiredState, FragmentRecord, NetworkRecord
from pipeline.deploy.documents import replan
from pipeline.deploy.others import Taken, written_topics
from pipeline.deploy.ports import Registry, Topics
from pipeline.deploy.review import Surroundings, inputs_of
from pipeline.errors import DocumentError
from pipeline.ids import FragmentName, NetworkName, TopicName
from pipeline.planner.changes import (
    Current,
    DeployedFragment,
    ExistingTopic,
    RegisteredSchema,
    SchemaText,
)
from pipeline.planner.diff import wanted_schemas
from pipeline.planner.plan import Plan
from schemas.avro import parse
from schemas.compatibility import differences
from schemas.meaning import other_meanings


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the catalog holds of a network; empty before its first deploy.

    Args:
        digest: of the wanted version.
    """

    network: NetworkRecord | None = None
    digest: str = ""
    fragments: tuple[FragmentRecord, ...] = ()


def gather(
    plan: Plan, recorded: Recorded, topics: Topics, registry: Registry, catalog: Catalog
) -> Surroundings:
    """Ask about everything that the plan and the deployed fragments name, and about others."""
    known = frozenset(topic for record in recorded.fragments for topic, _ in record.topic_ids)
    names = sorted(known.union(topic.name for topic in plan.topics))
    described = topics.describe(names)
    filled = filled_topics(described, topics)
    return Surroundings(
        current=Current(
            version=recorded.network.version if recorded.network else None,
            digest=recorded.digest,
            fragments=tuple(_deployed(record) for record in recorded.fragments),
            has_run=_has_run(plan, filled),
            topics=tuple(
                ExistingTopic(topic, facts.partitions, facts.topic_id)
                for topic, facts in sorted(described.items())
            ),
            schemas=_schemas(plan, registry),
        ),
        filled=filled,
        known=known,
        taken=_taken(plan.network, catalog),
    )


def _deployed(record: FragmentRecord) -> DeployedFragment:
    return DeployedFragment(
        name=record.fragment,
        digest=record.digest,
        running=record.desired is DesiredState.RUNNING,
        topic_ids=record.topic_ids,
    )


def filled_topics(described: Iterable[TopicName], topics: Topics) -> frozenset[TopicName]:
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


def _schemas(plan: Plan, registry: Registry) -> tuple[RegisteredSchema, ...]:
    """What the registry has under every subject that the plan writes or reads."""
    found = {wanted.subject: _written(wanted, registry) for wanted in wanted_schemas(plan)}
    for stream in inputs_of(plan):
        latest = registry.latest(stream.subject)
        if latest is not None and stream.subject not in found:
            reader, writer = parse(stream.schema_json), parse(latest.text)
            reasons = tuple(
                f"stream {stream.name} cannot read version {latest.version} of {stream.subject}, "
                f"which producers write: {difference}"
                for difference in (*differences(reader, writer), *other_meanings(reader, writer))
            )
            found[stream.subject] = RegisteredSchema(stream.subject, latest.text, reasons)
    return tuple(found.values())


def _written(wanted: SchemaText, registry: Registry) -> RegisteredSchema:
    """A schema that is registered counts as the newest, also when a newer one stands beside it."""
    if registry.lookup(wanted.subject, wanted.schema_json) is not None:
        return RegisteredSchema(wanted.subject, wanted.schema_json)
    latest = registry.latest(wanted.subject)
    if latest is None:
        return RegisteredSchema(wanted.subject, None)
    fits = registry.check(wanted.subject, wanted.schema_json)
    meanings = other_meanings(parse(wanted.schema_json), parse(latest.text))
    return RegisteredSchema(wanted.subject, latest.text, (*fits, *meanings))


def _taken(ours: NetworkName, catalog: Catalog) -> dict[TopicName, Taken]:
    """What all deployed networks but ours write, stopped ones too."""
    found: dict[TopicName, Taken] = {}
    for record in catalog.networks():
        if record.network == ours:
            continue
        made = Taken(record.network, record.owner, "a topic", readable=True)
        found.update(dict.fromkeys(record.made_topics, made))
        version = catalog.version(record.network, record.version)
        try:
            plan = replan(version, record.owner) if version is not None else None
        except DocumentError:
            continue  # deployed by another version of this program: what it made has to do
        if plan is not None:
            found.update(written_topics(plan))
    return found
