"""Conditions under which an agent reports a lane."""

from dataclasses import replace

import pytest

from pipeline.agent.effects import PublishStatus
from pipeline.agent.events import Tick
from pipeline.agent.now import Now
from pipeline.agent.rules.report import report
from pipeline.agent.state import Lane, Shared, Starting, Stopped, desired_of
from pipeline.catalog.records import OwnerRecord
from pipeline.ids import NO_EPOCH, Epoch, Millis, NodeId, SteadyMillis
from tests.unit.agent.support import LANE, deployed
from tests.unit.planner.networks import OWNER

HERE, THERE = NodeId("node1"), NodeId("node2")
KNOWN = Shared(HERE, OWNER, Millis(0), catalog_current=True)
NOW = Now(Millis(0), SteadyMillis(0))


def _reports(owner: NodeId | None, epoch: Epoch, shared: Shared = KNOWN) -> bool:
    """Whether a lane with an epoch is reported, of a fragment that was claimed with epoch 3."""
    claimed = None if owner is None else OwnerRecord(owner, OWNER, Epoch(3), Millis(0), Millis(0))
    assigned = replace(deployed(), owner=claimed)
    _, effects = report(Lane(LANE, assigned, epoch=epoch), shared, Tick(), NOW)
    return bool(effects)


@pytest.mark.parametrize(
    ("owner", "epoch"), [(None, NO_EPOCH), (HERE, NO_EPOCH), (HERE, Epoch(3)), (THERE, Epoch(4))]
)
def test_a_lane_is_reported(owner: NodeId | None, epoch: Epoch) -> None:
    """Of a fragment without owner, or owned by this node, or claimed by it since."""
    assert _reports(owner, epoch)


def test_a_fragment_of_another_owner_is_not_reported_before_the_claim() -> None:
    """The catalog would reject each report: the former owner's last report remains."""
    assert not _reports(THERE, NO_EPOCH)
    assert not _reports(THERE, Epoch(2))


@pytest.mark.parametrize(("owner", "reported"), [(None, 0), (HERE, 3)])
def test_before_a_claim_the_epoch_is_that_of_the_snapshot(
    owner: NodeId | None, reported: int
) -> None:
    """A claim between decision and publication must not give its epoch to an old state."""
    claimed = None if owner is None else OwnerRecord(owner, OWNER, Epoch(3), Millis(0), Millis(0))
    assigned = replace(deployed(), owner=claimed)
    _, (effect,) = report(Lane(LANE, assigned, epoch=NO_EPOCH), KNOWN, Tick(), NOW)
    assert isinstance(effect, PublishStatus)
    assert effect.status.epoch == reported


@pytest.mark.parametrize(
    "phase",
    [Stopped(), Starting(desired_of(deployed()), deployed(), None, SteadyMillis(0))],
    ids=["rest", "start"],
)
def test_at_rest_the_epoch_is_at_least_that_of_the_snapshot(phase: Stopped | Starting) -> None:
    """The answer to the last claim may be lost; while the lane starts a claim may be under way."""
    claimed = OwnerRecord(HERE, OWNER, Epoch(3), Millis(0), Millis(0))
    lane = Lane(LANE, replace(deployed(), owner=claimed), epoch=Epoch(2), phase=phase)
    _, (effect,) = report(lane, KNOWN, Tick(), NOW)
    assert isinstance(effect, PublishStatus)
    assert effect.status.epoch == (3 if isinstance(phase, Stopped) else 2)


def test_nothing_is_reported_while_the_session_is_in_doubt() -> None:
    """Nor is a lane that the catalog assigns to another node."""
    assert not _reports(HERE, Epoch(3), Shared(HERE, OWNER, Millis(0), catalog_current=False))
    assert not report(Lane(LANE), KNOWN, Tick(), NOW)[1]
