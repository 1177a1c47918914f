"""Availability of the fragments of a plan."""

import pytest

from pipeline.availability import Availability, Policy
from pipeline.errors import DocumentError
from pipeline.ids import TopicName
from pipeline.network.boxes.traits import Keeps
from pipeline.network.model import ExternalStream, Silence
from pipeline.planner.changes import Action
from pipeline.planner.describe import differences, state_differences
from pipeline.planner.diff import changes
from pipeline.planner.digest import fragment_digest, plan_digest, state_digest
from pipeline.planner.existing_topics import RETENTION_MS, misfits
from pipeline.planner.explain import explain
from pipeline.planner.plan import Plan
from pipeline.planner.upgrade import between
from tests.unit.planner.passes.test_share_box_settings import STREAMS, fragment, planned
from tests.unit.planner.test_diff import deployed

THREE, ONE = ", availability: 3s", ", availability: 1s"
DELAY, SUSPEND = (
    f", availability: {{bound: 3s, policy: {policy}}}" for policy in ("delay", "suspend")
)
CHAIN = """
  moving: {filter: s, where: speed > 0%s}
  counts: {aggregate: moving, by: [road], compute: {n: count(*)}%s}
"""
FILTER = "  moving: {filter: s, where: speed > 0%s}\n"
PAIRS = "  pairs: {join: {left: s, right: s2, on: [car], within: 1m%s}, select: [left.car]%s}\n"
TWO = """
  counts: {aggregate: s, by: [road], compute: {n: count(*)}%s}
  sums: {aggregate: counts, by: [road], compute: {n: sum(n)}%s}
"""
SECOND = STREAMS.replace("}}", "}, s2: {topic: u, schema: sighting.avsc, event_time: seen_at}}")
AMNESIA = ", reliability: amnesia"
ROLLBACK = ", reliability: {mode: upstream_backup, recovery: rollback}"


def bounds(of: Plan) -> dict[str, str]:
    """The availability of each fragment."""
    return {str(one.name): str(one.availability) for one in of.fragments}


def silence(of: Plan, name: str) -> Silence:
    """What silence of the first input of a fragment means."""
    stream = fragment(of, name).inputs[0]
    assert isinstance(stream, ExternalStream)
    return stream.silence


def topics(of: Plan) -> dict[TopicName, dict[str, str]]:
    """The topics of tentative results, with their settings."""
    return {t.name: dict(t.config) for t in of.topics if t.name.endswith(".tentative")}


@pytest.mark.parametrize(
    ("head", "boxes", "expected"),
    [
        ("", ("", ""), "None"),
        ("availability: 5s", ("", ""), "5s, process"),
        ("availability: 1s", (THREE, ""), "3s, process"),
        ("availability: 5s", (THREE, ONE), "1s, process"),
        ("", (THREE, DELAY), "3s, process"),
        ("", (DELAY, SUSPEND), "3s, delay"),
        (f"outputs: {{counts: {{topic: x{ONE}}}}}", ("", ""), "1s, process"),
        (f"availability: 1s\noutputs: {{counts: {{topic: x{THREE}}}}}", ("", ""), "3s, process"),
        (f"outputs: {{counts: {{topic: x{ONE}}}}}", (THREE, ""), "1s, process"),
    ],
)
def test_the_least_that_is_declared_counts(
    head: str, boxes: tuple[str, str], expected: str
) -> None:
    """The network's only if no box and no output of the fragment declares one."""
    assert bounds(planned(CHAIN % boxes, head)) == {"counts": expected}


def test_a_fragment_that_waits_may_be_tentative() -> None:
    """Its results have ids, and a topic of its own for tentative ones; an inner output too."""
    found = planned(TWO % (THREE, DELAY), "outputs: {sums: {topic: x, retention: 6h}}")
    for name in ("counts", "sums"):
        assert fragment(found, name).may_be_tentative
        assert fragment(found, name).identified
    assert {name: of["retention.ms"] for name, of in topics(found).items()} == {
        fragment(found, "counts").tentative_topic: "86400000",
        "x.tentative": "21600000",
    }
    for settings in topics(found).values():
        assert settings["cleanup.policy"] == "delete"
        assert settings["message.timestamp.type"] == "CreateTime"


