from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from pipeline.agent.effects import (
    FindExpiring,
    MakePlan,
    NoteRetention,
    PublishStatus,
    Rehearse,
    ReleaseFragment,
    SendActivity,
    StartLane,
    StopLane,
    WatchTopics,
)
from pipeline.agent.events import ExpiringFound, FragmentTaken, PlanFailed, PlanMade
from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.lane_time import writer_of
from pipeline.boundaries.profile import LaneProfile
from pipeline.catalog.fragment_status import LaneState
from pipeline.errors import (
    BrokenInvariantError,
    EnvironmentProblem,
    FencedError,
    NewerFormatError,
    NotAllowedError,
    RefusedError,
    RetryError,
    UnavailableError,
)
from pipeline.ids import (
    Epoch,
    Incarnation,
    Millis,
    NodeId,
    Offset,
    TopicId,
    TopicName,
)
from pipeline.lanes.events import LaneStopped
from pipeline.lanes.expiring import Cause, ExpiringRecords, LogNeeds, Use
from pipeline.lanes.start.facts import StateChoice
from pipeline.markers import codec
from pipeline.markers.signals import ActivityRecord, activity_key
from pipeline.network.boxes.shape import Stateless
from pipeline.planner.plan import Kept
from pipeline.planner.state import OnChange
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.system_clock import SystemClock
from pipeline.trimming.readers import ReadersInCatalog
from tests.conftest import WaitFor
from tests.unit.agent.performers import DEPLOYED, LANE, LIFE, MOVING, NETWORK, NODE, PLAN, RUN, Node
from tests.unit.agent.support import LEFT, fresh_marker
from tests.unit.catalog.support import NOTHING_READ, leaving


