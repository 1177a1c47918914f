from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pipeline.agent.effects import Rehearse
from pipeline.agent.polls.warm_up import TRIES_MAX, WarmUpPoll
from pipeline.agent.watched import Watched
from pipeline.catalog.records import Standby
from pipeline.catalog.snapshot import Deployed
from pipeline.ids import (
    FragmentId,
    FragmentName,
    Millis,
    NetworkId,
    NetworkLife,
    NetworkName,
    TopicName,
)
from pipeline.lanes.follower_phases import FollowerPhase
from pipeline.planner.plan import Fragment
from tests.unit.agent.support import PLAN, SPEED, deployed


@dataclass
class Engine:
    """An engine that records its warm-up calls, and whether topics have records."""

    done: list[str] = field(default_factory=list)
    records: bool = True
    over: bool = False
    fails: bool = False

    def practise(self) -> None:
        """Generated records always exist."""
        self.done.append("practised")

    def rehearse(self, fragment: Fragment, topic_ids: Mapping[TopicName, str]) -> bool:
        """Real records may be missing."""
        assert topic_ids == {}
        self.done.append(fragment.name)
        return self.records

    def rehearse_beside(
        self, fragment: Fragment, topic_ids: Mapping[TopicName, str]
    ) -> bool | None:
        """The same beside lanes; None: it fails."""
        assert topic_ids == {}
        self.done.append(f"{fragment.name} beside")
        return None if self.fails else self.records


def _elsewhere(fragment: Deployed | None = None) -> Watched:
    watched = Watched()
    watched.rehearse(Rehearse(((fragment or deployed(), PLAN.fragments[0]),)))
    return watched


def test_a_node_practises_once_after_the_catalog_is_read() -> None:
    """Not in the first poll: the catalog has not been read by then."""
    engine = Engine()
    poll = WarmUpPoll(engine, Watched())
    poll.read()
    assert engine.done == []
    poll.read()
    poll.read()
    assert engine.done == ["practised"]


def test_fragments_of_other_nodes_are_rehearsed_until_records_were_read() -> None:
    """A rehearsal without records has warmed nothing up; one with records is the last."""
    engine = Engine(records=False)
    poll = WarmUpPoll(engine, _elsewhere())
    for _ in range(3):
        poll.read()
    assert engine.done == ["practised", "speed", "speed"]
    engine.records = True
    for _ in range(3):
        poll.read()
    assert engine.done == ["practised", "speed", "speed", "speed"]


def test_a_changed_fragment_is_rehearsed_again() -> None:
    """Another version has another query; another life has other topics."""
    for other in (deployed(version=2), deployed(life=NetworkLife("two"))):
        engine, watched = Engine(), _elsewhere()
        poll = WarmUpPoll(engine, watched)
        for _ in range(3):
            poll.read()
        watched.rehearse(Rehearse(((other, PLAN.fragments[0]),)))
        poll.read()
        assert engine.done == ["practised", "speed", "speed"]


def test_a_node_that_runs_a_lane_does_not_warm_up() -> None:
    """Neither practice nor rehearsal, also later."""
    engine = Engine(over=True)
    poll = WarmUpPoll(engine, _elsewhere())
    for _ in range(3):
        poll.read()
    assert engine.done == []


def standing_by(*those: Deployed, is_free: bool = True) -> Watched:
    """A node that has work stands by for these, which have no state."""
    watched = Watched()
    pairs = tuple((one, PLAN.fragments[0]) for one in those)
    watched.rehearse(Rehearse(pairs, pairs, is_free))
    return watched


def test_a_node_that_has_work_rehearses_what_it_stands_by_for_once() -> None:
    """And again when it has changed; the catalog is told."""
    engine, watched = Engine(over=True), standing_by(deployed())
    poll = WarmUpPoll(engine, watched)
    engine.records = False
    poll.read()
    assert watched.rehearsed == frozenset()
    engine.records = True
    for _ in range(3):
        poll.read()
        assert watched.rehearsed == {SPEED}
    assert engine.done == ["speed beside", "speed beside"]
    standby = Standby(SPEED.network, SPEED.fragment, FollowerPhase.WAITING, "", Millis(0))
    other = replace(standby, fragment=FragmentName("other"))
    assert watched.noted((standby, other)) == (replace(standby, is_rehearsed=True), other)
    later = standing_by(deployed(version=2)).rehearsals
    watched.rehearse(later)
    poll.read()
    assert engine.done == ["speed beside"] * 3


def test_what_was_rehearsed_while_idle_is_not_again() -> None:
    """The same plan."""
    engine, watched = Engine(), standing_by(deployed())
    poll = WarmUpPoll(engine, watched)
    for _ in range(2):
        poll.read()
    assert watched.rehearsed == {SPEED}
    engine.over = True
    poll.read()
    assert engine.done == ["practised", "speed"]


def test_no_rehearsal_begins_while_a_lane_starts() -> None:
    """All cores are needed there."""
    engine, watched = Engine(over=True), standing_by(deployed(), is_free=False)
    poll = WarmUpPoll(engine, watched)
    poll.read()
    assert engine.done == []
    watched.rehearse(replace(watched.rehearsals, is_free=True))
    poll.read()
    assert engine.done == ["speed beside"]


def test_a_rehearsal_that_fails_is_given_up() -> None:
    """Another fragment, which comes after it, is rehearsed then; one in each poll."""
    engine = Engine(over=True, fails=True)
    network = NetworkId(SPEED.network.participant, NetworkName("trucks"))
    other = deployed(FragmentId(network, FragmentName("other")))
    poll = WarmUpPoll(engine, watched := standing_by(deployed(), other))
    for _ in range(TRIES_MAX):
        poll.read()
    engine.fails = False
    for _ in range(3):
        poll.read()
    assert len(engine.done) == TRIES_MAX + 1
    assert watched.rehearsed == {other.id}


def test_a_fragment_without_records_does_not_delay_others() -> None:
    """It is asked again each time, which takes no query."""
    engine = Engine(over=True, records=False)
    network = NetworkId(SPEED.network.participant, NetworkName("trucks"))
    other = deployed(FragmentId(network, FragmentName("other")))
    WarmUpPoll(engine, standing_by(deployed(), other)).read()
    assert engine.done == ["speed beside", "speed beside"]
