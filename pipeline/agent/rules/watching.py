"""The topics a node watches: those that its planned fragments read."""

from collections.abc import Iterable
from dataclasses import replace

from pipeline.agent.effects import WatchTopics
from pipeline.agent.events import CatalogRead, Event, PlanMade
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import NodeState
from pipeline.boundaries.derived import WriterSeen
from pipeline.boundaries.lane_time import Writers, writer_of
from pipeline.boundaries.profile import DerivedInput, profile


def watch(state: NodeState, event: Event) -> tuple[NodeState, Effects]:
    """Watch other topics, if the planned fragments read others than before.

    Boundaries of newly watched inputs are read from the beginning of their topics. The state of
    other writers, among them those of deleted topics, is dropped. While a version is being planned,
    everything that was watched remains so: a changed fragment reads most of it again.
    """
    if not isinstance(event, CatalogRead | PlanMade):
        return state, ()
    shared = state.shared
    planned = [(shared.plans.named(one), one) for one in shared.assigned.values()]
    fragments = [(fragment, one) for fragment, one in planned if fragment is not None]
    topics = frozenset(stream.topic for fragment, _ in fragments for stream in fragment.inputs)
    derived = frozenset(
        lane_input
        for fragment, one in fragments
        for lane_input in profile(fragment, one.topic_ids).inputs
        if isinstance(lane_input, DerivedInput)
    )
    assigned = shared.assigned.values()
    if any(one.running and one.version not in shared.plans.versions for one in assigned):
        topics, derived = topics | shared.topics, derived | shared.derived
    if (topics, derived) == (shared.topics, shared.derived):
        return state, ()
    writers = writers_of(derived, shared.writers)
    shared = replace(shared, topics=topics, derived=derived, writers=writers)
    return replace(state, shared=shared), (WatchTopics(topics, derived),)


def writers_of(derived: Iterable[DerivedInput], known: Writers) -> Writers:
    """The state of the writers of these inputs, and of no others."""
    writers = sorted({writer_of(one) for one in derived})
    return {writer: known.get(writer, WriterSeen()) for writer in writers}
