"""Observed facts of an installation, and findings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from brokers.records import TopicDescription, TopicRule
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.errors import ExitCode, MedusaError
from pipeline.heartbeats.clocks import ClockOffset
from pipeline.heartbeats.steps import StepAge
from pipeline.ids import FragmentName, NetworkId, NodeId, TopicName
from pipeline.planner.failures import Replicas
from pipeline.planner.plan import NewTopic
from pipeline.priority import Priority


@dataclass(frozen=True, slots=True)
class Trouble:
    """The failure of a check: the fields of an error."""

    message: str
    place: str
    hint: str
    exit_code: ExitCode

    @classmethod
    def of(cls, error: MedusaError) -> "Trouble":
        """The fields of an error."""
        return cls(error.message, error.place, error.hint, error.exit_code)


@dataclass(frozen=True, slots=True)
class Check:
    """One check and its result.

    Args:
        name: what is checked: `Kafka, connection`.
        place: where.
        result: what was observed.
        trouble: the failure; None: success.
    """

    name: str
    place: str
    result: str
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class ObservedTopic:
    """One topic that a network needs.

    Args:
        planned: as the network's plan defines it.
        actual: as it exists; None: it does not exist.
        config: its settings in force.
        allowed: the operations allowed to this user, by Kafka's names; empty: not reported.
        trouble: why it could not be described, or why a missing one could not be created.
    """

    planned: NewTopic
    actual: TopicDescription | None
    config: Mapping[str, str]
    allowed: frozenset[str] = frozenset()
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class ObservedSecondaries:
    """The nodes that follow a fragment.

    Args:
        has_state: whether the fragment has a state that they follow.
        wanted: how many there are to be.
        there: how many there are.
        level: how many of them go on at once.
    """

    has_state: bool
    wanted: int = 0
    there: int = 0
    level: int = 0


@dataclass(frozen=True, slots=True)
class ObservedQueue:
    """A fragment that should run, and that no node has room for.

    Args:
        priority: its own.
        full: the nodes that may run it, each with how many fragments may run there.
    """

    priority: Priority
    full: tuple[tuple[NodeId, int], ...]


@dataclass(frozen=True, slots=True)
class ObservedNetwork:
    """One network.

    Args:
        deployed: whether it is in the catalog; otherwise only its document exists.
        auto_create: whether a deploy creates its topics.
        trouble: why it could not be read or planned.
        writers: the last reported status of its fragments, by output topic.
        known: the ids of its topics according to the catalog.
        paused: its paused fragments.
        expiring: by fragment, messages and advice about records that retention removes before the
            fragment has used them.
        overdue: the steps of its lanes that take too long.
        secondaries: of its fragments that should run.
        queued: its fragments that no node has room for.
    """

    name: NetworkId
    deployed: bool
    auto_create: bool
    topics: tuple[ObservedTopic, ...] = ()
    trouble: Trouble | None = None
    writers: Mapping[TopicName, FragmentStatus] = field(default_factory=dict)
    known: Mapping[TopicName, str] = field(default_factory=dict)
    paused: tuple[FragmentName, ...] = ()
    expiring: Mapping[FragmentName, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    overdue: Mapping[FragmentName, StepAge] = field(default_factory=dict)
    secondaries: Mapping[FragmentName, ObservedSecondaries] = field(default_factory=dict)
    queued: Mapping[FragmentName, ObservedQueue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedAccess:
    """The brokers' access control lists.

    Args:
        rules: those for topics.
        own: this user's principal; None: unknown.
    """

    rules: tuple[TopicRule, ...]
    own: str | None


@dataclass(frozen=True, slots=True)
class Observed:
    """All observed facts.

    Args:
        checks: the checks, in order.
        networks: those of the catalog, and the one of the project.
        nodes: how many nodes are running; None: the catalog did not answer.
        readable: settings whose secret other users of this machine can read, each with its file.
        access: access control lists of topics; None: there are none, or they may not be read.
        shared: the topics that all networks of the participant need, as far as they are there and
            may be described.
        clocks: the offsets of the clocks of nodes and of this machine, as far as they are known.
    """

    checks: tuple[Check, ...]
    networks: tuple[ObservedNetwork, ...] = ()
    nodes: int | None = None
    readable: tuple[tuple[str, str], ...] = ()
    access: ObservedAccess | None = None
    shared: tuple[Replicas, ...] = ()
    clocks: tuple[ClockOffset, ...] = ()


class Verdict(Enum):
    """Severity of a finding."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Args:
        what: the subject.
        verdict: its severity.
        message: what was found.
        place: where.
        hint: what to do; empty: nothing.
        exit_code: of a command that finds it.
    """

    what: str
    verdict: Verdict
    message: str
    place: str = ""
    hint: str = ""
    exit_code: ExitCode = ExitCode.DONE
