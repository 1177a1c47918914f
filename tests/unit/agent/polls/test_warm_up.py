from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.agent.polls.warm_up import WarmUpPoll
from pipeline.agent.watched import Watched
from pipeline.catalog.snapshot import Deployed
from pipeline.ids import NetworkLife, TopicName
from pipeline.planner.plan import Fragment
from tests.unit.agent.support import PLAN, wish


@dataclass
class Engine:
    """An engine that is warmed up: what it did, and whether topics have records."""

    done: list[str] = field(default_factory=list)
    records: bool = True
    over: bool = False

    def practise(self) -> None:
        """Made-up records are always there."""
        self.done.append("practised")

    def rehearse(self, fragment: Fragment, topic_ids: Mapping[TopicName, str]) -> bool:
        """Real ones may be missing."""
        assert topic_ids == {}
        self.done.append(fragment.name)
        return self.records


def _elsewhere(deployed: Deployed | None = None) -> Watched:
    watched = Watched()
    watched.rehearse(((deployed or wish(), PLAN.fragments[0]),))
    return watched


def test_a_node_practises_once_when_it_knows_whether_it_has_something_to_do() -> None:
    """Not at the first look: the catalog has not been read by then."""
    engine = Engine()
    poll = WarmUpPoll(engine, Watched())
    poll.read()
    assert engine.done == []
    poll.read()
    poll.read()
    assert engine.done == ["practised"]


def test_what_other_nodes_run_is_rehearsed_until_there_were_records() -> None:
    """A rehearsal without records has warmed nothing up; after one with some, no more."""
    engine = Engine(records=False)
    poll = WarmUpPoll(engine, _elsewhere())
    for _ in range(3):
        poll.read()
    assert engine.done == ["practised", "speed", "speed"]
    engine.records = True
    for _ in range(3):
        poll.read()
    assert engine.done == ["practised", "speed", "speed", "speed"]


def test_a_fragment_that_changed_is_rehearsed_again() -> None:
    """In another version its query is another one; in another life its topics are others."""
    for other in (wish(version=2), wish(life=NetworkLife("two"))):
        engine, watched = Engine(), _elsewhere()
        poll = WarmUpPoll(engine, watched)
        for _ in range(3):
            poll.read()
        watched.rehearse(((other, PLAN.fragments[0]),))
        poll.read()
        assert engine.done == ["practised", "speed", "speed"]


def test_a_node_with_real_work_is_warm() -> None:
    """Neither practice nor rehearsal, ever again."""
    engine = Engine(over=True)
    poll = WarmUpPoll(engine, _elsewhere())
    for _ in range(3):
        poll.read()
    assert engine.done == []
