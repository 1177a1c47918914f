"""What a node writes into the event log."""

from dataclasses import replace

import pytest

from pipeline.agent.effects import LogEvent
from pipeline.agent.logged import claimed, of_node, released
from pipeline.agent.status import status
from pipeline.boundaries.profile import LaneProfile
from pipeline.catalog.fragment_owners import Claim
from pipeline.catalog.records import OwnerRecord, Transfer
from pipeline.clock import rfc3339
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import (
    Epoch,
    Incarnation,
    Millis,
    NetworkLife,
    NetworkVersion,
    NodeId,
    Offset,
)
from pipeline.lanes.events import LaneRebuilding, LaneStarted, LaneStopped
from pipeline.markers.commit_marker import Judged
from pipeline.markers.gap import Gap, Omitted
from pipeline.network.boxes.shape import Stateless
from tests.unit.agent.support import (
    CARS,
    HERE,
    LANE,
    SPEED,
    START_MS,
    Agent,
    deployed,
    fresh_marker,
    node_record,
)
from tests.unit.planner.networks import OWNER

THERE = NodeId("node2")
AT = Millis(5_000)
MINE = OwnerRecord(HERE, OWNER, Epoch(1), Millis(0), START_MS)
ME = replace(node_record(HERE), started_at_ms=START_MS)
MOVE = Transfer(
    network=SPEED.network,
    life=NetworkLife("life"),
    fragment=SPEED.fragment,
    version=NetworkVersion(1),
    source=THERE,
    epoch=Epoch(1),
    to=HERE,
    to_life=START_MS,
    asked_at_ms=Millis(3_800),
    until_ms=Millis(9_000),
    is_ready=True,
    problem="",
)


def logged(effects: tuple[object, ...]) -> list[LoggedEvent]:
    """The entries among effects."""
    return [one.event for one in effects if isinstance(one, LogEvent)]


@pytest.mark.parametrize(
    ("before", "move", "why", "origin"),
    [
        (None, None, "it had no owner", None),
        (None, MOVE, "moved from node node2", THERE),
        (replace(MINE, node=THERE), None, "node node2 is down", THERE),
        (replace(MINE, node=THERE), replace(MOVE, to=THERE), "node node2 is down", THERE),
        (replace(MINE, node=THERE), MOVE, "node node2 is down", THERE),
        (replace(MINE, life=Millis(1)), None, "the node was started again", HERE),
    ],
)
def test_a_claim_says_why(
    before: OwnerRecord | None, move: Transfer | None, why: str, origin: NodeId | None
) -> None:
    """From the records that it replaces."""
    event = claimed(SPEED, ME, Claim(Epoch(2), before, move), AT)
    assert event is not None
    assert (event.kind, event.why, event.node) == (EventKind.CLAIMED, why, HERE)
    facts = dict(event.facts)
    assert (facts["epoch"], facts.get("from")) == ("2", origin)
    assert dict(event.parts_ms) == ({} if move is None else {"since_request": 1_200})


def test_a_claim_on_suspicion_says_so() -> None:
    """Its owner may live, and is fenced."""
    event = claimed(SPEED, ME, Claim(Epoch(2), replace(MINE, node=THERE), None, True), AT)
    assert event is not None
    assert event.why == "node node2 is suspected to have failed"


def test_a_claim_of_the_present_owner_is_not_logged() -> None:
    """A lane that fails claims at each try."""
    assert claimed(SPEED, ME, Claim(Epoch(2), MINE, None), AT) is None


def test_a_release_names_the_next_node() -> None:
    """With its own epoch."""
    event = released(SPEED, MINE, THERE, AT)
    assert (event.kind, event.by, event.why) == (
        "released",
        "node node1",
        "node node2 is to run it",
    )
    assert dict(event.facts) == {"epoch": "1", "to": "node2"}
    queued = released(SPEED, MINE, None, AT)
    assert (queued.why, dict(queued.facts)) == ("no node has room for it", {"epoch": "1"})


def test_a_node_says_what_it_is() -> None:
    """Labels, capacity and a limit only if it has them."""
    record = replace(ME, labels=(("zone", "a"),), capacity=3, most_fragments=4)
    facts = dict(of_node(EventKind.NODE_UP, record, AT).facts)
    assert (facts["labels"], facts["capacity"]) == ("zone=a", "3")
    assert facts["most_fragments"] == "4"
    without = dict(of_node(EventKind.NODE_DOWN, ME, AT).facts)
    assert not {"labels", "most_fragments"} & without.keys()


