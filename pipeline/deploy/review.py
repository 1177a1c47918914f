"""What the planner's comparison does not see: inputs in the registry, what is others'. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pipeline import durations
from pipeline.catalog.records import NodeRecord
from pipeline.catalog.snapshot import CatalogSnapshot
from pipeline.deploy.filled_before import read_after_all
from pipeline.deploy.kept_by_need import Removed, foreign_readers, need_warnings
from pipeline.deploy.others import Others, conflicts, too_impatient
from pipeline.deploy.room import without_room
from pipeline.deploy.waits import MeasuredReader, too_tight
from pipeline.deploy.writers import Successions
from pipeline.errors import Problem
from pipeline.ids import FragmentName, StreamName, Subject, TopicName
from pipeline.labels import format_selector, selects
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import value_subject
from pipeline.network.boxes.shape import reach_ms
from pipeline.network.model import ExternalStream
from pipeline.planner.changes import Action, Changes, Current, Item, ItemKind, SchemaText
from pipeline.planner.existing_topics import UNLIMITED
from pipeline.planner.plan import FragmentInput, Plan
from pipeline.planner.upgrade import START_OVER
from pipeline.reliability import Reliability


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is there, beyond what the planner asks for.

    Args:
        current: what the planner compares with.
        filled: the plan's topics that hold at least one record.
        known: the topics that the last deploy of this network recorded.
        filled_before: the output topics that held records before the network first wrote them.
        others: what other deployed networks do with topics.
        removed: what is gone of topics that are kept by need.
        successions: the fragments whose output another one of this network wrote last.
        markers: the last commit markers of the fragments that have run.
        nodes: the nodes of the participant that are up and not drained.
        places: the fragments that run on a node that is up, with its record.
        catalog: the participant's nodes and fragments, with those of other networks.
        waits: the participant's fragments whose waits for input were measured; not looked up if no
            fragment may have tentative results.
    """

    current: Current
    filled: frozenset[TopicName] = frozenset()
    known: frozenset[TopicName] = frozenset()
    filled_before: frozenset[TopicName] = frozenset()
    others: Others = field(default_factory=Others)
    removed: Removed = field(default_factory=Removed)
    successions: Successions = field(default_factory=Successions)
    markers: Mapping[FragmentName, CommitMarker] = field(default_factory=dict)
    nodes: tuple[NodeRecord, ...] = ()
    places: Mapping[FragmentName, NodeRecord] = field(default_factory=dict)
    catalog: CatalogSnapshot = field(default_factory=lambda: CatalogSnapshot((), ()))
    waits: tuple[MeasuredReader, ...] = ()


def inputs_of(plan: Plan) -> tuple[ExternalStream, ...]:
    """The external streams that some fragment reads, each once, in the order of the plan."""
    found: dict[StreamName, ExternalStream] = {}
    for fragment in plan.fragments:
        for stream in fragment.inputs:
            if isinstance(stream, ExternalStream):
                found.setdefault(stream.name, stream)
    return tuple(found.values())


def review(
    plan: Plan, found: Changes, around: Surroundings, schemas: Mapping[StreamName, str]
) -> Changes:
    """The planner's changes with the missing input schemas, and with what else stands against them.

    An input whose subject has no schema yet gets the document's: producers that use the registry
    then find it. Output goes only into a topic that this network knows, that is empty, or whose
    registered schema it fits; without any schema the records in it are somebody else's. What
    another network writes is never written too.

    Args:
        plan: what is wanted.
        found: what the planner says about it.
        around: what is there.
        schemas: the text of every external stream's schema, as the user wrote it.
    """
    registered = {s.subject for s in around.current.schemas if s.schema_json is not None}
    missing = _missing_inputs(plan, registered, schemas)
    return replace(
        found,
        items=(
            *(_with_move(item, plan, around) for item in found.items),
            *(
                Item(ItemKind.SCHEMA, text.subject, Action.CREATE, ("the schema of an input",))
                for text in missing
            ),
        ),
        register=(*missing, *found.register),
        problems=(
            *found.problems,
            *_foreign_records(plan, around, registered),
            *read_after_all(plan, around.filled_before),
            *_redrive_lost(plan, around),
            *conflicts(plan, inputs_of(plan), around.others.taken),
            *foreign_readers(plan, around.others),
        ),
        warnings=(
            *found.warnings,
            *_forgetting(plan, found),
            *too_impatient(inputs_of(plan), around.others.taken),
            *need_warnings(
                plan, around.removed, around.markers, around.current.inputs, found.chosen
            ),
            *_without_nodes(plan, around.nodes, around.catalog.nodes),
            *_without_secondaries(plan, around.nodes),
            *without_room(plan, around.catalog),
            *too_tight(plan, around.waits),
        ),
    )


def _with_move(item: Item, plan: Plan, around: Surroundings) -> Item:
    """The item of a fragment that a deploy moves to another node."""
    here = around.places.get(FragmentName(item.name)) if item.kind is ItemKind.FRAGMENT else None
    fragment = next((one for one in plan.fragments if one.name == item.name), None)
    if here is None or fragment is None or selects(fragment.nodes, dict(here.labels)):
        return item
    others = (one for one in around.nodes if selects(fragment.nodes, dict(one.labels)))
    if not any(others):
        return item
    state = ", where its state is built again from the log unless its checkpoints are within reach"
    reason = f"it moves from node {here.node}: it stops there, and starts on another node"
    reason += state if fragment.stateful_box else ""
    return replace(item, reasons=(*item.reasons, reason), moves_from=str(here.node))


