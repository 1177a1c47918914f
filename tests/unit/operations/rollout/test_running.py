from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.apply import Deployed
from pipeline.errors import RetryError
from pipeline.ids import NetworkId, NetworkName, NetworkVersion, ParticipantId
from pipeline.operations.connections import Connections
from pipeline.operations.rollout.first_runs import StartedFragments
from pipeline.operations.rollout.running import await_running
from pipeline.operations.status.observed import ObservedFragment
from tests.unit.catalog.support import NOTHING_READ, NOW, node
from tests.unit.deploy.twins import World

DONE = Deployed(
    NetworkId(ParticipantId("local"), NetworkName("cars")), NetworkVersion(1), True, (), (), ()
)


def test_the_wait_for_a_network_that_does_not_run_has_a_timeout(
    world: World, connections: Connections
) -> None:
    """The watcher receives the fragments at each poll."""
    polls: list[Sequence[ObservedFragment]] = []
    starts = StartedFragments(frozenset(), {})
    with pytest.raises(RetryError, match="waiting for cars@1 to run") as late:
        await_running(DONE, starts, connections, world.clock, 1.0, polls.append)
    assert "no node is up" in late.value.hint
    assert len(polls) > 1
    assert [one.state for one in polls[-1]] == ["pending", "pending"]


def test_a_fragment_that_no_node_has_room_for_is_not_waited_for(
    world: World, connections: Connections
) -> None:
    """The others run."""
    here = replace(node(), most_fragments=1)
    world.catalog.nodes.register(here)
    (first, second) = (one.fragment for one in world.catalog.fragments.of(DONE.network))
    epoch = world.catalog.owners.claim(DONE.network, first, here, NOW).epoch
    running = replace(
        NOTHING_READ,
        network=DONE.network,
        fragment=first,
        epoch=epoch,
        state=LaneState.RUNNING,
        lag_records=0,
    )
    world.catalog.statuses.report(running)
    starts = StartedFragments(frozenset({first, second}), {})
    seen = await_running(DONE, starts, connections, world.clock, 1.0, lambda _: None)
    assert [one.state for one in seen] == ["running", "queued"]
