"""Comparison of a plan with the deployed one and with what exists: the effects of a deploy. Pure.

Unchanged fragments are kept; new and removed ones are always possible. The fate of a changed one
that has run is in `upgrade.py`.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pipeline.errors import Problem
from pipeline.ids import TopicName
from pipeline.names import INTERNAL_SUFFIXES, key_subject, value_subject
from pipeline.nearest import near
from pipeline.planner import inputs
from pipeline.planner.arrows import changed_arrows
from pipeline.planner.changes import (
    Action,
    Changes,
    Current,
    DeployedFragment,
    ExistingTopic,
    Item,
    ItemKind,
    RegisteredSchema,
    SchemaText,
)
from pipeline.planner.digest import plan_digest
from pipeline.planner.existing_topics import misfits
from pipeline.planner.plan import NewTopic, Plan
from pipeline.planner.repeated import corrected_repeated, read_repeated, repeated_topics
from pipeline.planner.state import NO_CHOICES, Choices
from pipeline.planner.upgrade import Upgrade

__all__ = [
    "Action",
    "Changes",
    "Current",
    "DeployedFragment",
    "ExistingTopic",
    "Item",
    "ItemKind",
    "RegisteredSchema",
    "SchemaText",
    "changes",
    "required_schemas",
]

_ALIKE = 0.8
"""Similarity of two topic names from which one may be a misspelling of the other."""


def changes(
    new: Plan, old: Plan | None, current: Current, choices: Choices = NO_CHOICES
) -> Changes:
    """Compare a plan with the existing state.

    Args:
        new: the desired plan.
        old: the plan of the deployed version, planned again from its document; used only for
            explaining changes, and for the topics in which results may come twice.
        current: the existing state.
        choices: the user's choices for states that do not fit.
    """
    upgrade = Upgrade(new, old, current, choices)
    fragments = tuple(upgrade.items())
    repeated = repeated_topics(old, current.repeated)
    topics = tuple(_topics(new, old, current))
    exist = {topic.name for topic in current.topics}
    absent = tuple(
        t for t in _fitting_topics(new, current) if t.name not in exist and not t.when_needed
    )
    schemas = tuple(_schemas(new, current))
    latest = {schema.subject: schema for schema in current.schemas}
    register = tuple(
        schema
        for schema in required_schemas(new)
        if not _same_schema(latest.get(schema.subject), schema)
    )
    return Changes(
        network=new.network,
        version=current.version,
        items=(*fragments, *topics, *schemas),
        create_topics=absent if new.auto_create else (),
        register=register,
        missing_topics=() if new.auto_create else absent,
        problems=(
            *upgrade.invalid_choices(),
            *inputs.invalid_choices(choices.inputs, current.inputs),
            *read_repeated(new, repeated),
            *corrected_repeated(new, repeated),
            *(
                Problem(
                    item.refused,
                    box=item.name if item.kind is ItemKind.FRAGMENT else "",
                    hint=item.hint,
                    details=item.details,
                )
                for item in (*fragments, *topics, *schemas)
                if item.refused
            ),
        ),
        new_version=current.version is None or current.digest != plan_digest(new),
        warnings=tuple(_warnings(new, current, absent)),
        chosen=upgrade.chosen(fragments),
        announced=tuple(
            one
            for fragment, changed in current.inputs.items()
            for one in inputs.announced(fragment, changed, choices.inputs)
        ),
        begins={
            fragment: inputs.begins(changed, choices.inputs)
            for fragment, changed in current.inputs.items()
        },
        arrows=changed_arrows(new, old),
    )


def _warnings(new: Plan, current: Current, absent: tuple[NewTopic, ...]) -> Iterator[str]:
    for topic in absent:
        if meant := _meant(topic, new, current):
            yield f"input topic {topic.name} does not exist: {meant}"
    exist = {topic.name: topic for topic in current.topics}
    for topic in new.topics:
        if topic.name in exist:
            found = misfits(topic, exist[topic.name].config)
            yield from (f"{one.message}; {one.hint}" for one in found if not one.fatal)
    for schema in current.schemas:
        yield from schema.warnings


def required_schemas(plan: Plan) -> tuple[SchemaText, ...]:
    """The schemas that a plan's derived streams need in the registry, values before keys."""
    found: list[SchemaText] = []
    for fragment in plan.fragments:
        output = fragment.output
        found.append(SchemaText(value_subject(output.topic), output.schema_json))
        if output.key_schema_json is not None:
            found.append(SchemaText(key_subject(output.topic), output.key_schema_json))
    return tuple(found)