def _without_nodes(
    plan: Plan, open_ones: Iterable[NodeRecord], up: Iterable[NodeRecord]
) -> Iterator[str]:
    """Fragments that no node that is up may run, by selector, or that only drained ones may."""
    open_labels = [dict(node.labels) for node in open_ones]
    labels = [dict(node.labels) for node in up]
    on_drained: list[str] = []
    waiting: dict[str, list[str]] = {}
    for fragment in plan.fragments:
        if any(selects(fragment.nodes, one) for one in open_labels):
            continue
        if any(selects(fragment.nodes, one) for one in labels):
            on_drained.append(fragment.name)
        elif fragment.nodes:
            waiting.setdefault(format_selector(fragment.nodes), []).append(fragment.name)
    if on_drained:
        yield (
            f"all nodes that are up and may run {', '.join(on_drained)} are drained: they run "
            "there until another node is up; `medusa node undrain` one, or start one"
        )
    for selector, names in waiting.items():
        yield (
            f"no node that is up has {selector}: no node claims {', '.join(names)} until one "
            "is; start one with `medusa node start --name NAME --label KEY=VALUE`"
        )


def _without_secondaries(plan: Plan, nodes: Iterable[NodeRecord]) -> Iterator[str]:
    """Fragments with more secondaries than nodes that are up may be."""
    labels = [dict(node.labels) for node in nodes]
    lacking: dict[tuple[Reliability, int], list[str]] = {}
    for fragment in plan.fragments:
        reliability = fragment.reliability
        allowed = sum(selects(fragment.nodes, one) for one in labels)
        if 0 < allowed <= reliability.secondaries:
            lacking.setdefault((reliability, allowed), []).append(fragment.name)
    for (reliability, allowed), names in lacking.items():
        yield (
            f"{', '.join(names)} with {reliability}: {reliability.secondaries + 1} nodes that may "
            f"run it are needed, {allowed} {'is' if allowed == 1 else 'are'} up, and not drained; "
            "until more are, it has fewer secondaries"
        )


def _missing_inputs(
    plan: Plan, registered: set[Subject], schemas: Mapping[StreamName, str]
) -> tuple[SchemaText, ...]:
    missing: dict[Subject, SchemaText] = {}
    for stream in inputs_of(plan):
        if stream.subject not in registered:
            text = schemas.get(stream.name, stream.schema_json)
            missing.setdefault(stream.subject, SchemaText(stream.subject, text))
    return tuple(missing.values())


def _forgetting(plan: Plan, found: Changes) -> Iterator[str]:
    """The topics that would forget what a fragment keeps, so that it could not be built again."""
    kept_ms = {
        topic.name: int(ms)
        for topic in found.create_topics
        if (ms := dict(topic.config).get("retention.ms", UNLIMITED)) != UNLIMITED
    }
    delays: dict[StreamName, int] = {}
    for fragment in plan.fragments:  # those that write come before those that read
        shape = fragment.shape
        delay = max(_delay_ms(stream, delays) for stream in fragment.inputs)
        delays[fragment.output.name] = delay + shape.behind_ms
        if not fragment.traits.stateful:
            continue
        for stream in fragment.inputs:
            reach = delay + reach_ms(shape, stream.name)
            if kept_ms.get(stream.topic, reach) < reach:
                yield (
                    f"{fragment.name} keeps what lies up to {durations.spell(reach)} back, topic "
                    f"{stream.topic} for {durations.spell(kept_ms[stream.topic])}: state that is "
                    "lost could not be built again; write a longer retention"
                )


def _delay_ms(stream: FragmentInput, delays: Mapping[StreamName, int]) -> int:
    """How far event time that follows a stream alone lies behind the newest records outside.

    A window closes, and a row is let go, that much after its time: what is kept reaches as much
    further back. A lane waits for the slowest of its inputs.

    Args:
        stream: an input of a fragment.
        delays: of the streams that fragments before it write.
    """
    return stream.lateness_ms if isinstance(stream, ExternalStream) else delays[stream.name]


def _redrive_lost(plan: Plan, around: Surroundings) -> Iterator[Problem]:
    """The redrive topics that fragments have read, and that are not there any more.

    Where the catalog knows them, the planner finds it out. It may have been restored from an older
    state, or the fragment may come back.
    """
    there = {topic.name: topic.topic_id for topic in around.current.topics}
    for fragment in plan.fragments:
        marker = around.markers.get(fragment.name)
        read = None if marker is None else marker.redrive
        if read is None or read[0] in around.known or fragment.name in around.current.anew:
            continue
        if there.get(read[0]) != read[1]:
            yield Problem(
                f"topic {read[0]}, which fragment {fragment.name} has read, is gone, or was "
                "deleted and made again; the fragment's positions mean records that no longer "
                "exist",
                box=fragment.name,
                hint=START_OVER,
            )


def _foreign_records(
    plan: Plan, around: Surroundings, registered: set[Subject]
) -> tuple[Problem, ...]:
    return tuple(
        Problem(
            f"topic {topic} holds records already and has no registered schema: they are other "
            "data",
            box=fragment.output.name,
            hint="choose another topic for the output.",
        )
        for fragment in plan.fragments
        if (topic := fragment.output.topic) in around.filled
        and topic not in around.known
        and value_subject(topic) not in registered
    )
