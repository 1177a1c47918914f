from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.agent.polls.warm_up import WarmUpPoll
from pipeline.agent.watched import Watched
from pipeline.catalog.snapshot import Deployed
from pipeline.ids import NetworkLife, TopicName
from pipeline.planner.plan import Fragment
from tests.unit.agent.support import PLAN, deployed


@dataclass
class Engine:
    """An engine that records its warm-up calls, and whether topics have records."""

    done: list[str] = field(default_factory=list)
    records: bool = True
    over: bool = False

    def practise(self) -> None:
        """Generated records always exist."""
        self.done.append("practised")

    def rehearse(self, fragment: Fragment, topic_ids: Mapping[TopicName, str]) -> bool:
        """Real records may be missing."""
        assert topic_ids == {}
        self.done.append(fragment.name)
        return self.records


def _elsewhere(fragment: Deployed | None = None) -> Watched:
    watched = Watched()
    watched.rehearse(((fragment or deployed(), PLAN.fragments[0]),))
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
        watched.rehearse(((other, PLAN.fragments[0]),))
        poll.read()
        assert engine.done == ["practised", "speed", "speed"]


def test_a_node_that_runs_a_lane_does_not_warm_up() -> None:
    """Neither practice nor rehearsal, also later."""
    engine = Engine(over=True)
    poll = WarmUpPoll(engine, _elsewhere())
    for _ in range(3):
        poll.read()
    assert engine.done == []
