"""Findings from the observed facts. Pure."""

from collections.abc import Iterator, Sequence

from brokers.records import ANYWHERE, EVERYBODY, MADE_AGAIN, TopicDescription, TopicRule
from pipeline import durations
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.counting import counted
from pipeline.doctor.clocks import of_clocks
from pipeline.doctor.facts import (
    Check,
    Finding,
    Observed,
    ObservedAccess,
    ObservedNetwork,
    ObservedTopic,
    Trouble,
    Verdict,
)
from pipeline.doctor.failures import may_fail, shared_topics
from pipeline.doctor.fragments import of_fragments
from pipeline.doctor.writers import other_writers
from pipeline.errors import ExitCode
from pipeline.planner.diff import needs
from pipeline.planner.existing_topics import BY_BROKER, RETENTION_MS, STAMPS, misfits
from pipeline.planner.instants import instant

READS = frozenset({"READ", "DESCRIBE", "DESCRIBE_CONFIGS"})
"""Rights that a lane needs on each of its inputs."""
WRITES = READS | {"WRITE"}
"""Rights that it needs on each topic of its own."""
TRIMS = "DELETE"
"""Right that it needs to remove old dead letters."""
FOR_EVER = -1
_NAMED = 3
"""Number of names shown of a list."""
_GIVE = "the brokers' administrator can grant the right in their access control lists."


def findings(observed: Observed) -> tuple[Finding, ...]:
    """All findings, in the order of the observed facts."""
    return (
        *(_of_check(check) for check in observed.checks),
        *_readable(observed),
        *(finding for one in observed.networks for finding in _network(one, observed.access)),
        *shared_topics(observed),
        *_nodes(observed),
        *of_clocks(observed.clocks),
    )


def exit_code(found: tuple[Finding, ...]) -> ExitCode:
    """The command's exit code: 69 before 65, since without a server the rest is unknown."""
    codes = {one.exit_code for one in found if one.verdict is Verdict.WRONG}
    if not codes:
        return ExitCode.DONE
    return ExitCode.UNAVAILABLE if ExitCode.UNAVAILABLE in codes else ExitCode.BAD_INPUT


def _of_check(check: Check) -> Finding:
    if check.trouble is not None:
        return _wrong(check.name, check.trouble)
    return Finding(check.name, Verdict.GOOD, check.result, check.place)


def _wrong(what: str, trouble: Trouble) -> Finding:
    return Finding(
        what, Verdict.WRONG, trouble.message, trouble.place, trouble.hint, trouble.exit_code
    )


def _readable(observed: Observed) -> Iterator[Finding]:
    for setting, file in observed.readable:
        yield Finding(
            "secrets",
            Verdict.DOUBTFUL,
            f"others on this machine can read the secret of {setting}",
            file,
            f"`chmod go= {file}` closes the file.",
        )


def _network(network: ObservedNetwork, access: ObservedAccess | None) -> Iterator[Finding]:
    name = f"network {network.name}"
    if network.trouble is not None:
        yield _wrong(name, network.trouble)
        return
    topics = [one for one in network.topics if one.actual or _is_needed(one, network)]
    found = [finding for topic in topics for finding in _topic(topic, network, name)]
    yield from found
    if not found:
        state = "are there" if network.deployed else "are there, or can be made"
        yield Finding(name, Verdict.GOOD, f"all {len(topics)} topics {state}")
    yield from of_fragments(network)
    yield from may_fail(network)
    if access is not None:
        yield from _writers(network, access, name)


def _writers(network: ObservedNetwork, access: ObservedAccess, name: str) -> Iterator[Finding]:
    """Other principals that may write a record that a reader takes for one of a fragment's."""
    topics = [topic.planned.name for topic in network.topics if not topic.planned.external]
    for one in other_writers(topics, access.rules, access.own):
        who = "everybody" if one.principal == EVERYBODY else one.principal
        but = f" but {', '.join(one.but)}" if one.but else ""
        perhaps = "" if access.own else "; unless our own certificate stands for that name,"
        yield Finding(
            name,
            Verdict.DOUBTFUL,
            f"{who}{but} may write into {counted(len(one.topics), 'topic')} that only fragments "
            f"of the network should write: {_some(one.topics)}",
            f"access lists: {_some([_rule(rule) for rule in one.by])}",
            f"results of others are dead letters here, and results to readers elsewhere{perhaps}"
            f"{' ' if perhaps else '; '}`kafka-acls.sh --remove` takes the right away.",
        )


def _rule(rule: TopicRule) -> str:
    about = f"topics that begin with {rule.topics}" if rule.prefixed else f"topic {rule.topics}"
    host = "" if rule.host == ANYWHERE else f" from {rule.host}"
    return f"{rule.operation} on {'every topic' if rule.topics == '*' else about}{host}"