def test_an_existing_topic_of_them_keeps_records_for_longer_than_the_bound() -> None:
    """It may be older than the bound, and is not changed."""
    found = planned(CHAIN % ("", THREE), "outputs: {counts: {topic: x}}")
    (topic,) = (one for one in found.topics if one.name == "x.tentative")
    for kept_ms in ("-1", "3001"):
        assert [*misfits(topic, {RETENTION_MS: kept_ms})] == []
    (wrong,) = misfits(topic, {RETENTION_MS: "3000"})
    assert wrong.fatal
    assert "removed before the availability bound has passed" in wrong.message


def test_it_has_as_many_partitions_as_the_output() -> None:
    """Those of the topic of the output, if that exists."""
    found = planned(CHAIN % ("", THREE), "outputs: {counts: {topic: x, partitions: 7}}")
    (topic,) = (one for one in found.topics if one.name == "x.tentative")
    assert topic.partitions == 7
    assert topic.follows == ("x",)


@pytest.mark.parametrize(
    ("boxes", "name"),
    [
        (FILTER % THREE, "moving"),
        (CHAIN % ("", SUSPEND), "counts"),
        (FILTER % "", "moving"),
        (CHAIN % ("", ""), "counts"),
    ],
)
def test_others_are_never_tentative(boxes: str, name: str) -> None:
    """Without a bound, without a policy that publishes, and where results are only added."""
    found = planned(boxes)
    assert not fragment(found, name).may_be_tentative
    assert not fragment(found, name).identified
    assert fragment(found, name).tentative_topic is None
    assert topics(found) == {}


def test_under_a_bound_a_silent_input_is_missing() -> None:
    """Under any policy, in that fragment alone, unless the document says what silence means."""
    for bound in (THREE, SUSPEND):
        found = planned(CHAIN % ("", bound) + "  all: {filter: s, where: true}\n")
        assert silence(found, "counts") is Silence.MISSING
        assert silence(found, "all") is Silence.IDLE
        assert [one for one in found.notes if "silence of s means missing in counts" in one]
        assert "silent for 3m: missing" in explain(found)


@pytest.mark.parametrize("declared", ["silence: idle", "load: first"])
def test_what_the_document_says_of_an_input_stays(declared: str) -> None:
    """Also that it is a table."""
    streams = STREAMS.replace("seen_at", f"seen_at, {declared}")
    text = CHAIN % ("", THREE)
    found = planned(text, streams=streams)
    assert silence(found, "counts") is Silence.IDLE
    assert not [one for one in found.notes if "silence" in one]


@pytest.mark.parametrize(
    ("other", "why"), [(AMNESIA, "reliability is amnesia"), (ROLLBACK, "recovery is rollback")]
)
def test_amnesia_and_rollback_have_none(other: str, why: str) -> None:
    """Declared it is refused; as the network's it is left out, and that is said."""
    with pytest.raises(DocumentError) as caught:
        planned(CHAIN % (other, other + THREE))
    (problem,) = caught.value.problems
    assert problem.box == "counts"
    assert why in problem.message
    assert problem.hint
    found = planned(CHAIN % (other, other), "availability: 3s")
    assert bounds(found) == {"counts": "None"}
    assert silence(found, "counts") is Silence.IDLE
    assert any(one.startswith("counts has no availability bound, since") for one in found.notes)


