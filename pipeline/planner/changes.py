"""What a deploy is decided on and what it decides, as plain facts. See `diff.py`."""

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
from pipeline.planner.inputs import Announced, Begins, ChangedInput
from pipeline.planner.plan import NewTopic
from pipeline.planner.state import CHOSEN, Fate, KeptState, OnChange


@dataclass(frozen=True, slots=True)
class DeployedFragment:
    """A fragment that the catalog holds.

    Args:
        running: whether it is wanted running, not stopped.
        topic_ids: the topics it knew when it was deployed, by their ids.
        paused: whether somebody paused it, so that a deploy does not let it run.
    """

    name: FragmentName
    digest: str
    running: bool
    topic_ids: tuple[tuple[TopicName, str], ...] = ()
    paused: bool = False


@dataclass(frozen=True, slots=True)
class ExistingTopic:
    """A topic that exists.

    Args:
        topic_id: Kafka's, other for a topic deleted and made again.
        config: its settings in force.
    """

    name: TopicName
    partitions: int
    topic_id: str = ""
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """The newest schema of a subject, and what a new one would break.

    Args:
        schema_json: the newest registered text; None when the subject has none.
        problems: why the plan's schema for this subject would be refused; empty when it fits.
        warnings: what becomes of records of the newest version that the plan cannot read.
    """

    subject: Subject
    schema_json: str | None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Current:
    """What is there, as far as the plan asks for it; empty before the first deploy.

    Args:
        version: the deployed version; None when the network is not deployed.
        digest: `plan_digest` of the deployed version.
        has_run: the fragments, deployed or not, that have a commit marker.
        topics: those of the plan's topics, and of the deployed fragments', that exist.
        others: all topics that exist, where one of the plan's inputs does not; else empty.
        states: what the changed or named fragments with a state have, where anything was read.
        inputs: what fragments begin to read, or leave, of those whose marker was read.
        anew: the fragments that begin anew, since another one was the last to write their output.
        oldest: for topics that a state which does not fit is computed from, the time of the oldest
            record.
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


class ItemKind(Enum):
    """What an item of the changes is about."""

    FRAGMENT = "fragment"
    TOPIC = "topic"
    SCHEMA = "schema"


class Action(Enum):
    """What would be done."""

    CREATE = "create"
    CHANGE = "change"
    RESTART = "restart"
    REMOVE = "remove"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing and what would be done to it.

    `refused` says why it cannot be done, `details` what that consists of, a line each, and `hint`
    what to do instead; all are empty otherwise. `fate` is what becomes of a fragment that has run
    and starts again; None for anything else.
    """

    kind: ItemKind
    name: str
    action: Action
    reasons: tuple[str, ...] = ()
    refused: str = ""
    hint: str = ""
    details: tuple[str, ...] = ()
    fate: Fate | None = None


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema to register."""

    subject: Subject
    schema_json: str


@dataclass(frozen=True, slots=True)
class Changes:
    """Everything that a deploy would do, in the order of the plan.

    Args:
        version: the deployed version; None before the first deploy.
        create_topics: with the partition counts they must have beside what exists already.
        register: the schemas to register.
        missing_topics: what somebody else has to create, since the network may not.
        problems: why the deploy is refused; empty when it can go ahead.
        warnings: what may well be a mistake, though it can be done; one sentence each.
        new_version: whether the plan differs at all from the deployed one.
        chosen: what was chosen for a fragment's state, and for which life of its lane.
        announced: what becomes of records of inputs that change.
        begins: where fragments begin to read what they have never read.
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

    @property
    def pending(self) -> bool:
        """Whether a deploy would do anything."""
        return self.new_version or any(item.action is not Action.KEEP for item in self.items)

    @property
    def restarts(self) -> int:
        """How many deployed fragments would stop and start again."""
        return sum(item.action in {Action.CHANGE, Action.RESTART} for item in self.fragments)

    @property
    def disturbing(self) -> tuple[str, ...]:
        """The fragments that would stop, run otherwise or lose their state."""
        return tuple(
            item.name
            for item in self.fragments
            if item.action in {Action.CHANGE, Action.REMOVE} or item.fate in CHOSEN
        )

    @property
    def fragments(self) -> tuple[Item, ...]:
        """The items about fragments."""
        return tuple(item for item in self.items if item.kind is ItemKind.FRAGMENT)

    @property
    def summary(self) -> str:
        """One line: how much would happen."""
        wanted = sum(item.action is not Action.REMOVE for item in self.fragments)
        return f"restarts: {self.restarts} of {wanted} {'fragment' if wanted == 1 else 'fragments'}"
