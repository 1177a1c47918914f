"""What a lane removes of the topics that it writes, as an agent sends it."""

from dataclasses import replace

from pipeline.agent.effects import Effect, NoteRetention
from pipeline.agent.events import PlanMade
from pipeline.catalog.snapshot import VersionId
from pipeline.ids import NetworkVersion
from pipeline.planner.plan import Kept
from tests.unit.agent.support import CARS, LANE, LIFE, NETWORK, PLAN, Agent, deployed, read


def _requests(effects: tuple[Effect, ...]) -> list[NoteRetention]:
    return [effect for effect in effects if isinstance(effect, NoteRetention)]


def test_a_running_lane_gets_the_retention_of_the_newest_version() -> None:
    """At its start, and when a version changes it; not repeatedly."""
    agent = Agent()
    agent.read_catalog(deployed())
    agent.started(CARS)
    assert agent.running().kept == PLAN.kept
    assert _requests(agent.receive_all(read(deployed()))) == []
    fragment = deployed()
    newer = replace(fragment, network=replace(fragment.network, version=NetworkVersion(2)))
    agent.receive_all(read(newer))
    longer = replace(PLAN, retention_ms=PLAN.retention_ms + 1)
    key = VersionId(NETWORK, LIFE, NetworkVersion(2))
    assert _requests(agent.receive_all(PlanMade(key, longer))) == [
        NoteRetention(LANE, Kept(PLAN.retention_ms + 1, frozenset()))
    ]