def _some(names: Sequence[str]) -> str:
    """The first of many names."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _is_needed(topic: ObservedTopic, network: ObservedNetwork) -> bool:
    """Whether a topic has to exist; one that is created when needed must exist once created."""
    return not topic.planned.when_needed or topic.planned.name in network.known


def _topic(topic: ObservedTopic, network: ObservedNetwork, name: str) -> Iterator[Finding]:
    if topic.trouble is not None:
        yield _wrong(name, topic.trouble)
    elif topic.actual is None:
        yield from _missing(topic, network, name)
    else:
        yield from _made_again(topic.actual, network, name)
        yield from _rights(topic, name)
        yield from _shape(topic, topic.actual.partitions, name)
        yield from _outlived(topic, network.writers.get(topic.planned.name), name)


def _missing(topic: ObservedTopic, network: ObservedNetwork, name: str) -> Iterator[Finding]:
    if network.deployed or not network.auto_create:
        why = "was deleted" if network.deployed else "does not exist, and auto_create is false"
        yield Finding(
            name,
            Verdict.WRONG,
            f"topic {topic.planned.name} {why}: it needs {needs(topic.planned)}",
            f"topic {topic.planned.name}",
            "have it created like this"
            + ("; lanes of the old one stop." if network.deployed else "."),
            ExitCode.BAD_INPUT,
        )


def _made_again(actual: TopicDescription, network: ObservedNetwork, name: str) -> Iterator[Finding]:
    """A topic of another id than at the deploy, which lanes refuse."""
    if network.known.get(actual.topic, actual.topic_id) != actual.topic_id:
        yield Finding(
            name,
            Verdict.WRONG,
            f"topic {actual.topic} {MADE_AGAIN} since the network was deployed: its lanes stop",
            f"topic {actual.topic}",
            "`medusa plan` says what a deploy can do about it.",
            ExitCode.BAD_INPUT,
        )


def _rights(topic: ObservedTopic, name: str) -> Iterator[Finding]:
    wanted = READS if topic.planned.external else WRITES
    lacking = sorted(wanted - topic.allowed) if topic.allowed else []
    if lacking:
        yield Finding(
            name,
            Verdict.WRONG,
            f"kafka.user may not do all with topic {topic.planned.name}: {', '.join(lacking)}",
            f"topic {topic.planned.name}",
            _GIVE,
            ExitCode.BAD_INPUT,
        )
    if topic.planned.trimmed and topic.allowed and TRIMS not in topic.allowed:
        yield Finding(
            name,
            Verdict.DOUBTFUL,
            f"kafka.user may not do all with topic {topic.planned.name}: {TRIMS}; old dead letters "
            "are never removed",
            f"topic {topic.planned.name}",
            _GIVE,
        )


def _shape(topic: ObservedTopic, partitions: int, name: str) -> Iterator[Finding]:
    """Differences between an existing topic and the topic that a deploy would create."""
    wanted, place = dict(topic.planned.config), f"topic {topic.planned.name}"
    if topic.planned.single_partition and partitions != 1:
        yield Finding(
            name,
            Verdict.WRONG,
            f"{place} has {partitions} partitions; it must have 1",
            place,
            "its records are only right in one order: have it made again.",
            ExitCode.BAD_INPUT,
        )
    for one in misfits(topic.planned, topic.config):
        verdict, code = (
            (Verdict.WRONG, ExitCode.BAD_INPUT) if one.fatal else (Verdict.DOUBTFUL, ExitCode.DONE)
        )
        yield Finding(name, verdict, one.message, place, one.hint, code)
    kept, asked = topic.config.get(RETENTION_MS), wanted.get(RETENTION_MS)
    if kept is not None and asked is not None and FOR_EVER < int(kept) < int(asked):
        yield Finding(
            name,
            Verdict.DOUBTFUL,
            f"{place} keeps records {int(kept) // 1000} s, the network says {int(asked) // 1000} s",
            place,
            "a lane that was stopped for longer than a topic keeps records cannot continue.",
        )


def _outlived(topic: ObservedTopic, writer: FragmentStatus | None, name: str) -> Iterator[Finding]:
    """Results older than their topic's retention, which applies to their event time."""
    kept_ms = int(topic.config.get(RETENTION_MS, FOR_EVER))
    by_event_time = topic.config.get(STAMPS) != BY_BROKER
    if writer is None or writer.state is not LaneState.RUNNING or writer.boundary_ms is None:
        return
    if by_event_time and FOR_EVER < kept_ms < writer.reported_at_ms - writer.boundary_ms:
        place, kept = f"topic {topic.planned.name}", durations.format(kept_ms)
        yield Finding(
            name,
            Verdict.DOUBTFUL,
            f"{place} keeps records {kept} from their event time, which {writer.fragment} has "
            f"brought to {instant(writer.boundary_ms)}: results are removed soon after they come",
            place,
            f"raise {RETENTION_MS} of the topic; in the document, retention is for topics to come.",
        )


def _nodes(observed: Observed) -> Iterator[Finding]:
    if observed.nodes is None:
        return
    if observed.nodes:
        yield Finding("nodes", Verdict.GOOD, f"{observed.nodes} up")
    elif any(network.deployed for network in observed.networks):
        yield Finding(
            "nodes", Verdict.DOUBTFUL, "none is up: no network runs", "", "`medusa node start`."
        )
