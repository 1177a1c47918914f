"""The topics a node watches: those that its planned fragments read."""

from collections.abc import Iterator
from dataclasses import replace

from pipeline.agent.effects import WatchTopics
from pipeline.agent.events import CatalogRead, Event, PlanMade
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Lane, NodeState
from pipeline.boundaries.lane_time import writer_of
from pipeline.boundaries.profile import DerivedInput, profile
from pipeline.catalog.snapshot import Deployed
from pipeline.ids import TopicName
from pipeline.markers.positions import Positions
from pipeline.planner.plan import Fragment


def watch(state: NodeState, event: Event) -> tuple[NodeState, Effects]:
    """Watch other topics, if the planned fragments read others than before.

    Boundaries of newly watched inputs are read from the beginning of their topics. While a version
    is being planned, everything that was watched remains so: a changed fragment reads most of it
    again.
    """
    if not isinstance(event, CatalogRead | PlanMade):
        return state, ()
    shared = state.shared
    planned = [(shared.plans.named(one), one) for one in shared.assigned.values()]
    fragments = [(fragment, one) for fragment, one in planned if fragment is not None]
    topics = frozenset(topic for each in fragments for topic in _read(*each))
    topics |= {at.topic for lane in state.lanes.values() for at in _positions(lane)}
    derived = frozenset(
        lane_input
        for fragment, one in fragments
        for lane_input in profile(fragment, one.topic_ids, one.network.life).inputs
        if isinstance(lane_input, DerivedInput)
    )
    assigned = shared.assigned.values()
    if any(one.running and one.version not in shared.plans.versions for one in assigned):
        topics |= shared.topics
        planned_again = {writer_of(one) for one in derived}
        derived |= {one for one in shared.derived if writer_of(one) not in planned_again}
    if (topics, derived) == (shared.topics, shared.derived):
        return state, ()
    shared = replace(shared, topics=topics, derived=derived)
    return replace(state, shared=shared), (WatchTopics(topics, derived),)


def _read(fragment: Fragment, deployed: Deployed) -> Iterator[TopicName]:
    """The topics that a fragment reads."""
    yield from (stream.topic for stream in fragment.inputs)
    if fragment.names.redrive in deployed.topic_ids:
        yield fragment.names.redrive


def _positions(lane: Lane) -> Positions:
    """The positions of a lane that runs: the catalog may lack its redrive topic."""
    return {} if lane.running is None else lane.running.time.positions
