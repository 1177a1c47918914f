from collections.abc import Mapping
from dataclasses import replace

import pytest

from brokers.records import TopicDescription, TopicRule
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.doctor.checks import READS, WRITES, exit_code, findings
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
from pipeline.errors import ExitCode
from pipeline.ids import FragmentName, Millis, NetworkId, NetworkName, ParticipantId, TopicName
from pipeline.planner.plan import NewTopic
from tests.unit.catalog.support import NOTHING_READ

NAME = TopicName("out")
WANTED = NewTopic(NAME, 2, 1, (("cleanup.policy", "delete"), ("retention.ms", "1000")), False)
THERE = TopicDescription(NAME, "id", 2, 1)
GOOD = ObservedTopic(WANTED, THERE, dict(WANTED.config), WRITES | {"DELETE"})
DOWN = Trouble("no broker can be reached", "Kafka a:1", "is it running?", ExitCode.UNAVAILABLE)
REFUSED = Trouble("not allowed", "topic out", "ask for the right", ExitCode.BAD_INPUT)
NETWORK = NetworkId(ParticipantId("local"), NetworkName("n"))


def of(topic: ObservedTopic, *, deployed: bool = True, auto_create: bool = True) -> list[Finding]:
    """Facts about a network with one topic; nodes are up."""
    network = ObservedNetwork(NETWORK, deployed, auto_create, (topic,))
    *found, nodes = findings(Observed((), (network,), nodes=1))
    assert nodes == Finding("nodes", Verdict.GOOD, "1 up")
    return found


def test_successful_probes_are_good_and_failed_ones_have_a_reason() -> None:
    """In the order of the probes."""
    good, bad = Check("Java", "/bin/java", "version 17"), Check("Kafka", "Kafka a:1", "", DOWN)
    assert findings(Observed((good, bad))) == (
        Finding("Java", Verdict.GOOD, "version 17", "/bin/java"),
        Finding("Kafka", Verdict.WRONG, DOWN.message, DOWN.place, DOWN.hint, ExitCode.UNAVAILABLE),
    )


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((), ExitCode.DONE),
        ((ExitCode.BAD_INPUT,), ExitCode.BAD_INPUT),
        ((ExitCode.FAILED,), ExitCode.BAD_INPUT),
        ((ExitCode.BAD_INPUT, ExitCode.UNAVAILABLE), ExitCode.UNAVAILABLE),
    ],
)
def test_the_exit_code_follows_from_the_wrong_checks(
    codes: tuple[ExitCode, ...], expected: ExitCode
) -> None:
    """Doubtful ones change nothing."""
    wrong = [Finding("x", Verdict.WRONG, "", exit_code=code) for code in codes]
    assert exit_code((Finding("y", Verdict.DOUBTFUL, ""), *wrong)) is expected


def test_a_correct_topic() -> None:
    """One line for all topics of a network."""
    assert of(GOOD) == [Finding("network n", Verdict.GOOD, "all 1 topics are there")]


def test_a_topic_that_a_deploy_can_create_is_good() -> None:
    """Before a deploy none of its topics is missing."""
    (found,) = of(replace(GOOD, actual=None), deployed=False)
    assert found.verdict is Verdict.GOOD


@pytest.mark.parametrize(("deployed", "auto_create"), [(True, True), (True, False), (False, False)])
def test_a_topic_that_nothing_will_create_is_wrong(*, deployed: bool, auto_create: bool) -> None:
    """With all settings needed to create it."""
    (found,) = of(replace(GOOD, actual=None), deployed=deployed, auto_create=auto_create)
    assert found.verdict is Verdict.WRONG
    assert "2 partitions, replication 1, cleanup.policy=delete retention.ms=1000" in found.message
    assert found.hint


def test_a_topic_created_on_demand_is_required_once_it_existed() -> None:
    """Until then the topics are complete without it; an existing one is checked as others are."""
    later = replace(GOOD, planned=replace(WANTED, when_needed=True))
    absent = replace(later, actual=None, config={}, allowed=frozenset())

    def found(topic: ObservedTopic, *known: TopicName) -> list[Finding]:
        seen = ObservedNetwork(
            NETWORK,
            True,
            True,
            (GOOD, topic),
            known=dict.fromkeys(known, THERE.topic_id),
        )
        return list(findings(Observed((), (seen,), nodes=1)))[:-1]

    for topics, count in ((absent, 1), (later, 2)):
        assert found(topics)[0].message == f"all {count} topics are there"
    (gone,) = found(absent, NAME)
    assert (gone.verdict, gone.exit_code) == (Verdict.WRONG, ExitCode.BAD_INPUT)
    assert "topic out was deleted" in gone.message
    (misfit,) = found(replace(later, config={"cleanup.policy": "compact"}), NAME)
    assert "cleanup.policy=compact" in misfit.message