@pytest.mark.parametrize(
    ("head", "bound"),
    [
        ("", ", availability: 1d"),
        ("retention: 1h", ", availability: 1h"),
        ("availability: 2h\nretention: 1h", ""),
        ("outputs: {counts: {topic: x, retention: 1h}}", ", availability: 2h"),
    ],
)
def test_a_bound_is_below_the_retention_of_tentative_results(head: str, bound: str) -> None:
    """They would be removed before anyone sees them."""
    with pytest.raises(DocumentError) as caught:
        planned(CHAIN % ("", bound), head)
    (problem,) = caught.value.problems
    assert problem.box == "counts"
    assert "is not below the retention of its tentative results" in problem.message
    without = ", availability: {bound: 1d, policy: suspend}"
    assert bounds(planned(CHAIN % ("", without))) == {"counts": "1d, suspend"}


def test_a_bound_changes_a_window_and_not_its_state() -> None:
    """The state has no ids; the fragment starts again."""
    plain, bounded, delayed = (planned(CHAIN % ("", of)) for of in ("", THREE, DELAY))
    old, new, other = (fragment(one, "counts") for one in (plain, bounded, delayed))
    assert len({fragment_digest(one) for one in (old, new, other)}) == 3
    assert state_digest(old) == state_digest(new)
    assert state_differences(old, new) == ("changed: silence of s `idle` → `missing`",)
    assert differences(old, new) == (
        "changed: silence of s `idle` → `missing`",
        "changed: availability `none` → `3s, process`",
        "new: topic of tentative results `local.n.counts.tentative`",
        "changed: ids of results `no` → `yes`",
    )
    (item,) = between(bounded, delayed)
    assert item.reasons == ("changed: availability `3s, process` → `3s, delay`",)
    (item,) = between(bounded, planned(CHAIN % ("", SUSPEND)))
    assert "gone: topic of tentative results `local.n.counts.tentative`" in item.reasons


def test_a_bound_changes_the_state_of_a_join_that_waits() -> None:
    """Its waiting rows have ids; those of an inner join need none."""
    for how, changes_state in ((", how: left", True), ("", False)):
        old, new = (
            fragment(planned(PAIRS % (how, of), streams=SECOND), "pairs") for of in ("", THREE)
        )
        assert new.traits.keeps is Keeps.ROWS
        assert new.may_be_tentative is changes_state
        assert (state_digest(old) != state_digest(new)) is changes_state
        ids = ("changed: ids of results `no` → `yes`",) if changes_state else ()
        silences = tuple(one for one in state_differences(old, new) if "silence" not in one)
        assert silences == ids


def test_a_bound_without_effect_restarts_nothing() -> None:
    """It is another version all the same, and the plan says so."""
    streams = STREAMS.replace("seen_at", "seen_at, silence: idle")
    old, new = (planned(FILTER % of, streams=streams) for of in ("", THREE))
    before, after = fragment(old, "moving"), fragment(new, "moving")
    assert after.availability == Availability(3_000, Policy.PROCESS)
    assert fragment_digest(before) == fragment_digest(after)
    assert plan_digest(old) != plan_digest(new)
    (item,) = between(old, new)
    assert item.reasons == ("changed: availability `none` → `3s, process`",)
    found = changes(new, old, deployed(old))
    assert found.new_version
    (kept,) = (one for one in found.fragments if one.name == "moving")
    assert kept.action is Action.KEEP
    assert kept.reasons == ("changed: availability `none` → `3s, process`",)


def test_the_explanation_says_when_results_are_tentative() -> None:
    """And why never."""
    text = explain(planned(CHAIN % ("", THREE), "outputs: {counts: {topic: x}}"))
    assert "3s, process: results that are delayed by more than 3s are tentative, in x.tent" in text
    assert "each result has one, as a header" in text
    text = explain(planned(FILTER % THREE))
    assert "never tentative: without an input, filter moving only adds results" in text
    text = explain(planned(CHAIN % ("", SUSPEND)))
    assert "3s, suspend: never tentative, whatever is missing" in text
    assert "availability" not in explain(planned(CHAIN % ("", "")))
