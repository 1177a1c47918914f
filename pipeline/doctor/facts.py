"""What was seen of an installation, and what was found out from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from brokers.records import TopicDescription, TopicRule
from pipeline.catalog.records import FragmentStatus
from pipeline.errors import ExitCode, MedusaError
from pipeline.ids import NetworkId, TopicName
from pipeline.planner.plan import NewTopic


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something could not be done: an error, as facts."""

    message: str
    place: str
    hint: str
    exit_code: ExitCode

    @classmethod
    def of(cls, error: MedusaError) -> "Trouble":
        """What an error says."""
        return cls(error.message, error.place, error.hint, error.exit_code)


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing that was tried.

    Args:
        name: what it is: `Kafka, connection`.
        place: where.
        words: what was seen of it.
        trouble: why it did not do; None: it did.
    """

    name: str
    place: str
    words: str
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """One topic that a network needs.

    Args:
        wanted: how the network wants it.
        there: what it is; None: it does not exist.
        config: its settings in force.
        allowed: what we may do with it, in Kafka's words; empty: the brokers did not tell.
        trouble: why it could not be looked at, or could not be made where it is missing.
    """

    wanted: NewTopic
    there: TopicDescription | None
    config: Mapping[str, str]
    allowed: frozenset[str] = frozenset()
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class NetworkSeen:
    """One network.

    Args:
        deployed: whether it is in the catalog; else only its document is here.
        auto_create: whether a deploy makes its topics.
        trouble: why it could not be understood.
        writers: what was last reported of the fragments, by the topic that each writes.
        known: the topics that the catalog says exist.
    """

    name: NetworkId
    deployed: bool
    auto_create: bool
    topics: tuple[TopicSeen, ...] = ()
    trouble: Trouble | None = None
    writers: Mapping[TopicName, FragmentStatus] = field(default_factory=dict)
    known: frozenset[TopicName] = frozenset()


@dataclass(frozen=True, slots=True)
class AccessSeen:
    """What the brokers' access control lists say.

    Args:
        rules: those about topics.
        own: who we are to the brokers; None: that is not known.
    """

    rules: tuple[TopicRule, ...]
    own: str | None


@dataclass(frozen=True, slots=True)
class Observed:
    """All that was seen.

    Args:
        things: what was tried, in the order it was.
        networks: those of the catalog, and the one of the project.
        nodes: how many nodes are up; None: the catalog could not be asked.
        readable: settings whose secret others on this machine can read, each with its file.
        access: who may do what with topics; None: there are no such lists, or we are not told.
    """

    things: tuple[Thing, ...]
    networks: tuple[NetworkSeen, ...] = ()
    nodes: int | None = None
    readable: tuple[tuple[str, str], ...] = ()
    access: AccessSeen | None = None


class Verdict(Enum):
    """What something is."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out about one thing.

    Args:
        what: the thing.
        verdict: whether it will do.
        message: what is so.
        place: where.
        hint: what to do; empty where nothing is to be done.
        exit_code: of a command that meets it.
    """

    what: str
    verdict: Verdict
    message: str
    place: str = ""
    hint: str = ""
    exit_code: ExitCode = ExitCode.DONE
