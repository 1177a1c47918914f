"""A deployed network of two fragments, and reports of their status."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import NodeRecord
from pipeline.cli.session import Opener
from pipeline.ids import (
    FragmentName,
    Millis,
    NetworkId,
    NetworkName,
    NodeId,
    ParticipantId,
)
from pipeline.lanes.expiring import ExpiringRecords
from tests.unit.catalog.support import NOTHING_READ
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import NOW, World, write_project

Caller = Callable[..., Any]
CARS = NetworkId(ParticipantId("local"), NetworkName("cars"))
NODE = NodeRecord(NodeId("n1"), ParticipantId("local"), "host", 1, NOW, "0", reads=1)


def deployed(medusa: Caller, world: World) -> Opener:
    """Deploy the network without waiting; opens its installation."""
    write_project(Path())
    connect = opener(world)
    assert medusa("deploy", "--no-wait", opener=connect).code == 0
    return connect


def report(
    world: World,
    fragment: str,
    state: LaneState,
    error: str = "",
    lag: int | None = None,
    rebuild: int = 0,
    *,
    expiring: tuple[ExpiringRecords, ...] = (),
) -> None:
    """Claim a fragment for the node, and report its status."""
    name = FragmentName(fragment)
    world.catalog.nodes.register(NODE)
    epoch = world.catalog.owners.claim(CARS, name, NODE, NOW).epoch
    world.catalog.statuses.report(
        replace(
            NOTHING_READ, network=CARS, fragment=name, node=NODE.node, epoch=epoch, state=state,
            records_in=5, lag_records=lag, lag_ms=lag, last_error=error,
            rebuild_since_ms=Millis(NOW - 75_000) if rebuild else None,
            rebuild_offsets=3 * rebuild, rebuild_read=rebuild,
            expiring=expiring,
            rebuild_batches=rebuild // 100_000, rebuild_batches_done=rebuild // 200_000,
        )
    )  # fmt: skip