def _topics(new: Plan, old: Plan | None, current: Current) -> Iterator[Item]:
    exist = {topic.name: topic for topic in current.topics}
    before = {topic.name: topic for topic in old.topics} if old else {}
    for topic in _fitting_topics(new, current):
        existing = exist.get(topic.name)
        if existing is not None:
            yield _existing_topic(topic, before.get(topic.name), existing)
            continue
        if topic.when_needed:
            continue
        reasons = (
            _count(topic.partitions),
            *(["an input that does not exist yet"] if topic.external else []),
        )
        item = Item(ItemKind.TOPIC, topic.name, Action.CREATE, ("; ".join(reasons),))
        if new.auto_create:
            yield item
        else:
            yield replace(
                item,
                refused=f"topic {topic.name} does not exist, and auto_create is false: it needs "
                f"{needs(topic)}",
                hint=_meant(topic, new, current)
                or "have it created like this, or set auto_create: true.",
            )


def _meant(topic: NewTopic, new: Plan, current: Current) -> str:
    """A question that suggests an existing topic for a missing input; empty: none is similar.

    A topic that the network uses otherwise is not suggested.
    """
    ours = {topic.name for topic in new.topics}
    others = [t for t in current.others if t not in ours and not t.endswith(INTERNAL_SUFFIXES)]
    close = near(topic.name, others, alike=_ALIKE) if topic.external else ()
    return f"did you mean {' or '.join(close)}?" if close else ""


def needs(topic: NewTopic) -> str:
    """Everything a user needs to create a topic by hand."""
    settings = "".join(f" {name}={value}" for name, value in topic.config)
    return f"{_count(topic.partitions)}, replication {topic.replication},{settings}"


def _existing_topic(topic: NewTopic, before: NewTopic | None, existing: ExistingTopic) -> Item:
    """An existing topic is kept unchanged; differences from the document are reported."""
    reasons = []
    if existing.partitions != topic.partitions:
        reasons.append(
            f"has {_count(existing.partitions)}, the network says {topic.partitions}: kept as it is"
        )
    if before is not None:
        if before.replication != topic.replication:
            reasons.append(f"replication {before.replication} → {topic.replication}: kept as it is")
        settings = dict(before.config)
        reasons.extend(
            f"{name} {settings.get(name, 'unset')} → {value}: kept as it is"
            for name, value in topic.config
            if settings.get(name) != value
        )
    item = Item(ItemKind.TOPIC, topic.name, Action.KEEP, tuple(reasons))
    if topic.single_partition and existing.partitions != 1:
        return replace(
            item,
            refused=f"topic {topic.name} has {_count(existing.partitions)}; it must have 1, since "
            "its records are read in the order they were written",
            hint="delete it if nothing uses it, or choose other names.",
        )
    wrong = [one for one in misfits(topic, existing.config) if one.fatal]
    if wrong:
        first, *further = wrong
        return replace(
            item,
            refused=first.message,
            hint=first.hint,
            details=tuple(f"{one.message}; {one.hint}" for one in further),
        )
    return item


def _fitting_topics(new: Plan, current: Current) -> tuple[NewTopic, ...]:
    return fitting(new, {topic.name: topic.partitions for topic in current.topics})


def fitting(plan: Plan, found: Mapping[TopicName, int]) -> tuple[NewTopic, ...]:
    """The plan's topics, with the partition counts required by the existing ones.

    `found`: existing topics → their partition counts.
    """
    counts = {topic.name: topic.partitions for topic in plan.topics} | dict(found)
    return tuple(
        replace(topic, partitions=max(counts[name] for name in topic.follows))
        if topic.follows
        else topic
        for topic in plan.topics
    )


def _schemas(new: Plan, current: Current) -> Iterator[Item]:
    latest = {schema.subject: schema for schema in current.schemas}
    for required in required_schemas(new):
        newest = latest.pop(required.subject, None)
        if _same_schema(newest, required):
            yield Item(ItemKind.SCHEMA, required.subject, Action.KEEP)
        elif newest is None or newest.schema_json is None:
            yield Item(ItemKind.SCHEMA, required.subject, Action.CREATE, ("the first version",))
        else:
            yield _misfit(
                Item(ItemKind.SCHEMA, required.subject, Action.CHANGE, ("a new version",)), newest
            )
    for other in latest.values():
        if other.problems:
            yield _misfit(Item(ItemKind.SCHEMA, other.subject, Action.KEEP), other)


def _misfit(item: Item, newest: RegisteredSchema) -> Item:
    if not newest.problems:
        return item
    return replace(
        item,
        refused=f"the schema of {item.name} does not fit what is registered",
        hint="keep the columns compatible, or write to another topic.",
        details=newest.problems,
    )


def _same_schema(newest: RegisteredSchema | None, required: SchemaText) -> bool:
    if newest is None or newest.schema_json is None:
        return False
    same_text = newest.schema_json == required.schema_json
    return same_text or bool(json.loads(newest.schema_json) == json.loads(required.schema_json))


def _count(partitions: int) -> str:
    return f"{partitions} {'partition' if partitions == 1 else 'partitions'}"
