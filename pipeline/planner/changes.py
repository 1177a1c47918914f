"""Input and result of a deploy decision, as plain data. See `diff.py`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pipeline.errors import Problem
from pipeline.ids import (
    FragmentName,
    Incarnation,
    Millis,
    NetworkId,
    NetworkVersion,
    Subject,
    TopicName,
)
from pipeline.planner.arrows import Arrow
from pipeline.planner.inputs import Announced, Begins, ChangedInput
from pipeline.planner.plan import NewTopic
from pipeline.planner.state import CHOSEN, Fate, KeptState, OnChange
from pipeline.priority import Priority
from pipeline.reliability import UPSTREAM_BACKUP, Reliability


@dataclass(frozen=True, slots=True)
class DeployedFragment:
    """A fragment in the catalog.

    Args:
        running: whether it should run.
        topic_ids: its topics and their ids at its deploy.
        paused: whether it is paused, so that a deploy does not start it.
        nodes: the selector of the nodes that may run it; empty: every node.
        apart: the fragments that it is to run apart from.
        reliability: how another node goes on with it when its own one fails.
        priority: whether it runs if there is not room for all.
    """

    name: FragmentName
    digest: str
    running: bool
    topic_ids: tuple[tuple[TopicName, str], ...] = ()
    paused: bool = False
    nodes: str = ""
    apart: tuple[FragmentName, ...] = ()
    reliability: Reliability = UPSTREAM_BACKUP
    priority: Priority = Priority.NORMAL


@dataclass(frozen=True, slots=True)
class ExistingTopic:
    """An existing topic.

    Args:
        topic_id: Kafka's; a recreated topic has another one.
        config: its settings in force.
    """

    name: TopicName
    partitions: int
    topic_id: str = ""
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """The newest schema of a subject, and the effects of a new one.

    Args:
        schema_json: the newest registered text; None if the subject has none.
        problems: why the plan's schema for this subject would be rejected; empty if compatible.
        warnings: the fate of records of the newest version that the plan cannot read.
    """

    subject: Subject
    schema_json: str | None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Current:
    """The existing state that the plan needs; empty before the first deploy.

    Args:
        version: the deployed version; None if the network is not deployed.
        digest: `plan_digest` of the deployed version.
        has_run: the fragments, deployed or not, that have a commit marker.
        topics: those of the plan's topics, and of the deployed fragments', that exist.
        others: all existing topics, if one of the plan's inputs does not exist; else empty.
        states: the states of the changed or named stateful fragments that have read anything.
        inputs: inputs that fragments begin to read, or leave, of those whose marker was read.
        anew: the fragments that begin anew, since another one was the last to write their output.
        oldest: for topics that a rebuilt state is computed from, the time of the oldest record.
        repeated: the topics in which results may come twice, by the markers of their writers.
    """

    version: NetworkVersion | None = None
    digest: str = ""
    fragments: tuple[DeployedFragment, ...] = ()
    has_run: frozenset[FragmentName] = frozenset()
    topics: tuple[ExistingTopic, ...] = ()
    others: tuple[TopicName, ...] = ()
    schemas: tuple[RegisteredSchema, ...] = ()
    states: Mapping[FragmentName, KeptState] = field(default_factory=dict)
    oldest: Mapping[TopicName, Millis] = field(default_factory=dict)
    inputs: Mapping[FragmentName, tuple[ChangedInput, ...]] = field(default_factory=dict)
    anew: frozenset[FragmentName] = frozenset()
    repeated: frozenset[TopicName] = frozenset()


class ItemKind(Enum):
    """The subject of an item of the changes."""

    FRAGMENT = "fragment"
    TOPIC = "topic"
    SCHEMA = "schema"


class Action(Enum):
    """The action of an item."""

    CREATE = "create"
    CHANGE = "change"
    RESTART = "restart"
    REMOVE = "remove"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing and its action.

    `refused` is the reason why it is impossible, `details` its parts, a line each, and `hint` the
    alternative; all are empty otherwise. `fate` is the fate of a fragment that has run and starts
    again; None for anything else. `moves_from` is the node that a fragment leaves for another one.
    """

    kind: ItemKind
    name: str
    action: Action
    reasons: tuple[str, ...] = ()
    refused: str = ""
    hint: str = ""
    details: tuple[str, ...] = ()
    fate: Fate | None = None
    moves_from: str = ""


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema to register."""

    subject: Subject
    schema_json: str


@dataclass(frozen=True, slots=True)
class Changes:
    """All effects of a deploy, in the order of the plan.

    Args:
        version: the deployed version; None before the first deploy.
        create_topics: with the partition counts required by the existing topics.
        register: the schemas to register.
        missing_topics: topics that the user has to create, since the network may not.
        problems: why the deploy is refused; empty if it is possible.
        warnings: possible mistakes that do not prevent the deploy; one sentence each.
        new_version: whether the plan differs at all from the deployed one.
        chosen: the choice for a fragment's state, and the incarnation it applies to.
        announced: the fate of records of changed inputs.
        begins: first positions of inputs that fragments have never read.
        arrows: streams between fragments that a later deploy makes or removes.
    """

    network: NetworkId
    version: NetworkVersion | None
    items: tuple[Item, ...]
    create_topics: tuple[NewTopic, ...]
    register: tuple[SchemaText, ...]
    missing_topics: tuple[NewTopic, ...]
    problems: tuple[Problem, ...]
    new_version: bool
    warnings: tuple[str, ...] = ()
    chosen: Mapping[FragmentName, tuple[OnChange, Incarnation]] = field(default_factory=dict)
    announced: tuple[Announced, ...] = ()
    begins: Mapping[FragmentName, tuple[Begins, ...]] = field(default_factory=dict)
    arrows: tuple[Arrow, ...] = ()

    @property
    def pending(self) -> bool:
        """Whether a deploy would change anything."""
        return self.new_version or any(item.action is not Action.KEEP for item in self.items)

    @property
    def restarts(self) -> int:
        """How many deployed fragments would stop and start again."""
        again = {Action.CHANGE, Action.RESTART}
        return sum(item.action in again or bool(item.moves_from) for item in self.fragments)

    @property
    def disturbing(self) -> tuple[str, ...]:
        """The fragments that would stop, run differently or lose their state."""
        return tuple(
            item.name
            for item in self.fragments
            if item.action in {Action.CHANGE, Action.REMOVE}
            or item.fate in CHOSEN
            or item.moves_from
        )

    @property
    def fragments(self) -> tuple[Item, ...]:
        """The items about fragments."""
        return tuple(item for item in self.items if item.kind is ItemKind.FRAGMENT)

    @property
    def summary(self) -> str:
        """One line: the number of changes."""
        total = sum(item.action is not Action.REMOVE for item in self.fragments)
        return f"restarts: {self.restarts} of {total} {'fragment' if total == 1 else 'fragments'}"
