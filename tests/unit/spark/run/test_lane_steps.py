"""The steps of the lanes that run."""

import pytest

from pipeline.heartbeats.steps import Doing, LaneStep, StepAge
from pipeline.ids import FragmentId, FragmentName, NetworkId, NetworkName, ParticipantId
from pipeline.spark.run.lane_steps import LaneSteps
from tests.unit.deploy.twins import TwinClock

NETWORK = NetworkId(ParticipantId("ada"), NetworkName("tolls"))
MOVING, STOPPED = (FragmentId(NETWORK, FragmentName(name)) for name in ("moving", "stopped"))


def test_the_steps_of_the_lanes_that_run_the_oldest_first() -> None:
    """A lane is there as long as it runs, also if it ends by an error."""
    clock, steps = TwinClock(), LaneSteps()
    moving, stopped = LaneStep(clock), LaneStep(clock)
    with steps.running(MOVING, moving):
        with steps.running(STOPPED, stopped):
            clock.sleep(2.0)
            moving.begin(Doing.WAIT)
            clock.sleep(1.0)
            assert steps.ages() == (
                StepAge("tolls.stopped", "query", 3_000),
                StepAge("tolls.moving", "wait", 1_000),
            )
        assert steps.ages() == (StepAge("tolls.moving", "wait", 1_000),)
    with pytest.raises(ValueError, match="boom"), steps.running(STOPPED, stopped):
        raise ValueError("boom")
    assert steps.ages() == ()