def test_a_start_has_its_durations() -> None:
    """From its request, and of the rebuild that was a part of it."""
    agent = Agent()
    agent.read_catalog(replace(deployed(), owner=MINE))
    agent.wait(400)
    agent.receive(LaneRebuilding(LANE, agent.lane().run, Epoch(1), offsets=7))
    agent.wait(600)
    marker = fresh_marker(CARS)
    time = agent.begin(marker, LaneProfile((CARS,), Stateless()))
    run = agent.lane().run
    started = LaneStarted(LANE, run, Epoch(1), marker, time, agent.steady_ms)
    (event,) = logged(agent.receive_all(started))
    assert (event.kind, event.node, event.network) == ("started", HERE, SPEED.network.name)
    parts = dict(event.parts_ms)
    assert (parts["start"], parts["state"]) == (1_000, 600)
    assert event.why == "its state was rebuilt from the log"


def test_a_start_after_a_gap_has_an_entry_of_its_own() -> None:
    """Before the start; one after a batch has none, and status shows it as long as it is open."""
    gap = Gap(
        Incarnation("life-1"),
        (Omitted(CARS.topic, 0, Offset(0), Offset(1_200)),),
        Millis(1_000),
        Millis(5_000),
        Millis(9_000),
        Millis(7_000),
    )
    marker = replace(fresh_marker(CARS), gap=gap)
    for first, kinds in (
        (marker, ["gap", "started"]),
        (replace(marker, judged=Judged(1, 0, late=False, refused=0, failed=0)), ["started"]),
    ):
        agent = Agent()
        agent.read_catalog(replace(deployed(), owner=MINE))
        agent.wait(400)
        time = agent.begin(first, LaneProfile((CARS,), Stateless()))
        run = agent.lane().run
        started = LaneStarted(LANE, run, Epoch(1), first, time, agent.steady_ms)
        events = logged(agent.receive_all(started))
        assert [one.kind for one in events] == kinds
        if len(events) > 1:
            facts = dict(events[0].facts)
            assert (facts["omitted"], facts["epoch"]) == ("1200", "1")
            assert (facts["since"], facts["until"]) == (rfc3339(1_000), rfc3339(9_000))
            assert events[1].why == "without state, at the newest records"
        report = status(agent.lane(), agent.state.shared, agent.now)
        assert (report.gap_until_ms, report.gap_omitted) == (9_000, 1_200)


def test_a_failure_is_logged_once() -> None:
    """Again if it is another one, or given up."""
    agent = Agent()
    agent.read_catalog(replace(deployed(), owner=MINE))

    def fail(error: str, *, retry: bool = True) -> list[LoggedEvent]:
        run = agent.lane().run
        return logged(
            agent.receive_all(LaneStopped(LANE, run, Epoch(1), error, retry=retry, fenced=False))
        )

    (first,) = fail("no disk")
    assert (first.kind, first.why, dict(first.facts)["given_up"]) == ("failed", "no disk", "no")
    agent.tick(600_000)
    assert fail("no disk") == []
    agent.tick(600_000)
    assert [one.why for one in fail("no memory")] == ["no memory"]
    agent.tick(600_000)
    (last,) = fail("no memory", retry=False)
    assert dict(last.facts)["given_up"] == "yes"


def test_a_lane_that_was_asked_to_stop_has_not_failed() -> None:
    """The entry of the command says why."""
    agent = Agent()
    agent.read_catalog(replace(deployed(), owner=MINE))
    agent.started(CARS)
    agent.read_catalog()
    ended = LaneStopped(LANE, agent.lane().run, Epoch(1), None, retry=True, fenced=False)
    assert logged(agent.receive_all(ended)) == []


def test_a_fenced_lane_says_so() -> None:
    """By another epoch."""
    agent = Agent()
    agent.read_catalog(replace(deployed(), owner=MINE))
    agent.started(CARS)
    ended = LaneStopped(LANE, agent.lane().run, Epoch(1), "fenced", retry=True, fenced=True)
    (event,) = logged(agent.receive_all(ended))
    assert (event.kind, dict(event.facts)["epoch"]) == ("fenced", "1")