def test_a_start_claims_the_fragment_and_runs_its_lane_until_it_is_stopped(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """The lane gets its epoch, the topic ids and choice of the deploy; its end is one event."""
    node = make_node(None)
    node.start()
    wait_for(lambda: node.lanes, "the lane is made")
    settings = node.lanes[0].settings
    assert (settings.life, settings.epoch, settings.topic_ids) == (
        LIFE,
        1,
        {"local.net.moving": "id"},
    )
    assert settings.choice == StateChoice(OnChange.EMPTY, Incarnation("1-5"))
    assert (settings.lane, settings.run) == (LANE, RUN)
    assert settings.kept() is None
    kept = Kept(604_800_000, frozenset({TopicName("local.net.moving")}))
    node.performer.perform(NoteRetention(LANE, kept))
    assert settings.kept() == kept
    assert settings.readers == ReadersInCatalog(node.catalog, LANE.fragment)
    assert not settings.ran_before
    settings.record_start()
    assert node.catalog.starts.recorded(NETWORK, MOVING.fragment)
    owner = node.catalog.owners.get(NETWORK, MOVING.fragment)
    assert owner is not None
    assert (owner.node, owner.epoch) == ("node1", 1)
    node.performer.perform(StopLane(LANE))
    wait_for(lambda: node.events, "the end of the lane")
    assert node.events == [LaneStopped(LANE, RUN, Epoch(1), None, retry=True, fenced=False)]


def test_a_claim_of_what_a_lost_node_owned_begins_a_takeover(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """It is sent before anything else of the run."""
    node = make_node(None)
    lost = replace(NODE, node=NodeId("lost"))
    node.catalog.owners.claim(NETWORK, MOVING.fragment, lost, Millis(0))
    node.start()
    wait_for(lambda: node.lanes, "the lane is made")
    (taken,) = node.events
    assert isinstance(taken, FragmentTaken)
    assert (taken.lane, taken.run, taken.takeover.source) == (LANE, RUN, "lost")
    assert taken.takeover.noticed is None
    node.stop()


@pytest.mark.parametrize(
    ("before", "refused", "expected"),
    [
        (None, False, [False, False]),
        (None, True, [False, True]),
        (NODE.node, False, [True, True]),
        (NodeId("lost"), False, [True, True]),
    ],
    ids=["released", "released and refused", "own", "lost"],
)
def test_with_amnesia_a_fragment_that_was_released_has_its_state_built(
    make_node: Callable[[Exception | None], Node],
    wait_for: WaitFor,
    before: NodeId | None,
    refused: bool,  # noqa: FBT001 - a parameter of the test
    expected: list[bool],
) -> None:
    """Nothing has failed. If it cannot be built, the next start begins without it.

    A server that does not answer is no failure of the start.
    """
    error = RefusedError("removed") if refused else UnavailableError("away")
    node = make_node(error)
    if before is not None:
        owner = replace(NODE, node=before)
        node.catalog.owners.claim(NETWORK, MOVING.fragment, owner, Millis(0))
    deployed = replace(DEPLOYED, record=replace(DEPLOYED.record, amnesia=True))
    for number, is_amnesiac in enumerate(expected, 1):
        node.performer.perform(StartLane(LANE, RUN, deployed, PLAN.fragments[0]))
        wait_for(partial(_have_ended, node, number), "the end of the lane")
        assert node.lanes[-1].settings.amnesia is is_amnesiac
    ends = [one.retry for one in node.events if isinstance(one, LaneStopped)]
    assert ends == ([True, False] if refused else [True, True])


def _have_ended(node: Node, number: int) -> bool:
    """Whether so many runs of lanes have."""
    return sum(isinstance(one, LaneStopped) for one in node.events) == number


def test_a_marker_of_a_newer_format_is_refused_before_the_claim(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """The owner is not fenced, no epoch is used, and there is no automatic retry."""
    node = make_node(None)
    node.newer.append(NewerFormatError("a newer Medusa wrote this commit marker"))
    node.start()
    wait_for(lambda: node.events, "the end of the lane")
    error = "a newer Medusa wrote this commit marker"
    assert node.events == [LaneStopped(LANE, RUN, Epoch(0), error, retry=False, fenced=False)]
    assert node.lanes == []
    assert node.catalog.owners.get(NETWORK, MOVING.fragment) is None


def test_a_plan_request_returns_the_plan_or_the_error(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """For the requested version; nothing is claimed."""
    node = make_node(None)
    node.performer.perform(MakePlan(DEPLOYED.version))
    error = RefusedError("there is no such kind of box")
    node.planned[0] = error
    node.performer.perform(MakePlan(DEPLOYED.version))
    assert node.events == [PlanMade(DEPLOYED.version, PLAN), PlanFailed(DEPLOYED.version, error)]
    assert node.catalog.owners.get(NETWORK, MOVING.fragment) is None


def test_a_planner_that_fails_unexpectedly_is_a_failure_too(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """Else the version would be pending for ever, and its fragments starting."""
    node = make_node(None)
    node.planned[0] = KeyError("box")
    node.performer.perform(MakePlan(DEPLOYED.version))
    (failed,) = node.events
    assert isinstance(failed, PlanFailed)
    assert failed.version == DEPLOYED.version
    assert "planning failed with KeyError: 'box'" in str(failed.error)


def test_watch_requests_reach_the_polls(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """Topics, inputs, and fragments of other nodes."""
    node = make_node(None)
    topics = frozenset({TopicName("sightings-topic")})
    node.performer.perform(WatchTopics(topics, frozenset({LEFT})))
    rehearsals = Rehearse(((DEPLOYED, PLAN.fragments[0]),))
    node.performer.perform(rehearsals)
    assert (node.watched.topics, node.watched.derived) == (topics, frozenset({LEFT}))
    assert node.watched.rehearsals == rehearsals


def test_expiring_records_are_reported_and_logged_once(
    make_node: Callable[[Exception | None], Node], caplog: pytest.LogCaptureFixture
) -> None:
    """A Kafka that does not answer changes nothing; another kind of them is logged again."""
    node, effect = make_node(None), FindExpiring(LANE, LogNeeds({}))
    node.removed[0] = UnavailableError("no answer")
    node.performer.perform(effect)
    assert node.events == []
    unread = ExpiringRecords(TopicName("in"), (0,), Use.UNREAD, Cause.REMOVED)
    crowded = replace(unread, partitions=(1,), cause=Cause.SIZE)
    for found in ((unread,), (unread,), (replace(unread, partitions=(0, 1)),), (unread, crowded)):
        node.removed[0] = found
        node.performer.perform(effect)
        assert node.events.pop() == ExpiringFound(LANE, found)
    logged = [record.message for record in caplog.records]
    assert logged[0] == "unread records were removed from topic in, partition 0"
    assert [text.partition(" of ")[0] for text in logged[1:]] == ["more than half"]


def test_boundaries_are_kept_for_lanes_from_the_watch_request_on(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """The poll reads each topic from its beginning after the request: nothing is missed."""
    node = make_node(None)

    def known(boundary_ms: int) -> Millis | None:
        boundary = PendingBoundary(Millis(boundary_ms), {0: Offset(0), 1: Offset(0)})
        node.news.boundary_read(writer_of(LEFT), Epoch(1), boundary)
        planner = LanePlanner(LaneProfile((LEFT,), Stateless()), SystemClock(), lambda _: None)
        node.news.join(planner, frozenset({LEFT.topic}), fresh_marker(LEFT))
        return planner.promised(LEFT.stream)

    assert known(5) is None
    node.performer.perform(WatchTopics(frozenset({LEFT.topic}), frozenset({LEFT})))
    assert known(6) == 6


def test_the_epoch_is_above_that_of_the_last_marker(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """A ZooKeeper restored from an older state contains a lower counter."""
    node = make_node(None)
    node.written[0] = Epoch(41)
    node.start()
    wait_for(lambda: node.lanes, "the lane is made")
    assert node.lanes[0].settings.epoch == 42
    node.stop()


@pytest.mark.parametrize(
    ("error", "retry", "fenced", "external"),
    [
        (RetryError("later"), True, False, False),
        (FencedError("another"), True, True, False),
        (RefusedError("no"), False, False, False),
        (BrokenInvariantError("bug"), False, False, False),
        (ValueError("unforeseen"), True, False, False),
        (UnavailableError("no answer"), True, False, True),
        (EnvironmentProblem("the disk is full"), True, False, True),
        (NotAllowedError("no right"), True, False, True),
    ],
)
def test_the_kind_of_error_decides_on_a_retry(
    make_node: Callable[[Exception | None], Node],
    wait_for: WaitFor,
    error: Exception,
    *,
    retry: bool,
    fenced: bool,
    external: bool,
) -> None:
    """Not its text; errors of external systems are always retried."""
    node = make_node(error)
    node.start()
    wait_for(lambda: node.events, "the end of the lane")
    (event,) = node.events
    assert isinstance(event, LaneStopped)
    assert (event.retry, event.fenced, event.external) == (retry, fenced, external)
    assert event.error is not None
    assert str(error) in event.error


@pytest.mark.parametrize(
    ("owner", "said"),
    [
        ("node2", "fenced with epoch 1; node node2 owns it with epoch 2 since 1970-01-01T00:00:05"),
        ("node1", "this node owns it with epoch 2: started again after a while"),
        ("", "this node owns it with epoch 1: started again after a while"),
    ],
)
def test_a_fenced_lane_logs_the_owner_of_the_fragment(
    make_node: Callable[[Exception | None], Node],
    wait_for: WaitFor,
    caplog: pytest.LogCaptureFixture,
    owner: str,
    said: str,
) -> None:
    """With the owner's epoch and the reaction of this node."""
    node = make_node(None)
    node.start()
    wait_for(lambda: node.lanes, "the lane is made")
    if owner:
        by = replace(NODE, node=NodeId(owner))
        node.catalog.owners.claim(NETWORK, MOVING.fragment, by, Millis(5_000))
    node.lanes[0].raises_then = FencedError("another instance has taken over")
    node.lanes[0].request_stop()
    wait_for(lambda: node.events, "the end of the lane")
    assert said in caplog.text
    assert "stopped: another instance has taken over" in caplog.text


def test_activity_goes_to_the_topic_of_boundaries(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """Under a separate key, so that it replaces no boundary."""
    node = make_node(None)
    output, writer = TopicName("local.net.moving"), DEPLOYED.names.writer
    effect = SendActivity(LANE, output, TopicId("id"), writer, Epoch(3), idle=True)
    node.performer.perform(effect)
    (sent,) = node.signals.sent
    assert (sent.topic, sent.key) == (
        "local.net.moving.boundaries",
        activity_key("local.net.moving"),
    )
    assert sent.value is not None
    expected = ActivityRecord(TopicId("id"), "local.net.moving", Epoch(3), idle=True)
    assert codec.decode_activity(sent.value, "") == expected


def test_stopping_everything_waits_for_the_lanes(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """After it no lane runs, and the producer of signals is closed."""
    node = make_node(None)
    node.start()
    wait_for(lambda: node.lanes, "the lane is made")
    node.stop()
    assert node.lanes[0].stopped.is_set()
    assert node.events
    assert node.signals.closed


def test_unread_counts_are_not_reported_as_zero(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """A node that starts must not report zeros before it has read the marker."""
    node = make_node(None)
    nothing = replace(NOTHING_READ, network=NETWORK, fragment=MOVING.fragment)
    node.catalog.statuses.report(replace(nothing, epoch=Epoch(2), records_in=9, records_out=8))
    new = replace(nothing, epoch=Epoch(3), state=LaneState.STARTING)
    node.performer.perform(PublishStatus(LANE, new, counted=False))
    found = node.catalog.statuses.get(NETWORK, MOVING.fragment)
    assert found is not None
    assert (found.state, found.records_in, found.records_out) == (LaneState.STARTING, 9, 8)


def test_a_release_removes_the_owner(make_node: Callable[[Exception | None], Node]) -> None:
    """Only the one that it names."""
    node = make_node(None)
    node.catalog.owners.claim(NETWORK, MOVING.fragment, NODE, Millis(0))
    owner = node.catalog.owners.get(NETWORK, MOVING.fragment)
    assert owner is not None
    for other in (replace(owner, epoch=Epoch(9)), owner):
        found = leaving(node.catalog, other, MOVING)
        node.performer.perform(ReleaseFragment(MOVING, found))
        left = node.catalog.owners.get(NETWORK, MOVING.fragment)
        assert (left is None) == (other is owner)