def test_records_that_retention_removes_are_doubtful() -> None:
    """With the fragment that needs them, and what to do."""
    expiring = {FragmentName("f"): (("unread records", "resume it"),), FragmentName("g"): ()}
    seen = ObservedNetwork(NETWORK, True, True, (GOOD,), expiring=expiring)
    good, found, _ = findings(Observed((), (seen,), nodes=1))
    assert good.verdict is Verdict.GOOD
    assert found == Finding(
        "network n", Verdict.DOUBTFUL, "f: unread records", "fragment n.f", "resume it."
    )


def test_a_recreated_topic_is_wrong() -> None:
    """Lanes identify their topics by id."""
    seen = ObservedNetwork(NETWORK, True, True, (GOOD,), known={NAME: "another id"})
    (found, _) = findings(Observed((), (seen,), nodes=1))
    assert (found.verdict, found.exit_code) == (Verdict.WRONG, ExitCode.BAD_INPUT)
    assert "topic out was deleted and made again" in found.message


def test_problems_of_a_topic_reported_by_the_brokers() -> None:
    """With their message."""
    (found,) = of(replace(GOOD, actual=None, trouble=REFUSED), deployed=False)
    assert (found.message, found.hint) == (REFUSED.message, REFUSED.hint)


@pytest.mark.parametrize(
    ("external", "allowed", "lacking"),
    [
        (True, READS, ""),
        (True, READS - {"READ"}, "READ"),
        (False, READS, "WRITE"),
        (False, WRITES, ""),
        (False, frozenset(), ""),
    ],
)
def test_rights_that_a_lane_needs(*, external: bool, allowed: frozenset[str], lacking: str) -> None:
    """Reading its inputs, writing its outputs; brokers without access control report none."""
    topic = replace(GOOD, planned=replace(WANTED, external=external), allowed=allowed)
    found = [one for one in of(topic) if one.verdict is Verdict.WRONG]
    assert [one.message.rpartition(": ")[2] for one in found] == ([lacking] if lacking else [])


def test_the_right_to_delete_old_dead_letters() -> None:
    """Without it a lane runs, and they are kept for ever; no other topic needs it."""
    required = replace(WANTED, trimmed=True)
    dead_letters = replace(GOOD, planned=required, config={}, allowed=WRITES)
    (found,) = of(dead_letters)
    assert found.verdict is Verdict.DOUBTFUL
    assert "DELETE; old dead letters are never removed" in found.message
    assert of(replace(dead_letters, planned=WANTED)) == of(GOOD)
    assert of(replace(dead_letters, allowed=WRITES | {"DELETE"})) == of(GOOD)


@pytest.mark.parametrize(
    ("config", "verdict", "words"),
    [
        ({"cleanup.policy": "compact"}, Verdict.WRONG, "cleanup.policy=compact, the"),
        ({"cleanup.policy": "compact,delete"}, Verdict.WRONG, "cleanup.policy=compact,delete, the"),
        ({"retention.ms": "999"}, Verdict.DOUBTFUL, "keeps records"),
        ({"retention.ms": "1000"}, Verdict.GOOD, "are there"),
        ({"retention.ms": "-1"}, Verdict.GOOD, "are there"),
        ({}, Verdict.GOOD, "are there"),
    ],
)
def test_settings_that_lose_records(
    config: Mapping[str, str], verdict: Verdict, words: str
) -> None:
    """Of a topic that others created; a longer retention is accepted."""
    (found,) = of(replace(GOOD, config=config))
    assert found.verdict is verdict
    assert words in found.message


DAY_MS = 86_400_000
NOW_MS = Millis(1_700_000_000_000)


def running() -> FragmentStatus:
    """The report of the fragment that writes the topic."""
    network, fragment = NETWORK, FragmentName("f")
    return replace(NOTHING_READ, network=network, fragment=fragment, reported_at_ms=NOW_MS)


