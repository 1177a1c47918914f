"""What a lane is told of the retention of its dead letters."""

from dataclasses import replace

from pipeline.agent.effects import Effect, NoteRetention
from pipeline.agent.events import PlanMade
from pipeline.catalog.snapshot import VersionId
from pipeline.ids import NetworkVersion
from tests.unit.agent.support import CARS, LANE, LIFE, NETWORK, PLAN, Agent, read, wish


def _told(effects: tuple[Effect, ...]) -> list[NoteRetention]:
    return [effect for effect in effects if isinstance(effect, NoteRetention)]


def test_a_running_lane_is_told_how_long_the_newest_version_keeps_topics() -> None:
    """When it starts, and when another version says otherwise; not again and again."""
    agent = Agent()
    agent.want(wish())
    agent.started(CARS)
    assert agent.running().kept_ms == PLAN.retention_ms
    assert _told(agent.hear_all(read(wish()))) == []
    fragment = wish()
    newer = replace(fragment, network=replace(fragment.network, version=NetworkVersion(2)))
    agent.hear_all(read(newer))
    longer = replace(PLAN, retention_ms=PLAN.retention_ms + 1)
    key = VersionId(NETWORK, LIFE, NetworkVersion(2))
    told = _told(agent.hear_all(PlanMade(key, longer)))
    assert told == [NoteRetention(LANE, PLAN.retention_ms + 1)]
