"""Release of fragments that another node is to run, or that no node has room for."""

from pipeline.agent.effects import ReleaseFragment
from pipeline.agent.events import CatalogRead, Event
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import NodeState
from pipeline.ids import stable_lane
from pipeline.lanes.events import LaneStopped


def release(state: NodeState, event: Event) -> tuple[NodeState, Effects]:
    """Release the fragments whose lanes have ended, as soon as they have.

    It is repeated with each read of the catalog, until that shows another owner.
    """
    shared = state.shared
    if not isinstance(event, CatalogRead | LaneStopped) or not shared.catalog_current:
        return state, ()
    return state, tuple(
        ReleaseFragment(fragment, leaving)
        for fragment, leaving in sorted(shared.leaving.items())
        if stable_lane(fragment) not in state.lanes
    )