def outlived(behind_ms: int | None, config: Mapping[str, str], state: LaneState) -> list[Finding]:
    """Facts about a topic whose fragment's event time is this far behind."""
    boundary_ms = None if behind_ms is None else Millis(NOW_MS - behind_ms)
    status = replace(running(), state=state, boundary_ms=boundary_ms)
    kept = {"cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS)}
    topic = replace(GOOD, config={**kept, **config})
    network = ObservedNetwork(
        NETWORK,
        True,
        True,
        (topic,),
        writers={NAME: status},
    )
    return [one for one in findings(Observed((), (network,))) if one.verdict is not Verdict.GOOD]


def test_results_older_than_the_retention_are_doubtful() -> None:
    """Kafka compares their timestamp, which is event time; the remedy is a longer retention."""
    (found,) = outlived(30 * DAY_MS, {}, LaneState.RUNNING)
    assert (found.verdict, found.place) == (Verdict.DOUBTFUL, "topic out")
    assert found.message == (
        "topic out keeps records 7d from their event time, which f has brought to "
        "2023-10-15T22:13:20Z: results are removed soon after they come"
    )
    assert (
        found.hint
        == "raise retention.ms of the topic; in the document, retention is for topics to come."
    )


@pytest.mark.parametrize(
    ("behind_ms", "config", "state"),
    [
        (7 * DAY_MS, {}, LaneState.RUNNING),
        (None, {}, LaneState.RUNNING),
        (30 * DAY_MS, {"retention.ms": "-1"}, LaneState.RUNNING),
        (30 * DAY_MS, {"retention.ms": str(31 * DAY_MS)}, LaneState.RUNNING),
        (30 * DAY_MS, {"message.timestamp.type": "LogAppendTime"}, LaneState.RUNNING),
        (30 * DAY_MS, {}, LaneState.STOPPED),
    ],
)
def test_results_within_the_retention_are_good(
    behind_ms: int | None, config: Mapping[str, str], state: LaneState
) -> None:
    """Young enough, kept for ever or by another clock; a stopped lane writes nothing."""
    assert outlived(behind_ms, config, state) == []


def test_a_topic_with_one_order_has_one_partition() -> None:
    """Markers and boundaries in two partitions would have none."""
    required = replace(WANTED, single_partition=True)
    (found,) = of(replace(GOOD, planned=required))
    assert "it must have 1" in found.message


def test_networks_without_a_node_do_not_run() -> None:
    """Reported where a network is deployed, and nowhere else."""
    network = ObservedNetwork(NETWORK, deployed=True, auto_create=True)
    *_, nodes = findings(Observed((), (network,), nodes=0))
    assert (nodes.what, nodes.verdict) == ("nodes", Verdict.DOUBTFUL)
    (only,) = findings(Observed((), (replace(network, deployed=False),), nodes=0))
    assert only.what == "network n"


def test_a_secret_that_others_can_read_is_doubtful() -> None:
    """With the file, and the command that protects it."""
    (found,) = findings(Observed((), readable=(("kafka.password", "/x/medusa.yaml"),)))
    assert found.verdict is Verdict.DOUBTFUL
    assert "kafka.password" in found.message
    assert "/x/medusa.yaml" in found.hint


def writers(
    rules: tuple[TopicRule, ...], own: str | None = "User:medusa", *, external: bool = False
) -> list[Finding]:
    """Facts about an installation with access control lists."""
    topic = replace(GOOD, planned=replace(WANTED, external=external))
    seen = ObservedNetwork(NETWORK, True, True, (topic,))
    first, *found, _ = findings(Observed((), (seen,), 1, access=ObservedAccess(rules, own)))
    assert first.message == "all 1 topics are there"
    return found


def test_other_writers_are_reported() -> None:
    """With the rules that allow it; it is no fault of the network, so the exit code stays."""
    allowed = TopicRule("o", True, "User:eve", "10.0.0.1", "ALL", True)
    (found,) = writers((allowed, replace(allowed, principal="User:medusa")))
    assert (found.what, found.verdict, found.exit_code) == (
        "network n", Verdict.DOUBTFUL, ExitCode.DONE,
    )  # fmt: skip
    assert found.message == (
        "User:eve may write into 1 topic that only fragments of the network should write: out"
    )
    assert found.place == "access lists: ALL on topics that begin with o from 10.0.0.1"
    assert "certificate" not in found.hint
    assert writers((allowed,), external=True) == []
    (unsure,) = writers((replace(allowed, topics="*", prefixed=False, host="*"),), own=None)
    assert unsure.place == "access lists: ALL on every topic"
    assert "unless our own certificate stands for that name" in unsure.hint


def test_a_rule_for_everybody_is_reported_once() -> None:
    """Also for principals with their own rules; except for denied ones."""
    everybody = TopicRule("out", False, "User:*", "*", "WRITE", True)
    bob = replace(everybody, principal="User:bob", allows=False)
    (found,) = writers((everybody, replace(everybody, principal="User:eve"), bob))
    assert found.message.startswith("everybody but User:bob may write into 1 topic ")
    assert found.place == "access lists: WRITE on topic out"


def test_of_many_topics_some_are_named() -> None:
    """With the total number."""
    topics = tuple(
        replace(GOOD, planned=replace(WANTED, name=TopicName(f"t{n}"))) for n in range(5)
    )
    seen = ObservedNetwork(NETWORK, True, True, topics)
    access = ObservedAccess((TopicRule("*", False, "User:eve", "*", "WRITE", True),), "User:medusa")
    found = findings(Observed((), (seen,), 1, access=access))[1]
    assert "into 5 topics that" in found.message
    assert found.message.endswith(": t0, t1, t2 and 2 more")
